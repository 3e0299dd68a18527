"""A cluster on its way out: what calls on it are told, and that it comes back if the store does not delete it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from muster.engine.api import DeleteOutcome
from muster.engine.engine import Engine
from muster.engine.errors import FailedPreconditionError, NotFoundError, UnavailableError
from muster.engine.ports import StoreUnavailableError
from muster.store.store import SqlStore
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import node
from tests.fakes.clock import FakeClock

SECONDS = 10.0
NODE = node("n")


class SlowToDelete(SqlStore):
    """Deletes a cluster once it is let, or fails to."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.is_deleting = threading.Event()
        self.go_on = threading.Event()
        self.is_broken = False

    def delete_cluster(self, cluster: str, token: int) -> None:
        self.is_deleting.set()
        self.go_on.wait(SECONDS)
        if self.is_broken:
            raise StoreUnavailableError("the disk is gone")
        super().delete_cluster(cluster, token)


@pytest.fixture
def store(store_url: str) -> SlowToDelete:
    return SlowToDelete(store_url)


@pytest.fixture
async def engine(store: SlowToDelete, clock: FakeClock) -> AsyncIterator[Engine]:
    """Has a cluster `doomed` with a node."""
    made = await started_engine(store, clock)
    await made.apply(applying([NODE], "doomed"))
    yield made
    store.go_on.set()
    await made.drain()


async def begun(engine: Engine, store: SlowToDelete) -> asyncio.Task[DeleteOutcome]:
    deleting = asyncio.create_task(engine.delete_cluster("doomed"))
    assert await asyncio.to_thread(store.is_deleting.wait, SECONDS)
    return deleting


async def test_calls_on_it_are_told_that_it_is_being_deleted(engine: Engine, store: SlowToDelete) -> None:
    deleting = await begun(engine, store)

    with pytest.raises(FailedPreconditionError) as read:
        await engine.get("doomed", NODE.key)
    with pytest.raises(FailedPreconditionError) as written:
        await engine.apply(applying([node("other")], "doomed"))
    again = await engine.delete_cluster("doomed")

    store.go_on.set()
    assert (read.value.reason, written.value.reason) == ("CLUSTER_DELETING", "CLUSTER_DELETING")
    assert (again, await deleting) == (DeleteOutcome.MARKED, DeleteOutcome.DELETED)
    with pytest.raises(NotFoundError):
        await engine.get("doomed", NODE.key)


async def test_it_goes_even_if_the_caller_leaves(engine: Engine, store: SlowToDelete) -> None:
    deleting = await begun(engine, store)

    deleting.cancel()
    await asyncio.wait([deleting])
    store.go_on.set()

    async with asyncio.timeout(SECONDS):
        while "doomed" in [each.name for each in await engine.list_clusters()]:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
    await engine.apply(applying([NODE], "doomed"))
    assert (await engine.get("doomed", NODE.key))[1] == 1


async def test_it_is_back_if_the_store_does_not_delete_it(engine: Engine, store: SlowToDelete) -> None:
    deleting = await begun(engine, store)

    store.is_broken = True
    store.go_on.set()
    with pytest.raises(StoreUnavailableError):
        await deleting

    found = None
    async with asyncio.timeout(SECONDS):
        while found is None:
            try:
                found, _ = await engine.get("doomed", NODE.key)
            except UnavailableError:
                await asyncio.sleep(0.001)
    assert found.name == "n"
    await engine.apply(applying([node("other")], "doomed"))
    store.is_broken = False
    assert await engine.delete_cluster("doomed") is DeleteOutcome.DELETED
