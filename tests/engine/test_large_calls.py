"""A large Apply is admitted in slices: reads go on beside it, writes wait, and what changed all the same is seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from muster.engine import apply_call, slices
from muster.engine.api import ApplyAnswer, DeleteCall, DeleteRef
from muster.engine.engine import Engine
from muster.engine.errors import ConflictError, InvalidArgumentError
from muster.engine.large_calls import LargeCalls
from muster.engine.mutation import Mutation
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.store.store import SqlStore
from muster.validation.admission import Outcome
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import node
from tests.fakes.clock import FakeClock

SOON = 10
NODES = [node(f"n-{number}") for number in range(1_500)]
CHANGED = [replace(each, labels={"a": "b"}) for each in NODES]


@pytest.fixture
async def engine(
    sqlite_database: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    """Holds the nodes. Whatever is done in slices gives way behind each object."""
    made = await started_engine(SqlStore(sqlite_database), clock)
    await made.apply(applying(NODES))
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    yield made
    await made.drain()


async def in_work(engine: Engine, sent: Sequence[ClusterObject]) -> asyncio.Task[ApplyAnswer]:
    """A large call of which some has been admitted, and not all."""
    calls = engine._registry.services["default"].cluster.large_calls
    begun = asyncio.create_task(engine.apply(applying(sent)))
    async with asyncio.timeout(SOON):
        while calls._in_work is None:  # noqa: ASYNC110 - the engine tells nobody when it begins
            await asyncio.sleep(0)
    return begun


def stored(engine: Engine) -> list[Node]:
    found = engine._registry.services["default"].cluster.state.objects["Node"].values()
    return [each for each in found if isinstance(each, Node)]


def write(engine: Engine, act: Callable[[Mutation], None]) -> None:
    """A revision of somebody who does not wait, such as a timer."""

    def step(mutation: Mutation) -> tuple[None, bool]:
        act(mutation)
        return None, True

    engine._registry.services["default"].write(step)


async def test_reads_go_on_and_see_what_was_before(engine: Engine) -> None:
    large, reads = await in_work(engine, CHANGED), 0

    while not large.done() and (found := (await engine.get("default", NODES[0].key))[0]).labels == {}:
        assert found.resource_version == 1
        reads += 1
        await asyncio.sleep(0)

    answer = await large
    assert reads > len(NODES) // 2
    assert {each.resource_version for each in stored(engine)} == {answer.revision}


async def test_writes_come_after_it(engine: Engine) -> None:
    large = await in_work(engine, CHANGED)
    writing = asyncio.create_task(engine.apply(applying([replace(NODES[7], labels={"c": "d"})])))
    deleting = asyncio.create_task(engine.delete(DeleteCall("default", [DeleteRef(NODES[8].key)])))

    first, small, deleted = await large, await writing, await deleting

    assert first.revision < min(small.revision, deleted.revision)
    assert (await engine.get("default", NODES[7].key))[0].labels == {"c": "d"}


@pytest.mark.parametrize("size", [2, len(NODES)])
async def test_another_large_call_comes_after_it(engine: Engine, size: int) -> None:
    first = await in_work(engine, CHANGED)

    answers = await asyncio.gather(
        first, engine.apply(applying([replace(each, labels={}) for each in NODES[:size]]))
    )

    assert answers[1].revision == answers[0].revision + 1
    assert [result.outcome for result in answers[1].results] == [Outcome.UPDATED] * size


async def test_what_was_written_all_the_same_is_seen(engine: Engine) -> None:
    large = await in_work(engine, CHANGED)
    other = replace(NODES[0], name="other", uid="other", resource_version=2, ordinal=2 << 20)

    write(engine, lambda mutation: mutation.put(other))
    write(engine, lambda mutation: mutation.remove(NODES[3].key))

    answer = await large
    outcomes = [result.outcome for result in answer.results]
    assert outcomes.count(Outcome.UPDATED) == len(NODES) - 1
    assert outcomes[3] is Outcome.CREATED
    versions = {each.resource_version for each in stored(engine) if each.name != "other"}
    assert versions == {answer.revision}
    assert len({each.ordinal for each in stored(engine)}) == len(NODES) + 1


async def test_a_precondition_holds_until_the_write(engine: Engine) -> None:
    sent = [*CHANGED[1:], replace(CHANGED[0], resource_version=1)]
    large = await in_work(engine, sent)

    write(engine, lambda mutation: mutation.put(replace(stored(engine)[0], resource_version=2)))

    with pytest.raises(ConflictError):
        await large
    assert stored(engine)[1].labels == {}


async def test_a_refused_one_lets_others_go_on(engine: Engine) -> None:
    large = await in_work(engine, [*CHANGED, CHANGED[0]])

    with pytest.raises(InvalidArgumentError, match="twice"):
        await large
    assert (await engine.apply(applying(CHANGED[:1]))).revision == 2


async def test_a_caller_who_leaves_lets_others_go_on(engine: Engine) -> None:
    large = await in_work(engine, CHANGED)

    large.cancel()

    assert (await engine.apply(applying(CHANGED[:1]))).revision == 2
    assert sum(each.labels == {"a": "b"} for each in stored(engine)) == 1


async def test_a_new_cluster_is_made_by_a_large_call(engine: Engine) -> None:
    answer = await engine.apply(applying(NODES, "new"))

    assert [each.outcome for each in answer.results] == [Outcome.CREATED] * len(NODES)


async def test_a_small_call_waits_for_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LargeCalls, "alone", None)

    answer = await engine.apply(applying(CHANGED[: apply_call.AT_ONCE]))

    assert answer.revision == 2
