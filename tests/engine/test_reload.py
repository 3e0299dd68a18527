"""A revision that breaks half way leaves nothing behind: the cluster is loaded again from a real store."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from muster.engine.errors import UnavailableError
from muster.engine.ports import ClusterWrites, LoadedCluster
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.store.store import SqlStore, open_store
from tests.engine.counting_store import SOON
from tests.engine.started_registry import (
    OVER,
    break_half_way,
    put,
    started,
    started_with_a_node,
    until_available,
)
from tests.fakes.clock import FakeClock

MANY = 1_000


@pytest.fixture
async def registry(store_url: str, clock: FakeClock) -> AsyncIterator[ClusterRegistry]:
    made = await started(SqlStore(store_url), clock)
    yield made
    await made.close(OVER)


async def test_what_a_broken_revision_wrote_is_gone_and_the_cluster_goes_on(
    registry: ClusterRegistry,
) -> None:
    service = registry.services["default"]
    service.write(lambda mutation: put(mutation, "kept"))
    await service.durable()

    with pytest.raises(ZeroDivisionError):
        service.write(break_half_way)

    await until_available(service)
    service.write(lambda mutation: put(mutation, "later"))
    await service.durable()
    assert {name for _, name in service.cluster.state.objects["Node"]} == {"kept", "later"}
    assert service.cluster.state.revision == 2


class Surprising(SqlStore):
    """Raises once what nobody foresaw, in the midst of a commit, or when it is read."""

    surprise = ""
    loads = 0

    def commit(self, writes: Sequence[ClusterWrites]) -> None:
        self._raise("commit")
        super().commit(writes)

    def load_cluster(self, cluster: str) -> LoadedCluster:
        self._raise("load")
        self.loads += 1
        return super().load_cluster(cluster)

    def _raise(self, where: str) -> None:
        if self.surprise.startswith(where):
            self.surprise = self.surprise.removeprefix(where).strip()
            raise RuntimeError(where)


@pytest.mark.parametrize("surprise", ["commit", "commit load", "commit load load"])
async def test_an_error_that_no_port_names_costs_its_transaction_alone(
    sqlite_database: str, clock: FakeClock, surprise: str
) -> None:
    store = Surprising(sqlite_database)
    registry, service = await started_with_a_node(store, clock)

    store.surprise = surprise
    service.write(lambda mutation: put(mutation, "lost"))
    with pytest.raises(UnavailableError):
        await service.durable()
    await until_available(service)

    service.write(lambda mutation: put(mutation, "later"))
    await service.durable()
    await registry.close(OVER)
    assert {item.name for item in stored(sqlite_database).objects} == {"kept", "later"}


async def test_a_cluster_that_is_in_doubt_for_two_reasons_is_loaded_again_once(
    sqlite_database: str, clock: FakeClock
) -> None:
    store = Surprising(sqlite_database)
    registry, service = await started_with_a_node(store, clock)

    await asyncio.gather(registry._reload(["default"]), registry._reload(["default"]))

    await registry.close(OVER)
    assert store.loads == 1
    assert {name for _, name in service.cluster.state.objects["Node"]} == {"kept"}


def stored(url: str) -> LoadedCluster:
    store = open_store(url)
    loaded = store.load_cluster("default")
    store.close()
    return loaded


async def test_a_restart_forgets_nothing_before_its_time(store_url: str, clock: FakeClock) -> None:
    first = await started(SqlStore(store_url), clock)
    first.services["default"].write(lambda mutation: put(mutation, "of-before"))
    await first.close(OVER)
    clock.advance(60)
    store = SqlStore(store_url)
    again = await started(store, clock)

    compacted = []
    for seconds in (0, EngineOptions().log_seconds):
        clock.advance(seconds)
        await again.compact()
        compacted.append(store.compacted_revision("default"))
    await again.close(OVER)

    assert compacted == [0, 1]


async def test_a_server_stops_though_a_cluster_cannot_be_loaded(
    sqlite_database: str, clock: FakeClock
) -> None:
    store = Surprising(sqlite_database)
    registry, service = await started_with_a_node(store, clock)
    store.surprise = "commit" + " load" * MANY
    service.write(lambda mutation: put(mutation, "lost"))
    with pytest.raises(UnavailableError):
        await service.durable()

    async with asyncio.timeout(SOON):
        await registry.close(OVER)

    assert not service.available
    assert {item.name for item in stored(sqlite_database).objects} == {"kept"}
