"""What Schedule answers when the unit that it asked for changes while a worker has it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from muster.core.decision import DecisionCode
from muster.engine.api import ApplyCall, DeleteCall, DeleteRef, ScheduleAnswer, ScheduleCall
from muster.engine.engine import Engine
from muster.engine.registry import EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.objects import ClusterObject
from muster.store.store import SqlStore
from tests.engine.held_pool import HeldPool
from tests.engine.tree_cluster import PROFILE, composite, leaf, node, pods
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds

ROOT = composite("root", 1)
GANG = leaf("gang", 2, parent=ROOT)
MEMBERS = pods(GANG, 2)


@pytest.fixture
async def engine(
    sqlite_database: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    """Has decided about the gang, but its worker has not answered."""
    monkeypatch.setattr("muster.engine.registry.WorkerPool", HeldPool)
    monkeypatch.setattr("muster.engine.deciding.INLINE_PODS", 0)
    store, profiles = SqlStore(sqlite_database), {PROFILE.name: PROFILE}
    made = Engine(store, clock, FakeIds(), profiles, NullTelemetry(), EngineOptions(workers=1))
    await made.start()
    sent: list[ClusterObject] = [node("n"), ROOT, GANG, *MEMBERS]
    await made.apply(ApplyCall("default", sent, [f"objects[{i}]." for i in range(len(sent))]))
    yield made
    answering = asyncio.create_task(keep_answering(made))
    await made.drain()
    answering.cancel()


async def keep_answering(engine: Engine) -> None:
    while True:
        pool_of(engine).answer()
        await asyncio.sleep(0)


def pool_of(engine: Engine) -> HeldPool:
    pool = engine._registry._pool
    assert isinstance(pool, HeldPool)
    return pool


async def asked_and_deleted(engine: Engine, *gone: ClusterObject, force: bool = False) -> ScheduleAnswer:
    """The answer to a Schedule call during which objects were deleted, and then the worker answered."""
    asking = asyncio.create_task(engine.schedule(ScheduleCall("default", ROOT.key, validate_only=False)))
    await asyncio.sleep(0)
    await engine.delete(DeleteCall("default", [DeleteRef(each.key) for each in gone], force=force))
    pool_of(engine).answer()
    async with asyncio.timeout(10):
        return await asking


async def test_a_unit_that_lost_a_member_is_gated(engine: Engine) -> None:
    answer = await asked_and_deleted(engine, MEMBERS[0])

    assert answer.decision is not None
    assert answer.decision.decision.code is DecisionCode.GATED
    assert answer.decision.decision.message.endswith("PodGroup default/gang: 1 of 2 members")


async def test_a_unit_that_is_gone_has_nothing_to_schedule(engine: Engine) -> None:
    answer = await asked_and_deleted(engine, ROOT, force=True)

    assert answer.decision is not None
    assert answer.decision.decision.code is DecisionCode.UNCHANGED
    assert answer.queue is None


async def test_a_unit_on_its_way_out_is_gated(engine: Engine) -> None:
    answer = await asked_and_deleted(engine, ROOT)

    assert answer.decision is not None
    assert answer.decision.decision.message == "CompositePodGroup default/root is being deleted"
