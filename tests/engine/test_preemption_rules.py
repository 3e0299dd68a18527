"""Rules of waiting for preemption that only a clock or a broken cycle can show (semantics 5.6)."""

from __future__ import annotations

from muster.core.decision import Decision, DecisionCode
from muster.core.tree import Unit
from muster.engine.binder import still_holds
from muster.engine.eviction import Eviction
from muster.engine.ports import UnitState
from muster.model.group import PodGroup
from tests.engine.preempting_cluster import (
    CLIENTS_EVICT,
    GRACE,
    WAITING,
    full_cluster,
    gang,
    leaving,
    low,
    nominated,
    remove,
    room_being_left,
)
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods

TIMEOUT = 60


def waits_until(cluster: TreeCluster) -> float:
    """Seconds from now to the end of the only wait."""
    (wait,) = cluster.stored_waits()
    return (wait.until_us - cluster.now_us) / 1_000_000


def test_a_unit_waits_for_the_longest_grace_of_its_victims_and_the_timeout() -> None:
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = Eviction(by_clients=True, timeout_seconds=TIMEOUT)
    cluster.apply(*low(1, grace=GRACE), *low(1, grace=1, first=1))
    group, members = gang()
    cluster.apply(group, *members)

    assert cluster.cycles() == [WAITING]

    assert waits_until(cluster) == GRACE + TIMEOUT


def test_a_unit_without_victims_waits_for_the_grace_of_those_who_leave_already() -> None:
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = Eviction(by_clients=True, timeout_seconds=TIMEOUT)
    important = low(2, grace=GRACE, priority=50)
    cluster.apply(*important)
    cluster.delete(*important)
    group, members = gang()
    cluster.apply(group, *members)

    assert cluster.cycles() == [WAITING]

    assert waits_until(cluster) == GRACE + TIMEOUT


def test_a_cycle_that_breaks_leaves_nominations_for_the_next_one() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    cluster.apply(node("m", cpu=1))
    unit, _ = cluster.decided(group.key)

    cluster.commit(unit, Decision(group.key, DecisionCode.SCHEDULER_ERROR, message="a filter raised"))

    assert nominated(cluster) == {"high-0": "n", "high-1": "n"}


def test_a_unit_whose_wait_was_in_vain_is_tried_at_once_however_lately_it_was_tried() -> None:
    cluster, group = full_cluster(eviction=Eviction(by_clients=True, timeout_seconds=TIMEOUT))
    cluster.cycles()
    for number in range(3):
        cluster.apply(node(f"useless-{number}", cpu=0))
        cluster.later(TIMEOUT / 4)
        cluster.cycles()
    cluster.later(TIMEOUT / 4 - 0.5)
    cluster.apply(node("useless-3", cpu=0))
    cluster.cycles()

    cluster.later(0.5)

    assert nominated(cluster) == {}
    assert cluster.state_of(group) is UnitState.ACTIVE


def test_a_preemptor_whose_groups_clash_meanwhile_gives_up_its_nominations() -> None:
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = CLIENTS_EVICT
    cluster.apply(*low(2))
    root = composite("root", 1, priority=10)
    group = leaf("high", 2, parent=root, priority=10)
    cluster.apply(root, group, *pods(group, 2, priority=10))
    assert cluster.cycles() == [WAITING]

    cluster.apply(leaf("clashing", 1, parent=root, priority=11))

    assert nominated(cluster) == {}
    assert cluster.stored_waits() == []


def test_nominations_that_are_given_up_wake_who_may_have_the_room() -> None:
    cluster, _ = full_cluster(cores=2, eviction=Eviction(by_clients=True, timeout_seconds=TIMEOUT))
    cluster.cycles()
    remove(cluster, min(leaving(cluster)))
    other, members = gang("other", 1, priority=5)
    cluster.apply(other, *members)
    cluster.cycles()
    assert cluster.state_of(other) is UnitState.UNSCHEDULABLE

    cluster.later(TIMEOUT)

    assert cluster.state_of(other) is UnitState.ACTIVE


def stayed_for(cluster: TreeCluster, group: PodGroup) -> set[str]:
    """Pods that did not leave for the group, and run still."""
    return {key.name for key in cluster.cluster.waits.stayed(group.key).values()}


def test_a_pod_that_stayed_is_in_the_way_only_until_it_is_gone() -> None:
    cluster, group = full_cluster(eviction=Eviction(by_clients=True, timeout_seconds=TIMEOUT))
    cluster.cycles()
    gone, stays = sorted(leaving(cluster))
    cluster.later(TIMEOUT)
    cluster.cycles()

    remove(cluster, gone)
    cluster.cycles()

    assert stayed_for(cluster, group) == {stays}
    assert gone not in cluster.says(group)[2]


def test_pods_that_stayed_are_remembered_while_others_are_waited_for() -> None:
    cluster, group = full_cluster(eviction=Eviction(by_clients=True, timeout_seconds=TIMEOUT))
    cluster.cycles()
    stayed = leaving(cluster)
    cluster.later(TIMEOUT)
    cluster.cycles()

    cluster.apply(node("m", cpu=2), *low(2, on="m", first=7))

    assert cluster.cycles() == [WAITING]
    assert stayed_for(cluster, group) == stayed


def test_a_second_preemption_leaves_nothing_of_the_nominations_of_the_first() -> None:
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = CLIENTS_EVICT
    cluster.apply(*low(2))
    group = leaf("high", 1, priority=10)
    cluster.apply(group, *pods(group, 2, priority=10))
    cluster.cycles()
    higher, members = gang("higher", 2, priority=20)
    cluster.apply(higher, *members)
    cluster.cycles()
    cluster.apply(node("m", cpu=1), *low(1, on="m", first=7))
    cluster.cycles()
    assert nominated(cluster)["high-1"] == "n"

    remove(cluster, "low-0", "low-1")
    cluster.cycles()

    assert {"higher-0", "higher-1"} <= cluster.bound()
    assert nominated(cluster) == {"high-0": "m"}


def decided(cluster: TreeCluster) -> tuple[Unit, Decision]:
    """What the next unit's cycle comes to, not committed."""
    row = cluster.cluster.queue.pop()
    assert row is not None
    return cluster.decided(row.key)


def test_a_preemption_that_waits_for_who_leaves_already_is_carried_out_after_a_change_elsewhere() -> None:
    cluster = room_being_left()
    group, members = gang()
    cluster.apply(group, *members)
    unit, decision = decided(cluster)

    cluster.apply(node("elsewhere", cpu=1))

    assert still_holds(cluster.cluster, unit, PROFILE, decision, changed=True) == decision


def test_a_preemption_is_decided_anew_if_the_room_of_others_is_needed_for_it_now() -> None:
    cluster = TreeCluster(node("n", cpu=4))
    cluster.eviction = CLIENTS_EVICT
    cluster.apply(*low(4))
    for name in ("one", "two"):
        group, members = gang(name)
        cluster.apply(group, *members)
    cluster.cycle()
    unit, decision = decided(cluster)

    cluster.apply(node("n", cpu=3))

    assert decision.code is WAITING
    assert still_holds(cluster.cluster, unit, PROFILE, decision, changed=True) is None
