"""Pods that are written many at a time leave behind what the same pods leave that are put one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from muster.engine.conditions import PodConditions
from muster.engine.mutation import Mutation
from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import LabelSelector, OwnerReference
from muster.model.pod import Pod, PodStatus
from tests.engine.small_cluster import NOW_US, SmallCluster, node, pod, pod_group

OWNED = (OwnerReference(kind="PodGroup", name="gang", uid="uid-gang"),)
NOMINATED = PodStatus(nominated_node_name="node-a")
GANG = pod_group("gang", minimum=3)
BUDGET = PodDisruptionBudget(name="budget", namespace="default", selector=LabelSelector(), min_available="1")
BASE = (node("node-a"), node("node-b"), GANG, BUDGET)
PODS = (
    pod("lone"),
    pod("first", group="gang"),
    pod("second", group="gang", owners=OWNED),
    pod("third", group="gang", status=NOMINATED),
    pod("other", group="absent"),
)
NODES = ("node-a", "node-b", "node-b")


def test_new_pods_of_one_pass_leave_what_they_leave_one_by_one() -> None:
    at_once, one_by_one = SmallCluster(*BASE), SmallCluster(*BASE)

    at_once.change(lambda mutation: mutation.add(PODS))
    one_by_one.change(put_new)

    assert traces(at_once) == traces(one_by_one)


def test_pods_bound_in_one_pass_leave_what_they_leave_one_by_one() -> None:
    at_once, one_by_one = SmallCluster(*BASE, *PODS), SmallCluster(*BASE, *PODS)

    bind(at_once, lambda mutation, pods: mutation.bind(pods, NODES))
    bind(one_by_one, put_each)

    assert traces(at_once) == traces(one_by_one)


def bind(small: SmallCluster, write: Callable[[Mutation, list[Pod]], None]) -> None:
    """Binds the gang's members, whose unit is in flight, as a decision does."""
    members = [small.pod(name) for name in ("first", "second", "third")]
    mutation = Mutation(small.cluster, small.now_us)
    mutation.settled_units.add(GANG.key)
    write(mutation, members)
    mutation.finish()


def test_pods_that_differ_in_nothing_leave_the_same_too() -> None:
    first = pod("first", group="gang")
    alike = (first, *(replace(first, name=name, ordinal=pod(name).ordinal) for name in ("second", "third")))
    at_once, one_by_one = SmallCluster(*BASE), SmallCluster(*BASE)

    at_once.change(lambda mutation: mutation.add(alike))
    one_by_one.change(lambda mutation: put_new(mutation, alike))
    bind(at_once, lambda mutation, pods: mutation.bind(pods, NODES))
    bind(one_by_one, put_each)

    assert traces(at_once) == traces(one_by_one)


def test_a_pod_that_is_put_again_after_its_run_has_its_last_state() -> None:
    at_once, one_by_one = SmallCluster(*BASE), SmallCluster(*BASE)

    def add_and_relabel(mutation: Mutation) -> None:
        mutation.add(PODS)
        mutation.put(replace(PODS[1], labels={"is": "late"}))

    def put_and_relabel(mutation: Mutation) -> None:
        put_new(mutation)
        mutation.put(replace(PODS[1], labels={"is": "late"}))

    at_once.change(add_and_relabel)
    one_by_one.change(put_and_relabel)

    assert traces(at_once) == traces(one_by_one)


def put_new(mutation: Mutation, pods: Sequence[Pod] = PODS) -> None:
    for each in pods:
        mutation.put(each)


def put_each(mutation: Mutation, pods: list[Pod]) -> None:
    conditions = PodConditions(NOW_US)
    for each, node_name in zip(pods, NODES, strict=True):
        status = conditions.without_nomination(conditions.scheduled(each.status, each.generation))
        mutation.put(replace(each, node_name=node_name, resource_version=mutation.revision, status=status))


def traces(small: SmallCluster) -> dict[str, object]:
    """All that the cluster keeps of its pods, and what it hands to the writer."""
    cluster = small.cluster
    state, snapshot, writes = cluster.state, cluster.feed.flush(), cluster.writes()
    return {
        "pods": dict(state.objects["Pod"]),
        "members": {name: (dict(each.pods), each.counts) for name, each in state._members.items()},
        "on nodes": {name: state.pods_on(name) for name in ("node-a", "node-b")},
        "nominated": state.nominated,
        "dependents": state.dependents("uid-gang"),
        "free": snapshot.nodes.free.tolist(),
        "running": cluster.disruption.running,
        "budgets": dict(state.objects["PodDisruptionBudget"]),
        "queue": cluster.queue.rows,
        "pending": (cluster.pending_groups, cluster.pending_members),
        "log": writes.entries,
        "puts": writes.puts,
    }
