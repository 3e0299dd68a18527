"""What calls that wait for cycles of a unit answer when it changes meanwhile, also while a worker has it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import (
    ApplyCall,
    DecisionFilter,
    DeleteCall,
    DeleteRef,
    PreemptAnswer,
    PreemptCall,
    ScheduleAnswer,
    ScheduleCall,
)
from muster.engine.engine import Engine
from muster.engine.errors import NotFoundError, UnavailableError
from muster.engine.registry import EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.objects import ClusterObject
from muster.store.store import SqlStore
from tests.engine.held_pool import HeldPool
from tests.engine.tree_cluster import PROFILE, composite, leaf, node, pods
from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds

PATIENCE_SECONDS = 10
ROOT = composite("root", 1)
GANG = leaf("gang", 2, parent=ROOT)
MEMBERS = pods(GANG, 2)
LATER = leaf("later", 1)
BIG = leaf("big", 9)
SCHEDULE = ScheduleCall("default", ROOT.key, validate_only=False)
PREEMPT = PreemptCall("default", ROOT.key, validate_only=False)


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
    await apply(made, node("n"), ROOT, GANG, *MEMBERS)
    yield made
    answering = asyncio.create_task(keep_answering(made))
    await made.drain()
    answering.cancel()


async def apply(engine: Engine, *sent: ClusterObject, cluster: str = "default") -> None:
    await engine.apply(ApplyCall(cluster, list(sent), [f"objects[{i}]." for i in range(len(sent))]))


async def delete(engine: Engine, *gone: ClusterObject, force: bool = False) -> None:
    await engine.delete(DeleteCall("default", [DeleteRef(each.key) for each in gone], force=force))


async def keep_answering(engine: Engine) -> None:
    while True:
        pool_of(engine).answer()
        await asyncio.sleep(0)


def pool_of(engine: Engine) -> HeldPool:
    pool = engine._registry._pool
    assert isinstance(pool, HeldPool)
    return pool


async def asked(engine: Engine, call: ScheduleCall | PreemptCall) -> ScheduleAnswer | PreemptAnswer:
    return await (engine.preempt(call) if isinstance(call, PreemptCall) else engine.schedule(call))


async def begun(call: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The call, which waits by now."""
    begun = asyncio.create_task(call)
    await asyncio.sleep(0.01)
    assert not begun.done()
    return begun


