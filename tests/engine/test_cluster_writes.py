"""What a cluster hands to the writer: of a unit's row in the queue only what the store must hear of."""

from __future__ import annotations

import pytest

from muster.engine.cluster import Cluster
from muster.model.meta import POD_GROUP, ObjectKey

UNIT = ObjectKey(POD_GROUP, "default", "gang")
NOW_US = 1_700_000_000_000_000


@pytest.fixture
def cluster() -> Cluster:
    return Cluster("c", 1, frozenset({""}))


def come(cluster: Cluster) -> None:
    cluster.queue.changed(UNIT, 0, NOW_US)


def test_a_unit_that_comes_and_goes_between_two_transactions_leaves_no_row(cluster: Cluster) -> None:
    come(cluster)
    cluster.queue.remove(UNIT)

    writes = cluster.take_writes()

    assert writes is not None
    assert (writes.unit_puts, writes.unit_removals) == ({}, set())


def test_a_unit_that_a_transaction_took_is_removed_by_a_later_one(cluster: Cluster) -> None:
    come(cluster)
    cluster.take_writes()
    cluster.queue.remove(UNIT)

    writes = cluster.take_writes()

    assert writes is not None
    assert (writes.unit_puts, writes.unit_removals) == ({}, {UNIT})


def test_a_stored_unit_that_goes_comes_and_goes_again_is_removed(cluster: Cluster) -> None:
    come(cluster)
    cluster.take_writes()
    cluster.queue.remove(UNIT)
    come(cluster)
    cluster.queue.remove(UNIT)

    writes = cluster.take_writes()

    assert writes is not None
    assert writes.unit_removals == {UNIT}


def test_a_removed_unit_that_came_again_is_stored_anew(cluster: Cluster) -> None:
    come(cluster)
    cluster.take_writes()
    cluster.queue.remove(UNIT)
    cluster.take_writes()
    come(cluster)

    writes = cluster.take_writes()

    assert writes is not None
    assert (set(writes.unit_puts), writes.unit_removals) == ({UNIT}, set())
