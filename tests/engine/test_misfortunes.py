"""What goes wrong around the queue: plugins that raise or hang, clocks that jump, errors in the engine itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pytest

from muster.core.arrays import BoolArray
from muster.core.node_table import NodeTable
from muster.core.signature import Signature
from muster.engine.cluster_service import ClusterService
from muster.engine.errors import Refusal
from muster.engine.mutation import Mutation
from muster.engine.ports import UnitState
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.worker_pool import WorkerPool
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, Toleration
from muster.store.store import SqlStore
from tests import dsl
from tests.engine.queue_worlds import ours
from tests.engine.tree_cluster import PROFILE, node, told
from tests.fakes.clock import FakeClock

SOON = 60.0


@dataclass(frozen=True)
class Unruly:
    """A filter that does to each pod what it tolerates."""

    code = "UNRULY"
    message = "node(s) were unruly"

    def mask(self, signature: Signature, nodes: NodeTable) -> BoolArray | None:
        tolerated = {each.key for each in signature.spec.tolerations}
        if "raises" in tolerated:
            raise ValueError("no mask today")
        if "hangs" in tolerated:
            time.sleep(60)
        return None


class Counting(NullTelemetry):
    def __init__(self) -> None:
        self.moves: list[tuple[str, str]] = []

    def queue_moved(self, state: str, event: str, units: int) -> None:
        self.moves += [(state, event)] * units


class Jumping(FakeClock):
    """A wall clock that can be put back while monotonic time goes on."""

    def jump(self, seconds: float) -> None:
        self._start += timedelta(seconds=seconds)


@dataclass(eq=False)
class Unlucky:
    registry: ClusterRegistry
    clock: Jumping
    telemetry: Counting
    made: int = 0

    @property
    def service(self) -> ClusterService:
        return self.registry.services["default"]

    def apply(self, *objects: ClusterObject) -> None:
        def put(mutation: Mutation) -> tuple[None, bool]:
            for each in objects:
                self.made += 1
                mutation.put(
                    replace(each, uid=each.name, ordinal=self.made, resource_version=mutation.revision)
                )
            return None, True

        self.service.write(put)

    def pod(self, name: str) -> Pod:
        found = self.service.cluster.state.pod("default", name)
        assert found is not None
        return found

    def state_of(self, name: str) -> UnitState | None:
        row = self.service.cluster.queue.get(ObjectKey("Pod", "default", name))
        return row.state if row is not None else None

    async def until_bound(self, name: str) -> None:
        async with asyncio.timeout(SOON):
            while not self.service.available or not self.pod(name).node_name:  # noqa: ASYNC110
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(store: str, workers: int) -> AsyncIterator[Unlucky]:
    profile = replace(PROFILE, node_filters=(*PROFILE.node_filters, Unruly()))
    clock, telemetry = Jumping(), Counting()
    options = EngineOptions(workers=workers)
    registry = ClusterRegistry(SqlStore(store), clock, {profile.name: profile}, telemetry, options)
    await registry.start()
    yield Unlucky(registry, clock, telemetry)
    await registry.close(Refusal("SERVER_DRAINING", "the test is over"))


@pytest.fixture
async def unlucky(sqlite_database: str) -> AsyncIterator[Unlucky]:
    async with running(sqlite_database, workers=0) as made:
        yield made


@pytest.fixture
async def with_worker(sqlite_database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Unlucky]:
    monkeypatch.setattr("muster.engine.registry.WorkerPool", partial(WorkerPool, time_limit_seconds=10.0))
    async with running(sqlite_database, workers=1) as made:
        yield made


def named(name: str, *, plugin: str = "") -> Pod:
    tolerations = (Toleration(key=plugin, operator="Exists"),) if plugin else ()
    return replace(ours(dsl.pod(tolerations=tolerations)), name=name)


@pytest.mark.parametrize(("what", "says"), [("raises", "no mask today"), ("hangs", "overran its limit")])
async def test_a_plugin_that_fails_spoils_its_unit_alone(with_worker: Unlucky, what: str, says: str) -> None:
    unlucky = with_worker
    unlucky.apply(node("n"), named("a-spoilt", plugin=what), named("good"))

    await unlucky.until_bound("good")

    status, reason, message = told(unlucky.pod("a-spoilt").status.conditions)
    assert (status, reason) == ("False", "SchedulerError")
    assert says in message
    assert unlucky.state_of("a-spoilt") is UnitState.BACKOFF
    assert ("BACKOFF", "ScheduleAttemptError") in unlucky.telemetry.moves


async def test_a_unit_whose_plugin_recovers_is_placed_after_its_backoff(unlucky: Unlucky) -> None:
    unlucky.apply(node("n"), named("a-spoilt", plugin="raises"), named("good"))
    await unlucky.until_bound("good")

    unlucky.apply(named("a-spoilt"))

    await unlucky.until_bound("a-spoilt")


async def test_a_clock_that_is_put_back_holds_no_unit_longer_than_a_backoff(unlucky: Unlucky) -> None:
    unlucky.apply(node("n"), named("good"), named("a-spoilt", plugin="raises"))
    await unlucky.until_bound("good")
    async with asyncio.timeout(SOON):
        while unlucky.state_of("a-spoilt") is not UnitState.BACKOFF:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    unlucky.service._tick()
    tries = unlucky.telemetry.moves.count(("BACKOFF", "ScheduleAttemptError"))

    unlucky.clock.jump(-100_000)
    unlucky.service._tick()
    unlucky.clock.advance(11)
    unlucky.service._tick()

    async with asyncio.timeout(SOON):
        while unlucky.telemetry.moves.count(("BACKOFF", "ScheduleAttemptError")) == tries:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("where", ["cycles", "timers"])
async def test_an_error_in_the_engine_itself_has_the_cluster_loaded_again_and_loses_no_unit(
    unlucky: Unlucky, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    unlucky.apply(named("good"))
    await unlucky.service.durable()
    broken = iter([True])
    cluster = unlucky.service.cluster
    if where == "cycles":
        pop = cluster.queue.pop
        monkeypatch.setattr(cluster.queue, "pop", lambda: 1 // 0 if next(broken, False) else pop())
    else:
        due = cluster.queue.due
        monkeypatch.setattr(cluster.queue, "due", lambda now: 1 // 0 if next(broken, False) else due(now))

    unlucky.apply(named("more"))
    async with asyncio.timeout(SOON):
        while unlucky.service.cluster is cluster:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    unlucky.apply(node("n"))
    await unlucky.until_bound("good")