async def answered(asking: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await asking


def decision_of(answer: ScheduleAnswer | PreemptAnswer) -> Decision:
    assert answer.decision is not None
    return answer.decision.decision


@pytest.mark.parametrize("call", [SCHEDULE, PREEMPT], ids=["Schedule", "Preempt"])
class TestWhileAWorkerHasTheUnit:
    async def test_a_unit_that_lost_a_member_is_gated(
        self, engine: Engine, call: ScheduleCall | PreemptCall
    ) -> None:
        asking = await begun(asked(engine, call))

        await delete(engine, MEMBERS[0])
        pool_of(engine).answer()

        decision = decision_of(await answered(asking))
        assert decision.code is DecisionCode.GATED
        assert decision.message.endswith("PodGroup default/gang: 1 of 2 members")

    async def test_a_unit_that_is_gone_is_said_to_be(
        self, engine: Engine, call: ScheduleCall | PreemptCall
    ) -> None:
        asking = await begun(asked(engine, call))

        await delete(engine, ROOT, force=True)
        pool_of(engine).answer()

        decision = decision_of(await answered(asking))
        assert (decision.code, decision.message) == (DecisionCode.UNCHANGED, "the unit is gone")

    async def test_a_unit_on_its_way_out_is_gated(
        self, engine: Engine, call: ScheduleCall | PreemptCall
    ) -> None:
        asking = await begun(asked(engine, call))

        await delete(engine, ROOT)
        pool_of(engine).answer()

        decision = decision_of(await answered(asking))
        assert decision.message == "CompositePodGroup default/root is being deleted"


@pytest.mark.parametrize("call_type", [ScheduleCall, PreemptCall])
class TestWhileAnotherUnitIsDecided:
    """The worker does not answer at all: nothing that the calls are told comes from a cycle."""

    async def test_a_unit_in_the_queue_that_is_deleted_is_said_to_be_gone(
        self, engine: Engine, call_type: type[ScheduleCall | PreemptCall]
    ) -> None:
        await apply(engine, LATER, *pods(LATER, 1))
        asking = await begun(asked(engine, call_type("default", LATER.key, validate_only=False)))

        await delete(engine, LATER, *pods(LATER, 1), force=True)

        decision = decision_of(await answered(asking))
        assert (decision.code, decision.message) == (DecisionCode.UNCHANGED, "the unit is gone")

    async def test_a_unit_in_the_queue_that_loses_a_member_is_gated(
        self, engine: Engine, call_type: type[ScheduleCall | PreemptCall]
    ) -> None:
        pair = leaf("pair", 2)
        await apply(engine, pair, *pods(pair, 2))
        asking = await begun(asked(engine, call_type("default", pair.key, validate_only=False)))

        await delete(engine, *pods(pair, 1))

        assert decision_of(await answered(asking)).code is DecisionCode.GATED

    async def test_calls_of_a_cluster_that_is_loaded_again_are_to_be_repeated(
        self, engine: Engine, call_type: type[ScheduleCall | PreemptCall]
    ) -> None:
        await apply(engine, LATER, *pods(LATER, 1))
        asking = await begun(asked(engine, call_type("default", LATER.key, validate_only=False)))

        engine._registry._lost("default")
        await asyncio.sleep(0.01)
        pool_of(engine).answer()

        with pytest.raises(UnavailableError):
            await answered(asking)


@pytest.mark.parametrize("call_type", [ScheduleCall, PreemptCall])
async def test_calls_of_a_deleted_cluster_are_told_that_it_is_gone(
    engine: Engine, call_type: type[ScheduleCall | PreemptCall]
) -> None:
    await apply(engine, node("n"), ROOT, GANG, *MEMBERS, LATER, *pods(LATER, 1), cluster="other")
    asking = await begun(asked(engine, call_type("other", LATER.key, validate_only=False)))
    deleting = asyncio.create_task(engine.delete_cluster("other"))
    await asyncio.sleep(0.01)
    pool_of(engine).answer()

    with pytest.raises(NotFoundError, match="cluster 'other' was deleted"):
        await answered(asking)
    await answered(deleting)


async def test_a_watch_of_decisions_ends_with_its_cluster(engine: Engine) -> None:
    await apply(engine, node("n"), cluster="other")
    watch = engine.decisions("other", None, DecisionFilter())
    watching = await begun(anext(watch))  # type: ignore[arg-type]

    await engine.delete_cluster("other")

    with pytest.raises(NotFoundError, match="cluster 'other' was deleted"):
        await answered(watching)


class TestSchedulingWithWait:
    """A wait of ten minutes ends before its time only with an answer."""

    async def test_ends_when_a_unit_that_does_not_fit_is_deleted(self, engine: Engine) -> None:
        answering = asyncio.create_task(keep_answering(engine))
        await apply(engine, BIG, *pods(BIG, 9))
        asking = await begun(asked(engine, waiting_for(BIG)))

        await delete(engine, BIG, *pods(BIG, 9), force=True)

        decision = decision_of(await answered(asking))
        answering.cancel()
        assert (decision.code, decision.message) == (DecisionCode.UNCHANGED, "the unit is gone")

    async def test_ends_when_nothing_is_left_that_waits_for_a_missing_group(self, engine: Engine) -> None:
        orphan = pods(LATER, 1)[0]
        await apply(engine, orphan)
        asking = await begun(asked(engine, waiting_for(orphan)))

        await delete(engine, orphan)

        assert decision_of(await answered(asking)).message == "the unit is gone"

    async def test_follows_an_object_into_the_tree_that_it_turns_out_to_be_part_of(
        self, engine: Engine
    ) -> None:
        answering = asyncio.create_task(keep_answering(engine))
        top = composite("top", 1)
        middle = leaf("later", 1, parent=top)
        member = pods(middle, 1)[0]
        await apply(engine, member)
        asking = await begun(asked(engine, waiting_for(member)))

        await apply(engine, middle)
        await apply(engine, top)

        decision = decision_of(await answered(asking))
        answering.cancel()
        assert (decision.unit, decision.code) == (top.key, DecisionCode.SCHEDULED)

    async def test_goes_on_while_the_unit_is_short_of_members(self, engine: Engine) -> None:
        answering = asyncio.create_task(keep_answering(engine))
        pair = leaf("pair", 2)
        await apply(engine, pair, *pods(pair, 1))
        asking = await begun(asked(engine, waiting_for(pair)))

        await apply(engine, *pods(pair, 1, first=1))

        assert decision_of(await answered(asking)).code is DecisionCode.SCHEDULED
        answering.cancel()


def waiting_for(item: ClusterObject) -> ScheduleCall:
    return ScheduleCall("default", item.key, validate_only=False, wait_seconds=600)


@pytest.mark.parametrize("kind", [ScheduleCall, PreemptCall])
async def test_a_unit_that_only_another_scheduler_could_place_is_said_to_be_one(
    engine: Engine, kind: type[ScheduleCall | PreemptCall]
) -> None:
    gang = leaf("elsewhere", 1)
    foreign = [replace(pod, spec=replace(pod.spec, scheduler_name="other")) for pod in pods(gang, 2)]
    await apply(engine, gang, *foreign)

    answer = await asked(engine, kind("default", gang.key, validate_only=False))

    assert answer.decision is not None
    assert answer.decision.decision.message == (
        "no pod of the unit waits for a node, only 2 pods of a scheduler that is not served here: 'other'"
    )
