"""What a start takes over: every cluster of the store, and where that takes its time, a word about how far it is."""

from __future__ import annotations

import logging

import pytest

from muster.engine.ports import LoadedCluster
from muster.engine.registry import PROGRESS_SECONDS
from muster.store.store import SqlStore
from tests.engine.started_registry import OVER, put, started, started_with_a_node
from tests.fakes.clock import FakeClock


class Slow(SqlStore):
    """Takes a second and a bit for each cluster, by a clock that only this moves."""

    clock: FakeClock

    def load_cluster(self, cluster: str) -> LoadedCluster:
        self.clock.advance(PROGRESS_SECONDS)
        return super().load_cluster(cluster)


async def test_all_clusters_are_there_after_a_start(sqlite_database: str, clock: FakeClock) -> None:
    registry, _ = await started_with_a_node(SqlStore(sqlite_database), clock)
    other = await registry.create("other")
    other.write(lambda mutation: put(mutation, "elsewhere"))
    await other.durable()
    await registry.close(OVER)

    registry = await started(SqlStore(sqlite_database), clock)

    nodes = {
        name: {node for _, node in service.cluster.state.objects["Node"]}
        for name, service in registry.services.items()
    }
    tokens = {name: service.cluster.token for name, service in registry.services.items()}
    await registry.close(OVER)
    assert nodes == {"default": {"kept"}, "other": {"elsewhere"}}
    assert tokens == {"default": 2, "other": 2}


async def test_a_start_that_takes_long_says_how_far_it_is(
    sqlite_database: str, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    registry, _ = await started_with_a_node(SqlStore(sqlite_database), clock)
    other = await registry.create("other")
    other.write(lambda mutation: put(mutation, "elsewhere"))
    await other.durable()
    await registry.close(OVER)
    store = Slow(sqlite_database)
    store.clock = clock

    with caplog.at_level(logging.INFO, "muster.engine.registry"):
        await (await started(store, clock)).close(OVER)

    told = [vars(record) for record in caplog.records if record.message == "loading clusters"]
    assert [(each["loaded"], each["clusters"]) for each in told] == [(1, 2)]
