"""How much of what is written shares a transaction, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from muster.engine.cluster_service import ClusterService
from muster.engine.ports import ClusterWrites
from muster.engine.writer import GATHER_SECONDS
from muster.store.store import SqlStore
from tests.engine.started_registry import OVER, put, started_with_a_node
from tests.fakes.clock import FakeClock

SOON = 10
TURN_SECONDS = GATHER_SECONDS / 10


class CountingStore(SqlStore):
    """Remembers how many revisions each transaction had."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.revisions: list[int] = []

    def commit(self, writes: Sequence[ClusterWrites]) -> None:
        super().commit(writes)
        self.revisions.append(sum(len(each.entries) for each in writes))


@pytest.fixture
async def store(sqlite_database: str) -> CountingStore:
    return CountingStore(sqlite_database)


@pytest.fixture
async def service(store: CountingStore, clock: FakeClock) -> AsyncIterator[ClusterService]:
    registry, made = await started_with_a_node(store, clock)
    store.revisions.clear()
    yield made
    await registry.close(OVER)


def write(service: ClusterService, name: str) -> None:
    service.write(lambda mutation: put(mutation, name))


async def test_calls_that_write_in_turns_of_the_loop_that_follow_share_a_transaction(
    service: ClusterService, store: CountingStore
) -> None:
    async def call(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        write(service, f"node-{turns}")
        await service.durable()

    await asyncio.gather(*map(call, range(5)))

    assert store.revisions == [5]


async def test_a_call_by_itself_waits_for_no_time_to_pass(
    service: ClusterService, store: CountingStore
) -> None:
    write(service, "alone")

    async with asyncio.timeout(SOON):
        await service.durable()

    assert store.revisions == [1]


async def test_a_loop_that_does_not_cease_to_write_is_answered_in_time(
    service: ClusterService, store: CountingStore, clock: FakeClock
) -> None:
    async def keep_writing() -> None:
        number = 0
        while True:
            clock.advance(TURN_SECONDS)
            write(service, f"node-{number}")
            number += 1
            await asyncio.sleep(0)

    writing = asyncio.create_task(keep_writing())
    await asyncio.sleep(0)
    async with asyncio.timeout(SOON):
        await service.durable()
    writing.cancel()

    assert 1 < store.revisions[0] <= 2 * GATHER_SECONDS / TURN_SECONDS
