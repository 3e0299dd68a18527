"""The starving gang in a whole engine: store, cycles and timers as they are served, by a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

import pytest

from muster.core.framework import ReservationSettings
from muster.engine.api import ObjectFilter, PhaseChanged, PodReport, ReportCall
from muster.engine.engine import Engine
from muster.engine.ports import UnitState
from muster.model.meta import POD
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.model.run_time import max_run_time_seconds
from muster.store.store import SqlStore
from tests.engine.reserving_cluster import gang, single
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import PROFILE, node
from tests.fakes.clock import FakeClock

AFTER_SECONDS = 10
SIZE = 64
RUN_SECONDS = (7, 19, 11, 23, 5, 13)
BUSY = frozenset({UnitState.ACTIVE, UnitState.IN_FLIGHT})
PATIENCE_SECONDS = 30
ABOUT = timedelta(seconds=2)


class Served:
    """An engine on a store, with a stream of single pods that finish when they said that they would."""

    def __init__(self, engine: Engine, clock: FakeClock) -> None:
        self._engine = engine
        self._clock = clock
        self._numbers = count()
        self._ends: dict[str, float] = {}

    async def apply(self, *sent: ClusterObject) -> None:
        await self._engine.apply(applying(sent))

    async def go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            waiting = sum(not pod.group and not pod.node_name for pod in await self.pods())
            numbers = [next(self._numbers) for _ in range(8 - waiting)]
            if numbers:
                await self.apply(*(single(f"s-{i}", RUN_SECONDS[i % len(RUN_SECONDS)]) for i in numbers))
            await self._at_rest()
            await self._second()

    async def pods(self) -> list[Pod]:
        answer = await self._engine.list_objects("default", ObjectFilter(frozenset({POD})))
        return [each for each in answer.objects if isinstance(each, Pod) and not each.is_terminal]

    async def has_started(self) -> bool:
        return sum(bool(pod.group and pod.node_name) for pod in await self.pods()) == SIZE

    async def estimate(self) -> str:
        """When the queue says that the gang starts."""
        answer = await self._engine.queue("default", frozenset())
        [reason] = [each.reserved for each in answer.units if each.reserved is not None]
        return reason.details["estimated_start"]

    async def _second(self) -> None:
        """One second passes, and those whose time is over finish."""
        for pod in await self.pods():
            seconds = max_run_time_seconds(pod)
            if pod.node_name and seconds is not None:
                self._ends.setdefault(pod.name, self._clock.monotonic() + seconds)
        self._clock.advance(1)
        over = [name for name, end in self._ends.items() if end <= self._clock.monotonic()]
        reports = [PodReport("default", name, "", PhaseChanged("Succeeded", "", "")) for name in over]
        if reports:
            await self._engine.report_pods(ReportCall("default", reports))
        for name in over:
            del self._ends[name]
        await self._at_rest()

    async def _at_rest(self) -> None:
        """Once no unit is to be tried."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self._engine.queue("default", BUSY)).units:  # noqa: ASYNC110 - no event tells of rest
                await asyncio.sleep(0)


@pytest.fixture
async def served(sqlite_database: str, clock: FakeClock) -> AsyncIterator[Served]:
    profile = replace(PROFILE, reservation=ReservationSettings(AFTER_SECONDS))
    engine = await started_engine(SqlStore(sqlite_database), clock, profile)
    made = Served(engine, clock)
    await made.apply(*(node(f"n-{i:02}", cpu=4) for i in range(18)))
    yield made
    await engine.drain()


async def test_a_starving_gang_starts_when_the_queue_said_that_it_would(
    served: Served, clock: FakeClock
) -> None:
    await served.go_on(10)
    group, members = gang(SIZE)
    await served.apply(group, *members)
    await served.go_on(AFTER_SECONDS + 1)
    told = datetime.fromisoformat(await served.estimate())
    assert not await served.has_started()

    while not await served.has_started() and clock.now() <= told + ABOUT:
        await served.go_on(1)

    assert await served.has_started()
    assert abs(clock.now() - told) <= ABOUT
