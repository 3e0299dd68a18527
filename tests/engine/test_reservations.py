"""Who gets a reservation, where, whom it binds, and what ends it (semantics 7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.engine.ports import UnitState
from muster.model.group import PodGroup
from muster.model.pod import Pod
from muster.model.priority import PREEMPT_LOWER_PRIORITY
from tests.engine.reserving_cluster import AFTER_SECONDS, ReservingCluster, gang, single
from tests.engine.small_cluster import SECOND_US
from tests.engine.tree_cluster import leaf, node, with_minimum
from tests.engine.unruly_filters import Raises


def crowded(*, run_seconds: int | None = 100, size: int = 4, same: str = "") -> ReservingCluster:
    """Two nodes of four cores. A pod of three cores runs on each; a gang waits that needs a whole node."""
    labels = ({"rack": "a"}, {"rack": "b"})
    cluster = ReservingCluster(*(node(f"n-{i}", cpu=4, labels=each) for i, each in enumerate(labels)))
    cluster.apply(
        single("first", run_seconds, on="n-0", cpu=3),
        single("second", run_seconds and run_seconds + 50, on="n-1", cpu=3),
    )
    group, members = gang(size, same=same)
    cluster.apply(group, *members)
    cluster.tried()
    return cluster


def reserving(run_seconds: int | None = 100, **fields: int | str) -> ReservingCluster:
    """As crowded, after the wait."""
    cluster = crowded(run_seconds=run_seconds, **fields)  # type: ignore[arg-type]
    cluster.seconds(AFTER_SECONDS)
    return cluster


def cluster_group(cluster: ReservingCluster) -> PodGroup:
    found = cluster.get(leaf("gang"))
    assert isinstance(found, PodGroup)
    return found


def bound_elsewhere(cluster: ReservingCluster) -> Pod:
    """A member that somebody has bound in the other rack."""
    return replace(cluster.pod("gang-0"), node_name="n-1")


def is_placed(cluster: ReservingCluster, name: str) -> bool:
    return name in cluster.bound()


def test_nothing_is_reserved_before_the_wait_is_over() -> None:
    cluster = crowded()

    cluster.seconds(AFTER_SECONDS - 1)
    before = cluster.reservation
    cluster.second()

    assert before is None
    assert cluster.reservation is not None


def test_the_place_is_the_one_that_is_free_soonest() -> None:
    cluster = reserving(same="rack")

    held = cluster.reservation

    assert held is not None
    assert (held.domain_key, held.domain_value) == ("rack", "a")
    assert cluster.reserved_nodes == ["n-0"] * 4
    assert cluster.start_seconds == 100 - AFTER_SECONDS


def test_the_room_of_a_gang_without_a_constraint_may_be_on_several_nodes() -> None:
    cluster = reserving(size=5)

    assert cluster.reserved_nodes.count("n-0") == 4
    assert cluster.reserved_nodes.count("n-1") == 1


def test_a_start_that_nobody_declared_is_not_estimated() -> None:
    cluster = reserving(run_seconds=None, same="rack")

    held = cluster.reservation

    assert held is not None
    assert held.start_us is None
    # The younger of the two pods in the way is the likelier to go.
    assert cluster.reserved_nodes == ["n-1"] * 4


def test_the_highest_unit_gets_it_then_the_one_that_waits_longest() -> None:
    cluster = crowded()
    for name, priority in (("later", 0), ("higher", 5)):
        group, members = gang(4, name, priority=priority)
        cluster.apply(group, *members)
    cluster.tried()

    cluster.seconds(AFTER_SECONDS)

    assert cluster.reservation is not None
    assert cluster.reservation.unit.name == "higher"
    cluster.delete(*(cluster.pod(f"higher-{i}") for i in range(4)))
    cluster.second()
    assert cluster.reservation is not None
    assert cluster.reservation.unit.name == "gang"


def test_a_unit_that_no_node_could_ever_take_is_passed_over() -> None:
    cluster = crowded()
    cluster.apply(single("giant", cpu=5, priority=9))
    cluster.tried()

    cluster.seconds(AFTER_SECONDS)

    assert cluster.reservation is not None
    assert cluster.reservation.unit.name == "gang"


@pytest.mark.parametrize(
    ("run_seconds", "is_let_in"),
    [(100 - AFTER_SECONDS, True), (100 - AFTER_SECONDS + 1, False), (None, False)],
    ids=["done at the start", "a second too long", "undeclared"],
)
def test_an_equal_pod_uses_the_room_if_it_is_done_before_the_start(
    run_seconds: int | None, is_let_in: bool
) -> None:
    cluster = reserving(size=8)

    cluster.apply(single("late", run_seconds and run_seconds + 50))
    cluster.tried()

    assert cluster.start_seconds == 150 - AFTER_SECONDS
    assert is_placed(cluster, "late") is is_let_in


def test_a_pod_that_is_done_in_time_does_not_delay_the_start() -> None:
    cluster = reserving(size=8)
    before = cluster.reservation
    assert before is not None

    cluster.apply(single("short", 60))
    cluster.seconds(60)

    assert cluster.reservation is not None
    assert cluster.reservation.start_us == before.start_us


def test_a_pod_that_comes_to_declare_its_run_time_is_let_in() -> None:
    cluster = reserving(size=8)
    cluster.apply(single("late"))
    cluster.tried()
    before = is_placed(cluster, "late")

    cluster.apply(replace(cluster.pod("late"), annotations=single("late", 60).annotations))
    cluster.tried()

    assert (before, is_placed(cluster, "late")) == (False, True)


def test_a_pod_that_overruns_is_expected_to_go_at_any_time_and_the_room_stays_kept() -> None:
    cluster = reserving(same="rack")
    cluster.overrunning.add("first")
    cluster.seconds(100)

    cluster.apply(single("late", 1))
    cluster.tried()

    assert cluster.start_seconds < 0
    assert cluster.reserved_nodes == ["n-0"] * 4
    assert cluster.pod("late").node_name == "n-1"


def test_without_an_estimate_declared_run_times_are_of_no_use() -> None:
    cluster = reserving(run_seconds=None, size=8)

    cluster.apply(single("short", 1))
    cluster.tried()

    assert not is_placed(cluster, "short")


@pytest.mark.parametrize(
    ("policy", "is_let_in"), [(PREEMPT_LOWER_PRIORITY, True), ("Never", False)], ids=["preempts", "never"]
)
def test_a_lower_pod_uses_the_room_if_the_gang_may_preempt_it(policy: str, is_let_in: bool) -> None:
    cluster = ReservingCluster(node("n", cpu=4))
    cluster.apply(single("first", 100, on="n", priority=5, cpu=3))
    group, members = gang(4, priority=5, policy=policy)
    cluster.apply(group, *members)
    cluster.tried()
    cluster.seconds(AFTER_SECONDS)

    cluster.apply(single("low", priority=1))
    cluster.tried()

    assert cluster.reservation is not None
    assert is_placed(cluster, "low") is is_let_in


def test_a_preemptible_pod_gives_the_room_back_at_the_start() -> None:
    cluster = ReservingCluster(node("n", cpu=4))
    cluster.apply(single("first", 100, on="n", priority=5, cpu=3))
    group, members = gang(4, priority=5, policy=PREEMPT_LOWER_PRIORITY)
    cluster.apply(group, *members)
    cluster.tried()
    cluster.seconds(AFTER_SECONDS)
    cluster.apply(single("low", priority=1))
    cluster.tried()

    cluster.seconds(102 - AFTER_SECONDS)

    assert {pod.name for pod in members} <= cluster.bound()
    assert not is_placed(cluster, "low")


def test_a_higher_unit_is_never_held_back() -> None:
    cluster = reserving(size=8)

    cluster.apply(single("high", priority=1))
    cluster.tried()

    assert is_placed(cluster, "high")


def test_room_outside_the_reservation_is_for_all() -> None:
    cluster = reserving(same="rack")

    cluster.apply(single("other"))
    cluster.tried()

    assert cluster.pod("other").node_name == "n-1"


def test_the_gang_starts_as_soon_as_its_place_is_free_though_its_backoff_is_not_over() -> None:
    cluster = reserving(same="rack")
    row = cluster.cluster.queue.rows[cluster.cluster.reservations.current.unit]  # type: ignore[union-attr]
    for _ in range(6):
        cluster.cluster.queue.activate(row.key)
        cluster.tried()
    assert cluster.cluster.queue.rows[row.key].not_before_us > cluster.now_us + 20 * SECOND_US

    cluster.finish("first")
    cluster.seconds(2)

    assert {f"gang-{i}" for i in range(4)} <= cluster.bound()
    assert cluster.reservation is None


def test_pods_that_were_held_back_are_tried_when_the_reservation_ends() -> None:
    cluster = reserving(size=8)
    cluster.apply(single("late"))
    cluster.tried()
    assert not is_placed(cluster, "late")

    cluster.delete(*(cluster.pod(f"gang-{i}") for i in range(8)))
    cluster.tried()

    assert cluster.reservation is None
    assert is_placed(cluster, "late")


def test_the_reservation_dies_with_what_held_it() -> None:
    cluster = reserving(same="rack")
    cluster.apply(with_minimum(cluster_group(cluster), 2))

    gone_at_once = cluster.reservation is None

    assert gone_at_once


def test_a_gated_unit_reserves_nothing() -> None:
    cluster = reserving(same="rack")

    cluster.delete(cluster.pod("gang-0"))

    assert cluster.state_of(leaf("gang")) is UnitState.GATED
    assert cluster.reservation is None


def test_a_member_that_runs_elsewhere_moves_the_place() -> None:
    cluster = reserving(same="rack")

    cluster.apply(bound_elsewhere(cluster))
    dropped = cluster.reservation is None
    cluster.seconds(3)

    assert dropped
    assert cluster.reserved_nodes == ["n-1"] * 3


def test_the_place_moves_when_its_node_goes() -> None:
    cluster = reserving(same="rack")

    cluster.delete(node("n-0"))
    cluster.seconds(2)

    assert cluster.reserved_nodes == ["n-1"] * 4
    assert cluster.start_seconds == 150 - AFTER_SECONDS - 2


def test_a_filter_that_raises_takes_no_reservation_away_and_gives_none() -> None:
    with_one, without = reserving(same="rack"), crowded(same="rack")
    before = with_one.reservation
    for cluster in (with_one, without):
        cluster.reserve_by(Raises())

    with_one.apply(single("other"))
    with_one.seconds(2)
    without.seconds(AFTER_SECONDS + 2)

    assert before is not None
    assert with_one.reservation == before
    assert without.reservation is None


def test_a_restart_reserves_the_same() -> None:
    cluster = reserving(size=5)
    cluster.apply(*(single(f"s-{i}", 40 + i) for i in range(3)))
    cluster.seconds(5)

    again = cluster.restarted()
    again.tried()

    assert cluster.reservation is not None
    assert again.reservation == cluster.reservation


def test_the_same_state_gives_the_same_reservation_whenever_it_is_worked_out() -> None:
    steady, restless = reserving(size=5), reserving(size=5)
    for number in range(20):
        for cluster in (steady, restless):
            cluster.apply(single(f"s-{number}", 5 + number))
            cluster.second()
        restless = restless.restarted()
        restless.tried()

    assert restless.reserved_nodes == steady.reserved_nodes
    assert restless.start_seconds == steady.start_seconds


def test_a_cluster_without_the_setting_reserves_nothing() -> None:
    cluster = ReservingCluster(node("n", cpu=4), after_seconds=None)
    group, members = gang(4)
    cluster.apply(single("first", 100, on="n", cpu=3), group, *members)
    cluster.tried()

    cluster.seconds(3 * AFTER_SECONDS)

    assert cluster.reservation is None


def test_what_is_reserved_is_told() -> None:
    cluster = reserving(same="rack")
    held = cluster.reservation
    assert held is not None

    reason = cluster.cluster.reservations.reason(held.unit)

    assert reason is not None
    assert reason.code == "RESERVED"
    assert reason.message == "room on 1 node in rack=a is reserved, estimated start 1970-01-01T00:18:20Z"
    assert reason.details["estimated_start"] == "1970-01-01T00:18:20Z"


def test_a_pod_and_its_unit_are_told_for_whom_the_room_is_reserved_that_they_may_not_use() -> None:
    cluster = reserving(size=8)

    cluster.apply(single("late", 1_000), single("giant", cpu=5))
    cluster.tried()

    text = "0/2 nodes are available: 2 Insufficient cpu"
    kept = f"{text}; room on 2 nodes is reserved for PodGroup default/gang"
    assert [told(cluster, name) for name in ("late", "giant")] == [(kept, kept), (f"{text}.", f"{text}.")]


def told(cluster: ReservingCluster, name: str) -> tuple[str, str]:
    """What a pod's condition says, and what the queue says of the unit that it is."""
    pod = cluster.pod(name)
    (condition,) = pod.status.conditions
    return condition.message, cluster.cluster.queue.rows[pod.key].message
