"""What a preemption waits for, and what it was promised (KEP-5710 as Muster reads it)."""

from __future__ import annotations

from muster.core.preemption_units import EarlierPreemption
from tests.dsl import composite, gang, node, pod, pod_group, rack
from tests.dsl.preemption import BusyCluster

WAITING = "WAITING_FOR_PREEMPTION"


def test_pods_that_leave_count_as_gone_and_their_room_is_nominated_without_victims() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    (leaving,) = cluster.leaves(pod("old"), "a")
    cluster.low_pod("low", "b")

    result = cluster.preempt(pod("p"))

    assert (result.code, result.victims, result.nominated) == (WAITING, [], {"p": "a"})
    assert result.preemption.awaited == (leaving,)


def test_only_leaving_pods_whose_room_is_needed_are_waited_for() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "1"))
    cluster.leaves(pod("old"), "b")
    cluster.low_pod("low", "a", cpu="2")

    result = cluster.preempt(pod("p", cpu="2"))

    assert (result.victims, result.preemption.awaited) == (["low"], ())


def test_pods_that_leave_a_node_which_is_not_used_are_not_waited_for() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    (on_a,) = cluster.leaves(pod("old-a"), "a")
    cluster.leaves(pod("old-b"), "b")

    result = cluster.preempt(pod("p"))

    assert (result.nominated, result.preemption.awaited) == ({"p": "a"}, (on_a,))


def test_a_pod_that_stayed_is_not_waited_for_again_beside_one_that_leaves() -> None:
    cluster = BusyCluster(node("a", "2"))
    (stuck,) = cluster.leaves(pod("stuck"), "a")
    (leaving,) = cluster.leaves(pod("old"), "a")
    cluster.earlier = EarlierPreemption(stayed=frozenset({stuck}))

    result = cluster.preempt(pod("p"))

    assert (result.nominated, result.preemption.awaited) == ({"p": "a"}, (leaving,))


def test_a_victim_that_stayed_counts_as_staying_for_this_unit() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    cluster.earlier = EarlierPreemption(stayed=frozenset(cluster.leaves(pod("stuck"), "a")))
    cluster.low_pod("low", "b")

    result = cluster.preempt(pod("p"))

    assert (result.victims, result.nominated) == (["low"], {"p": "b"})


def test_nobody_else_is_evicted_while_an_earlier_victim_is_leaving() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    cluster.leaves(pod("victim"), "a")
    cluster.low_pod("low", "b")
    cluster.earlier = EarlierPreemption(is_waiting=True)

    result = cluster.preempt(pod("p"), nominated={"p": "a"})

    assert (result.code, result.decision.preemption, result.on) == (WAITING, None, {})


def test_a_unit_is_first_checked_in_exactly_the_placement_that_was_nominated() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "4"))

    assert cluster.preempt(pod("p")).on == {"p": "b"}
    assert cluster.preempt(pod("p"), nominated={"p": "a"}).on == {"p": "a"}


def test_a_nomination_is_void_if_its_nodes_are_no_longer_in_one_domain() -> None:
    cluster = BusyCluster(rack("x", free=1), rack("y", free=1), rack("z", free=2))
    group = pod_group("g", gang(2), pods=2, same="rack")

    result = cluster.preempt(group, nominated={"g-0": "node-x", "g-1": "node-y"})

    assert set(result.on.values()) == {"node-z"}


def test_a_nomination_is_void_if_a_part_of_the_unit_would_be_too_small() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "4"))
    root = composite("root", gang(1), pod_group("c", gang(2), pods=2))

    result = cluster.preempt(root, nominated={"c-0": "a"})

    assert result.on == {"c-0": "b", "c-1": "b"}


def test_a_nomination_is_void_if_others_are_to_have_the_room() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "1"))
    cluster.promise(pod("peer", cpu="2"), "a")

    result = cluster.preempt(pod("p"), nominated={"p": "a"})

    assert result.on == {"p": "b"}


def test_while_victims_leave_the_unit_may_be_bound_elsewhere_if_all_of_it_fits() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.leaves(pod("victim", cpu="2"), "a")
    cluster.earlier = EarlierPreemption(is_waiting=True)

    result = cluster.preempt(pod_group("g", gang(1), pods=2), nominated={"g-0": "a", "g-1": "a"})

    assert (result.code, set(result.on.values())) == ("SCHEDULED", {"b"})


def test_a_part_of_the_unit_is_not_bound_elsewhere_while_the_whole_is_being_made_room_for() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "1"))
    cluster.leaves(pod("victim", cpu="2"), "a")
    cluster.earlier = EarlierPreemption(is_waiting=True)

    result = cluster.preempt(pod_group("g", gang(1), pods=2), nominated={"g-0": "a", "g-1": "a"})

    assert (result.code, result.on) == (WAITING, {})


def test_room_that_is_nominated_for_others_is_not_taken() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    cluster.promise(pod("peer"), "a")
    cluster.low_pod("low", "b")

    result = cluster.preempt(pod("p"))

    assert (result.victims, result.nominated) == (["low"], {"p": "b"})


def test_an_empty_set_of_victims_is_no_preemption_and_what_fits_is_bound() -> None:
    # The promised pod and the leaving one never need the room at the same time.
    cluster = BusyCluster(node("a", "3"))
    cluster.leaves(pod("old", cpu="2"), "a")
    cluster.promise(pod("peer", cpu="2"), "a")

    result = cluster.preempt(pod("p"))

    assert (result.code, result.on) == ("SCHEDULED", {"p": "a"})
    assert (result.preemption.end.value, result.victims) == ("NOT_NEEDED", [])
