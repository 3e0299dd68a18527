"""Cycles and the transactions that callers wait for: neither keeps the other from its turn, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from muster.engine.cluster_service import ClusterService
from muster.model.objects import ClusterObject
from tests.engine.counting_store import SOON, CountingStore
from tests.engine.reserving_cluster import single
from tests.engine.started_registry import OVER, putting, started
from tests.engine.tree_cluster import node
from tests.fakes.clock import FakeClock

FOR_EVER = 1e9
LONG_SECONDS = 3600
TURNS = 400
FEW_TURNS = 5
UNITS = 40


class TickingClock(FakeClock):
    """A millisecond goes by whenever somebody looks at it."""

    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


@pytest.fixture
def store(sqlite_database: str) -> CountingStore:
    return CountingStore(sqlite_database)


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
async def service(store: CountingStore, clock: TickingClock) -> AsyncIterator[ClusterService]:
    registry = await started(store, clock)
    made = registry.services["default"]
    write(made, node("n", cpu=1000))
    await made.durable()
    store.forget()
    yield made
    store.may_commit.set()
    await registry.close(OVER)


def write(service: ClusterService, *objects: ClusterObject) -> None:
    service.write(putting(objects))


def bound(service: ClusterService) -> int:
    return sum(bool(each.node_name) for each in service.cluster.state.pods())


async def many_turns(turns: int = TURNS) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def all_bound(service: ClusterService, count: int) -> None:
    async with asyncio.timeout(SOON):
        while bound(service) < count:  # noqa: ASYNC110 - what is asked is when memory has it
            await asyncio.sleep(0.001)


async def test_units_that_come_while_a_transaction_is_on_its_way_are_decided_when_it_has_ended(
    service: ClusterService, store: CountingStore
) -> None:
    store.may_commit.clear()
    write(service, node("awaited", cpu=1))
    call = asyncio.create_task(service.durable())
    await store.until_committing()

    for number in range(3):
        write(service, single(f"p-{number}", 1))
        await many_turns()
    decided_meanwhile = bound(service)
    store.may_commit.set()
    await call

    assert decided_meanwhile == 0
    await all_bound(service, 3)


async def test_units_of_callers_who_come_together_are_decided_together_and_written_once(
    service: ClusterService, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.filling.PATIENCE_SECONDS", SOON)

    async def call(number: int) -> None:
        write(service, single(f"p-{number}", 1))
        await service.durable()

    await asyncio.gather(*(call(number) for number in range(2)))
    store.forget()
    first = asyncio.create_task(call(2))
    await many_turns(FEW_TURNS)
    decided_before_the_other = bound(service) - 2
    await asyncio.gather(first, call(3))

    assert decided_before_the_other == 0
    assert store.revisions == [4]
    assert bound(service) == 4


@pytest.mark.parametrize("beside_seconds", [FOR_EVER, None], ids=["for as long as they like", "as they are"])
async def test_cycles_go_on_beside_a_transaction_for_a_while(
    service: ClusterService,
    store: CountingStore,
    clock: TickingClock,
    beside_seconds: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muster.engine.unit_runs.MOST_UNITS", 1)
    if beside_seconds is not None:
        monkeypatch.setattr("muster.engine.cycle.BESIDE_SECONDS", beside_seconds)
    write(service, *(single(f"p-{number}", cpu=2000) for number in range(UNITS)))
    await many_turns()
    await service.durable()
    clock.advance(LONG_SECONDS)
    store.forget()
    store.may_commit.clear()
    write(service, node("large", cpu=UNITS * 2000))
    call = asyncio.create_task(service.durable())
    await store.until_committing()
    await many_turns()
    decided_meanwhile = bound(service)
    store.may_commit.set()
    await call

    assert (decided_meanwhile == UNITS) == (beside_seconds == FOR_EVER)
    await all_bound(service, UNITS)
