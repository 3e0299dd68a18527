"""Get beside a transaction that is on its way: what is durable is told at once, all else once it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from muster.engine.api import DeleteCall, DeleteRef
from muster.engine.engine import Engine
from muster.engine.errors import NotFoundError, UnavailableError
from muster.model.objects import ClusterObject
from tests.engine.counting_store import SOON, CountingStore
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import node
from tests.fakes.clock import FakeClock

KEPT, OTHER = node("kept"), node("other")


@pytest.fixture
def store(sqlite_database: str) -> CountingStore:
    return CountingStore(sqlite_database)


@pytest.fixture
async def engine(store: CountingStore, clock: FakeClock) -> AsyncIterator[Engine]:
    """Holds two nodes, and then no transaction ends until the test says so."""
    made = await started_engine(store, clock)
    await apply(made, KEPT, OTHER)
    store.forget()
    store.may_commit.clear()
    yield made
    store.may_commit.set()
    await made.drain()


async def apply(engine: Engine, *sent: ClusterObject) -> None:
    await engine.apply(applying(sent))


async def delete(engine: Engine, gone: ClusterObject) -> None:
    await engine.delete(DeleteCall("default", [DeleteRef(gone.key)]))


async def test_an_object_that_is_durable_is_told_at_once(engine: Engine, store: CountingStore) -> None:
    writing = asyncio.create_task(apply(engine, replace(OTHER, labels={"a": "b"})))
    await store.until_committing()

    async with asyncio.timeout(SOON / 2):
        found, revision = await engine.get("default", KEPT.key)

    assert (found.name, revision, writing.done()) == ("kept", 1, False)
    store.may_commit.set()
    await writing
    assert (await engine.get("default", KEPT.key))[1] == 2


async def test_a_change_is_told_once_it_is_durable(engine: Engine, store: CountingStore) -> None:
    writing = asyncio.create_task(apply(engine, replace(OTHER, labels={"a": "b"})))
    await store.until_committing()
    reading = asyncio.create_task(engine.get("default", OTHER.key))
    await asyncio.sleep(0.01)
    told_before = reading.done()

    store.may_commit.set()

    found, revision = await reading
    await writing
    assert (told_before, found.labels, revision) == (False, {"a": "b"}, 2)


async def test_that_an_object_is_gone_is_told_once_that_is_durable(
    engine: Engine, store: CountingStore
) -> None:
    deleting = asyncio.create_task(delete(engine, OTHER))
    await store.until_committing()
    reading = asyncio.create_task(engine.get("default", OTHER.key))
    await asyncio.sleep(0.01)
    told_before = reading.done()

    store.may_commit.set()

    await deleting
    assert not told_before
    with pytest.raises(NotFoundError):
        await reading


async def test_a_change_that_is_lost_is_never_told(engine: Engine, store: CountingStore) -> None:
    writing = asyncio.create_task(apply(engine, replace(OTHER, labels={"a": "b"})))
    await store.until_committing()
    reading = asyncio.create_task(engine.get("default", OTHER.key))
    await asyncio.sleep(0.01)

    store.refuses = True
    store.may_commit.set()

    for asked in (writing, reading):
        with pytest.raises(UnavailableError):
            await asked
