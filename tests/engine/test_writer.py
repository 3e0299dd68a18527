"""How much of what is written shares a transaction, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager

import pytest

from muster.engine.cluster_service import ClusterService
from muster.engine.errors import UnavailableError
from muster.engine.filling import QUIET_TURNS
from muster.engine.writer import CYCLE_SECONDS, GATHER_SECONDS, Writer
from muster.model.meta import NODE, ObjectKey
from tests.engine.counting_store import SOON, CountingStore
from tests.engine.started_registry import OVER, put, started_with_a_node
from tests.fakes.clock import FakeClock

TURN_SECONDS = GATHER_SECONDS / 10
A_MOMENT = 0.005


@pytest.fixture
async def store(sqlite_database: str) -> CountingStore:
    return CountingStore(sqlite_database)


@pytest.fixture
async def service(store: CountingStore, clock: FakeClock) -> AsyncIterator[ClusterService]:
    registry, made = await started_with_a_node(store, clock)
    store.forget()
    yield made
    await registry.close(OVER)


@pytest.fixture
def writer(service: ClusterService) -> Writer:
    return service._tools.writer


def write(service: ClusterService, name: str) -> None:
    service.write(lambda mutation: put(mutation, name))


def cycle(service: ClusterService, name: str) -> AbstractContextManager[None]:
    """As a unit has it that waits for a worker; nodes stand for units here."""
    cluster = service.cluster
    return cluster.coming.cycle(is_new=cluster.is_new(ObjectKey(NODE, "", name)))


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


async def test_a_unit_that_is_placed_soon_is_written_once_with_its_nodes(
    service: ClusterService, store: CountingStore
) -> None:
    write(service, "new")
    with cycle(service, "new"):
        durable = asyncio.create_task(service.durable())
        await asyncio.sleep(CYCLE_SECONDS / 5)
        write(service, "placed")
    await durable

    assert store.revisions == [2]


async def test_units_that_are_placed_one_after_the_other_are_written_together(
    service: ClusterService, store: CountingStore
) -> None:
    write(service, "first")
    write(service, "second")
    with cycle(service, "first"):
        durable = asyncio.create_task(service.durable())
        await asyncio.sleep(CYCLE_SECONDS / 10)
    with cycle(service, "second"):
        await asyncio.sleep(CYCLE_SECONDS / 10)
        write(service, "both placed")
    await durable

    assert store.revisions == [3]


async def test_a_unit_that_takes_long_to_place_holds_nobody_up(
    service: ClusterService, store: CountingStore
) -> None:
    write(service, "new")
    with cycle(service, "new"):
        async with asyncio.timeout(SOON):
            await service.durable()
        write(service, "other")
        is_waited_for = service.cluster.coming.change(service.cluster.coming.round) is not None

    assert store.revisions == [1]
    assert not is_waited_for


async def test_a_unit_that_is_stored_already_is_not_waited_for(
    service: ClusterService, store: CountingStore
) -> None:
    with cycle(service, "kept"):
        write(service, "other")
        assert service.cluster.coming.change(service.cluster.coming.round) is None


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


async def test_callers_who_were_answered_together_share_the_next_transaction_too(
    service: ClusterService, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.filling.PATIENCE_SECONDS", SOON)

    async def call(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        write(service, name)
        await service.durable()

    await asyncio.gather(*(call(f"first-{number}", 0) for number in range(3)))
    await asyncio.gather(*(call(f"then-{number}", number * A_MOMENT) for number in range(3)))

    assert store.revisions == [3, 3]


async def test_a_call_is_not_held_up_by_what_nobody_waits_for(
    service: ClusterService, store: CountingStore
) -> None:
    async def keep_writing() -> None:
        for number in range(100):
            write(service, f"node-{number}")
            await asyncio.sleep(0)

    writing = asyncio.create_task(keep_writing())
    await asyncio.sleep(0)
    await service.durable()
    await writing
    await service.durable()

    assert store.revisions[0] <= 2 * QUIET_TURNS


async def test_cycles_let_a_transaction_through_that_a_call_waits_for(
    service: ClusterService, store: CountingStore, writer: Writer
) -> None:
    store.may_commit.clear()
    write(service, "awaited")
    call = asyncio.create_task(service.durable())
    await store.until_committing()

    passing = asyncio.create_task(writer.let_through())
    await asyncio.sleep(0)
    assert not passing.done()
    store.may_commit.set()
    await passing

    assert store.revisions == [1]
    await call


async def test_cycles_wait_for_no_transaction_that_nobody_waits_for(
    service: ClusterService, store: CountingStore, writer: Writer
) -> None:
    store.may_commit.clear()
    write(service, "by itself")
    writer.schedule(service.cluster)
    await store.until_committing()

    async with asyncio.timeout(SOON):
        await writer.let_through()

    assert not store.revisions
    store.may_commit.set()


async def test_who_writes_much_goes_on_as_soon_as_the_next_transaction_has_begun(
    service: ClusterService, store: CountingStore, writer: Writer
) -> None:
    store.may_commit.clear()
    write(service, "first")
    async with asyncio.timeout(SOON):
        await writer.taken(service.cluster)
    await store.until_committing()

    write(service, "second")
    taken = asyncio.create_task(writer.taken(service.cluster))
    await asyncio.sleep(GATHER_SECONDS)
    assert not taken.done()
    store.may_commit.set()
    async with asyncio.timeout(SOON):
        await taken

    assert store.revisions[:1] == [1]
    await service.durable()


async def test_cycles_that_wait_for_the_next_transaction_are_not_waited_for(
    service: ClusterService, store: CountingStore, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.writer.CYCLE_SECONDS", 2 * SOON)
    store.may_commit.clear()
    write(service, "first")
    await writer.taken(service.cluster)
    write(service, "second")
    await asyncio.sleep(GATHER_SECONDS)
    taken = asyncio.create_task(writer.taken(service.cluster))
    await asyncio.sleep(0)
    service.cluster.coming.begin()

    store.may_commit.set()

    async with asyncio.timeout(SOON):
        await taken


async def test_cycles_that_come_to_wait_for_it_let_a_transaction_go(
    service: ClusterService, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.writer.CYCLE_SECONDS", 2 * SOON)
    write(service, "new")
    with cycle(service, "new"):
        durable = asyncio.create_task(service.durable())
        await asyncio.sleep(GATHER_SECONDS)
        assert not durable.done()

        async with asyncio.timeout(SOON):
            await writer.taken(service.cluster)
            await durable


async def test_who_waits_for_the_next_transaction_is_told_that_the_one_before_was_refused(
    service: ClusterService, store: CountingStore, writer: Writer
) -> None:
    store.may_commit.clear()
    write(service, "first")
    await writer.taken(service.cluster)
    write(service, "second")
    taken = asyncio.create_task(writer.taken(service.cluster))
    await asyncio.sleep(0)

    store.refuses = True
    store.may_commit.set()
    with pytest.raises(UnavailableError):
        await taken
    store.refuses = False
