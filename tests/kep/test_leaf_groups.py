"""Paragraphs of KEP-4671 about pods and PodGroups."""

from muster.core.decision import Status
from tests.dsl import Cluster, basic, gang, node, pod, pod_group


def test_a_gang_is_bound_whole_when_its_minimum_fits() -> None:
    cluster = Cluster(node("a", "2"), node("b", "2"))

    result = cluster.schedule(pod_group("g", gang(4), pods=4))

    assert result.code == "SCHEDULED"
    assert result.on == {"g-0": "a", "g-1": "b", "g-2": "a", "g-3": "b"}


def test_nothing_of_a_gang_is_bound_when_one_pod_of_its_minimum_is_left_over() -> None:
    cluster = Cluster(node("a", "2"), node("b", "1"))

    result = cluster.schedule(pod_group("g", gang(4), pods=4))

    assert result.code == "UNSCHEDULABLE"
    assert result.on == {}
    assert result.group("g").satisfied == 3
    assert result.reasons() == {"INSUFFICIENT_CPU": 2}


def test_pods_beyond_the_minimum_are_bound_as_far_as_they_fit() -> None:
    cluster = Cluster(node("a", "3"))

    result = cluster.schedule(pod_group("g", gang(2), pods=5))

    assert result.code == "SCHEDULED"
    assert sorted(result.on) == ["g-0", "g-1", "g-2"]
    assert (result.group("g").satisfied, result.group("g").unschedulable) == (3, 2)


def test_a_gang_whose_minimum_runs_already_binds_what_fits() -> None:
    cluster = Cluster(node("a", "3"))
    cluster.runs(pod(), "a", "a")

    result = cluster.schedule(pod_group("g", gang(2), pods=2, bound=("a", "a")))

    assert result.code == "SCHEDULED"
    assert result.on == {"g-0": "a"}


def test_a_basic_group_binds_its_pods_one_by_one() -> None:
    cluster = Cluster(node("a", "2"))

    result = cluster.schedule(pod_group("g", basic(), pods=3))

    assert result.code == "SCHEDULED"
    assert len(result.on) == 2


def test_a_basic_group_of_which_no_pod_fits_is_unschedulable() -> None:
    cluster = Cluster(node("a", "1"))
    cluster.runs(pod(), "a")

    result = cluster.schedule(pod_group("g", basic(), pods=3))

    assert result.code == "UNSCHEDULABLE"


def test_a_lone_pod_is_placed_like_a_group_of_one() -> None:
    cluster = Cluster(node("a", "1"), node("b", "2"))

    assert cluster.schedule(pod("p")).on == {"p": "b"}


def test_a_lone_pod_that_no_node_could_ever_hold_is_beyond_preemption() -> None:
    cluster = Cluster(node("a", "1"), node("b", "8", unschedulable=True))

    result = cluster.schedule(pod("p", cpu="4"))

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert result.decision.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )


def test_a_gang_with_too_few_pods_is_not_simulated() -> None:
    cluster = Cluster(node("a", "8"))

    result = cluster.schedule(pod_group("g", gang(3), pods=2))

    assert result.group("g").status is Status.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert result.group("g").remaining == 2


def test_trying_stops_with_the_pod_that_puts_the_minimum_out_of_reach() -> None:
    cluster = Cluster(node("a", "2"))

    group = cluster.schedule(pod_group("g", gang(4), pods=6)).group("g")

    assert (group.satisfied, group.remaining, group.unschedulable) == (2, 1, 3)


def test_pods_of_higher_priority_come_first_then_the_hardest() -> None:
    cluster = Cluster(node("a", "8"))
    pods = (pod("small"), pod("large", cpu="4"), pod("urgent", priority=5))

    result = cluster.schedule(pod_group("g", gang(3), pods=pods))

    assert list(result.on) == ["urgent", "large", "small"]


def test_a_node_on_which_a_binding_failed_is_left_out_for_that_pod_alone() -> None:
    cluster = Cluster(node("a", "8"), node("b", "4"))

    result = cluster.schedule(pod_group("g", gang(2), pods=2), excluded={"g-0": {"a"}})

    assert result.on == {"g-0": "b", "g-1": "a"}


def test_a_pod_whose_only_node_failed_to_bind_it_is_beyond_preemption() -> None:
    cluster = Cluster(node("a", "8"))

    result = cluster.schedule(pod("p"), excluded={"p": {"a"}})

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert result.reasons() == {"BINDING_FAILED": 1}


def test_a_failed_group_says_its_counters_and_the_reasons() -> None:
    cluster = Cluster(node("a", "2"), node("b", "2", unschedulable=True))

    message = cluster.schedule(pod_group("g", gang(3), pods=3)).decision.message

    assert message == (
        "2 of 3 required pods fit (S=2 R=0 U=1 UU=0); no placement exists; "
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
