"""A unit that preempted waits for its room: what it may do meanwhile, and what ends the wait (semantics 5.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.engine.eviction import Eviction
from muster.engine.ports import UnitState
from tests.engine.preempting_cluster import (
    CLIENTS_EVICT,
    GRACE,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING,
    full_cluster,
    gang,
    leaving,
    low,
    nominated,
    remove,
)
from tests.engine.tree_cluster import node, pods


@pytest.mark.parametrize("priority", [10, 5], ids=["equal", "lower"])
def test_nominated_room_is_not_given_to_equal_or_lower_units(priority: int) -> None:
    cluster, _ = full_cluster(cores=2, eviction=CLIENTS_EVICT)
    cluster.cycles()
    remove(cluster, next(iter(leaving(cluster))))
    other, members = gang("other", 1, priority=priority)

    cluster.apply(other, *members)

    assert set(cluster.cycles()) == {WAITING, UNSCHEDULABLE}
    assert cluster.state_of(other) is UnitState.UNSCHEDULABLE
    assert nominated(cluster) == {"high-0": "n", "high-1": "n"}


def test_nominated_room_may_be_taken_by_a_higher_unit() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    other, members = gang("other", 3, priority=20)
    cluster.apply(other, *members)

    assert cluster.cycles() == [WAITING]
    remove(cluster, "low-0", "low-1", "low-2")
    codes = cluster.cycles()

    assert codes[0] is SCHEDULED
    assert {"other-0", "other-1", "other-2"} <= cluster.bound()
    assert nominated(cluster) == {}
    assert cluster.state_of(group) is UnitState.UNSCHEDULABLE


def test_nobody_else_is_evicted_while_victims_are_leaving() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)

    cluster.apply(node("unrelated", cpu=1))
    cluster.later(2)

    assert set(cluster.cycles()) == {WAITING}
    assert leaving(cluster) == victims


def test_a_unit_that_waits_is_bound_elsewhere_once_it_fits_there() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    cluster.apply(node("new", cpu=2))

    assert cluster.cycles() == [SCHEDULED]
    assert {cluster.pod(name).node_name for name in ("high-0", "high-1")} == {"new"}
    assert nominated(cluster) == {}


def test_a_wait_that_takes_too_long_ends_and_the_condition_names_who_stayed() -> None:
    cluster, group = full_cluster(grace=GRACE, eviction=Eviction(by_clients=True, timeout_seconds=60))
    cluster.cycles()
    stayed = sorted(leaving(cluster))

    cluster.later(GRACE + 59)
    early = cluster.cycles(), len(nominated(cluster))
    cluster.later(1)

    assert early == ([], 2)
    assert nominated(cluster) == {}
    expected = f"2 pods did not leave in time: Pod default/{stayed[0]}, Pod default/{stayed[1]}"
    assert expected in cluster.says(group)[2]
    assert expected in cluster.says(cluster.pod("high-0"))[2]
    assert cluster.cycles() == [UNSCHEDULABLE]
    assert expected in cluster.says(group)[2]


def test_pods_that_stayed_are_not_waited_for_again_until_they_are_gone() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    stayed = leaving(cluster)
    cluster.later(61)
    cluster.cycles()

    cluster.apply(node("m", cpu=2), *low(2, on="m", first=7))
    codes = cluster.cycles()
    others = leaving(cluster) - stayed
    remove(cluster, *others)

    assert codes == [WAITING]
    assert len(others) == 2
    assert cluster.cycles() == [SCHEDULED]
    assert stayed == leaving(cluster)


def test_a_preemptor_that_is_deleted_frees_its_room_for_others() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    remove(cluster, next(iter(leaving(cluster))))
    cluster.cycles()
    other, members = gang("other", 1, priority=5)
    cluster.apply(other, *members)
    waits = cluster.cycles()

    cluster.delete(*pods(group, 2), group)

    assert SCHEDULED not in waits
    assert cluster.cycles() == [SCHEDULED]
    assert cluster.cluster.waits.units() == []
    assert cluster.stored_waits() == []


def test_a_preemptor_that_becomes_gated_gives_up_its_nominations() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    cluster.delete(pods(group, 1)[0])

    assert cluster.state_of(group) is UnitState.GATED
    assert nominated(cluster) == {}
    assert cluster.stored_waits() == []


def test_a_preemptor_whose_layout_is_at_fault_gives_up_its_nominations() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    cluster.delete(group, force=True)
    assert nominated(cluster) == {}

    cluster.apply(replace(group, spec=replace(group.spec, priority=10)))

    assert cluster.cycles() == [WAITING]
    assert set(nominated(cluster)) == {"high-0", "high-1"}


def test_a_restart_resumes_a_wait() -> None:
    cluster, group = full_cluster(grace=GRACE)
    cluster.cycles()

    again = cluster.restarted()

    assert again.state_of(group) is UnitState.WAITING_FOR_PREEMPTION
    assert nominated(again) == {"high-0": "n", "high-1": "n"}
    assert again.cycles() == []
    again.later(GRACE)
    assert again.cycles() == [SCHEDULED]
    assert {"high-0", "high-1"} <= again.bound()


def test_a_restart_remembers_when_a_wait_ends_and_who_stayed() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    again = cluster.restarted()
    again.later(61)
    given_up = nominated(again), again.says(group)[2]
    again.cycles()
    third = again.restarted()

    assert given_up[0] == {}
    assert "2 pods did not leave in time" in given_up[1]
    assert len(third.cluster.waits.stayed(group.key)) == 2
    assert third.cycles() == []


def test_pods_that_join_a_unit_that_waits_do_not_disturb_it() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)

    cluster.apply(*pods(group, 1, first=2, priority=10))
    codes = cluster.cycles()
    remove(cluster, *victims)
    cluster.cycles()

    assert codes == [WAITING]
    assert {"high-0", "high-1"} <= cluster.bound()


def test_a_unit_that_waits_is_tried_a_second_apart_at_least() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    tried = []
    for number in range(3):
        cluster.apply(node(f"useless-{number}", cpu=0))
        tried.append(cluster.cycles())
    cluster.later(2)
    tried.append(cluster.cycles())
    cluster.later(2)
    tried.append(cluster.cycles())

    assert tried == [[WAITING], [], [], [WAITING], []]
