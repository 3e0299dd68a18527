"""A gang of 64 under a stream of single pods: what becomes of it with a reservation, and without (semantics 7)."""

from __future__ import annotations

from itertools import count

from muster.model.run_time import max_run_time_seconds
from tests.engine.reserving_cluster import ReservingCluster, gang, single
from tests.engine.small_cluster import SECOND_US
from tests.engine.tree_cluster import node

NODES, CORES = 20, 4
BACKLOG = 12
RUN_SECONDS = (7, 19, 11, 23, 5, 31, 13, 3)


class Stream:
    """Keeps a few single pods of the gang's own priority waiting, whatever runs."""

    def __init__(self, cluster: ReservingCluster) -> None:
        self._cluster = cluster
        self._numbers = count()

    def go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            waiting = sum(not pod.group for pod in self._cluster.waiting())
            numbers = [next(self._numbers) for _ in range(BACKLOG - waiting)]
            self._cluster.apply(*(single(f"s-{i}", RUN_SECONDS[i % len(RUN_SECONDS)]) for i in numbers))
            self._cluster.second()


def starving_gang(after_seconds: int | None) -> tuple[ReservingCluster, Stream]:
    """The stream has filled the cluster before the gang comes."""
    nodes = [node(f"n-{i:02}", cpu=CORES) for i in range(NODES)]
    cluster = ReservingCluster(*nodes, after_seconds=after_seconds)
    stream = Stream(cluster)
    stream.go_on(40)
    group, members = gang(64)
    cluster.apply(group, *members)
    return cluster, stream


def has_started(cluster: ReservingCluster) -> bool:
    return {f"gang-{i}" for i in range(64)} <= cluster.bound()


def test_without_a_reservation_the_gang_does_not_start_in_four_minutes() -> None:
    cluster, stream = starving_gang(after_seconds=None)

    stream.go_on(240)

    assert not has_started(cluster)
    assert cluster.reservation is None


def test_with_a_reservation_the_gang_starts_when_it_was_estimated_to() -> None:
    cluster, stream = starving_gang(after_seconds=30)
    stream.go_on(30)
    estimate = cluster.start_seconds

    stream.go_on(int(estimate) - 1)
    before = has_started(cluster)
    stream.go_on(3)

    assert 0 < estimate <= max(RUN_SECONDS)
    assert not before
    assert has_started(cluster)


def test_pods_that_are_done_in_time_run_on_in_the_reserved_room() -> None:
    cluster, stream = starving_gang(after_seconds=30)
    stream.go_on(31)
    reserved, known = set(cluster.reserved_nodes), cluster.bound()
    end_us = cluster.reservation.start_us if cluster.reservation is not None else None
    assert end_us is not None

    stream.go_on(6)

    late = [cluster.pod(name) for name in cluster.bound() - known]
    inside = [pod for pod in late if pod.node_name in reserved]
    assert inside
    assert all(
        cluster.cluster.disruption.start_of(pod) + (max_run_time_seconds(pod) or 0) * SECOND_US <= end_us
        for pod in inside
    )
