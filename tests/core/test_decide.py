"""The door of the core: several units on one snapshot, what observers hear, what failures leave behind."""

import pytest

from muster.core.decide import assume_decision, decide, decide_and_assume
from muster.core.observer import NullObserver
from muster.core.reasons import TOO_MANY_PODS
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.state import state_of


class FailingObserver(NullObserver):
    """Fails as soon as a group has been placed."""

    def leave(self, attributes: dict[str, str | int]) -> None:
        raise RuntimeError("observer failed")


def test_the_next_unit_is_decided_on_what_the_last_one_took() -> None:
    cluster = Cluster(node("a", "2"), node("b", "1"))
    first, _ = cluster.unit(pod_group("g", gang(2), pods=2))
    second, _ = cluster.unit(pod("p"))

    decided = decide(cluster.snapshot, first, cluster.profile, NullObserver())
    assume_decision(cluster.snapshot, first, decided)
    after = decide(cluster.snapshot, second, cluster.profile, NullObserver())

    assert decided.assignments.nodes == ("a",)
    assert after.assignments.nodes == ("b",)


def test_assuming_a_decision_equals_deciding_and_keeping_it() -> None:
    cluster = Cluster(node("a", "3"), node("b", "3"))
    unit, _ = cluster.unit(pod_group("g", gang(2), pods=(pod("x"), pod("y", cpu="2"), pod("z"))))

    decided = decide(cluster.snapshot, unit, cluster.profile, NullObserver())
    assume_decision(cluster.snapshot, unit, decided)
    assumed = state_of(cluster.snapshot)
    cluster.snapshot.rollback(0)
    decide_and_assume(cluster.snapshot, unit, cluster.profile, NullObserver())

    assert state_of(cluster.snapshot) == assumed


def test_a_score_may_weigh_a_resource_that_no_node_and_no_pod_names() -> None:
    resources = [{"name": "example.com/gpu"}, {"name": "cpu"}]
    scores = [{"name": "NodeResourcesFit", "args": {"resources": resources}}]
    cluster = Cluster(node("a", "4"), node("b", "4"), profile=make_profile({"name": "p", "scores": scores}))

    result = cluster.schedule(pod_group("g", gang(3), pods=3))

    assert sorted(result.on.values()) == ["a", "a", "b"]


def test_a_failure_on_the_way_leaves_the_snapshot_as_it_was() -> None:
    cluster = Cluster(node("a"))
    unit, _ = cluster.unit(pod_group("g", gang(2), pods=2))
    before = state_of(cluster.snapshot)

    with pytest.raises(RuntimeError, match="observer failed"):
        decide(cluster.snapshot, unit, cluster.profile, FailingObserver())

    assert state_of(cluster.snapshot) == before


def test_an_observer_hears_one_section_a_level_with_the_counters() -> None:
    cluster = Cluster(node("a", "4"))
    root = composite("root", gang(1), pod_group("leaf", gang(2), pods=2))

    events = cluster.schedule(root).events

    entered = [event[2] for event in events if event[0] == "enter"]
    assert entered == ["cycle", "group", "group", "pods", "fill"]
    assert [event[0] for event in events] == ["enter"] * 4 + ["leave"] * 3 + ["enter", "leave", "leave"]
    pods, leaf = events[4][2], events[5][2]
    assert pods == {"key": "PodGroup default/leaf", "pods": 2}
    assert isinstance(leaf, dict)
    assert (leaf["key"], leaf["m"], leaf["s"], leaf["status"]) == ("PodGroup default/leaf", 2, 2, "SUCCESS")


def test_a_unit_without_pending_pods_has_nothing_left_to_do() -> None:
    cluster = Cluster(node("a"))

    assert cluster.schedule(pod_group("g", gang(1), bound=("a",))).code == "SCHEDULED"


def test_a_gang_whose_minimum_runs_but_whose_other_pods_fit_nowhere_is_unschedulable() -> None:
    cluster = Cluster(node("a", "1"))
    cluster.runs(pod(), "a")

    result = cluster.schedule(pod_group("g", gang(1), pods=2, bound=("a",)))

    assert result.code == "UNSCHEDULABLE"
    assert result.decision.message.startswith("the minimum holds, no further pod fits: 0/1 nodes")


def test_an_empty_cluster_has_no_nodes_to_offer() -> None:
    result = Cluster().schedule(pod("p"))

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert result.decision.message == "0/0 nodes are available: there are no nodes."


def test_pod_slots_are_a_resource() -> None:
    cluster = Cluster(node("a", pods=1))
    cluster.runs(pod(cpu="0"), "a")

    result = cluster.schedule(pod("p", cpu="0"))

    assert result.reasons() == {TOO_MANY_PODS: 1}
    assert result.code == "UNSCHEDULABLE"


def test_a_request_of_zero_fits_where_nothing_is_left() -> None:
    cluster = Cluster(node("a", "1"))
    cluster.runs(pod(), "a")

    assert cluster.schedule(pod("p", cpu="0", gpu="0")).on == {"p": "a"}
