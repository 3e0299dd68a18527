"""No decision binds a tree in part, whatever order its objects come in and whatever ends the process in between."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import WAIT_SECONDS, Cluster
from tests.endtoend.service import Service
from tests.instances.checker import violations
from tests.instances.instance import GroupPlan, Instance, NodePlan, PodPlan
from tests.instances.objects import sets_of

REPLICAS = range(3)
LARGEST_PART = 6


def tree() -> Instance:
    """A run that needs two of its three replicas in one block, each a driver and workers of whom two must share a rack.

    A rack has room for all pods, so that none is left over wherever they come first.
    """
    groups = [GroupPlan("run", is_leaf=False, parent=None, minimum=2, topology="block")]
    pods = []
    for number in REPLICAS:
        replica, driver, workers = f"replica-{number}", f"driver-{number}", f"workers-{number}"
        groups += [
            GroupPlan(replica, is_leaf=False, parent="run", minimum=2),
            GroupPlan(driver, is_leaf=True, parent=replica, minimum=1),
            GroupPlan(workers, is_leaf=True, parent=replica, minimum=2, topology="rack"),
        ]
        pods.append(PodPlan(f"{driver}-0", {"cpu": 1_000}, driver))
        pods += [PodPlan(f"{workers}-{place}", {"cpu": 1_000}, workers) for place in range(3)]
    nodes = [
        NodePlan(f"{rack}-{place}", {"cpu": 6_000, "memory": 1_024}, {"block": rack[0], "rack": rack})
        for rack in ("a1", "a2", "b1", "b2")
        for place in range(2)
    ]
    return Instance(
        target="run",
        groups={each.name: each for each in groups},
        nodes={each.name: each for each in nodes},
        pods={each.name: each for each in pods},
    )


def parts(chance: random.Random) -> Iterator[list[Object]]:
    """All objects of the tree and its cluster in some order, a few at a time."""
    sets = sets_of(tree())
    objects = [*sets.surroundings, *sets.parts, sets.root]
    chance.shuffle(objects)
    while objects:
        size = chance.randint(1, LARGEST_PART)
        yield objects[:size]
        del objects[:size]


def assert_never_bound_in_part(cluster: Cluster) -> None:
    """After each decision, in their order, what is bound by then breaks no rule of the tree."""
    bound: dict[str, str] = {}
    for decision in reversed(cluster.list_decisions()):
        assigned = decision.assignments
        bound |= {
            pod: assigned.nodes[place] for pod, place in zip(assigned.pods, assigned.node_index, strict=True)
        }
        assert violations(tree(), bound) == []
    assert bound == {pod: node for pod, node in cluster.nodes().items() if node}


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_whose_objects_come_in_any_order_is_bound_whole(cluster: Cluster, seed: int) -> None:
    for part in parts(random.Random(seed)):
        cluster.apply(*part)

    cluster.schedule("CompositePodGroup", "run", wait=WAIT_SECONDS)

    assert cluster.bound() == set(tree().pods)
    assert_never_bound_in_part(cluster)


def test_a_tree_is_bound_whole_across_kill_9_while_its_objects_come(store_url: str, tmp_path: Path) -> None:
    sent = list(parts(random.Random(11)))
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "killed")
        for place, part in enumerate(sent):
            if place in {len(sent) // 2, len(sent) - 1}:
                service.kill()
                service.start()
            cluster.apply(*part)

        cluster.schedule("CompositePodGroup", "run", wait=WAIT_SECONDS)

        assert cluster.bound() == set(tree().pods)
        assert_never_bound_in_part(cluster)


def test_the_decisions_on_a_tree_are_listed_by_any_of_its_members(cluster: Cluster) -> None:
    members = [
        ObjectRef(kind="CompositePodGroup", name="run"),
        ObjectRef(kind="CompositePodGroup", name="replica-1"),
        ObjectRef(kind="PodGroup", name="workers-1"),
        ObjectRef(kind="Pod", name="workers-1-0"),
    ]
    cluster.apply(*[each for part in parts(random.Random(3)) for each in part])
    cluster.schedule("CompositePodGroup", "run", wait=WAIT_SECONDS)

    found = [cluster.list_decisions(member) for member in members]

    assert found[0]
    assert found[1:] == found[:1] * 3
    assert cluster.list_decisions(ObjectRef(kind="PodGroup", name="of-no-tree")) == []


def test_pods_that_come_later_join_their_tree_in_its_domains(cluster: Cluster) -> None:
    sets = sets_of(tree())
    later = [each for each in sets.parts if each.HasField("pod") and each.pod.metadata.name.endswith("-2")]
    cluster.apply(*sets.surroundings, *(each for each in sets.parts if each not in later), sets.root)
    cluster.schedule("CompositePodGroup", "run", wait=WAIT_SECONDS)
    before = cluster.nodes()

    cluster.apply(*later)
    cluster.schedule("CompositePodGroup", "run", wait=WAIT_SECONDS)

    assert cluster.bound() == set(tree().pods)
    assert before.items() <= cluster.nodes().items()
    assert_never_bound_in_part(cluster)
