"""Decisions in worker processes: equal to those made here, on the state of the moment, whatever happens to a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from muster.core.decide import decide
from muster.core.decision import Decision, SearchEnd
from muster.core.framework import Profile
from muster.core.observer import NullObserver, Observer
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine import warm_up
from muster.engine.array_feed import ArrayFeed
from muster.engine.worker_pool import WorkerAnswer, WorkerFailedError, WorkerPool
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey
from muster.plugins.profile import default_profile
from tests.dsl import node, pod
from tests.engine.unruly_filters import (
    KillsItself,
    NeverAnswers,
    Raises,
    RefusesHeavyImports,
    with_filter,
)


@dataclass
class Fed:
    """A cluster's arrays with nodes of four CPUs, and pods that take one each."""

    feed: ArrayFeed = field(default_factory=ArrayFeed)
    last: int = 0

    def add_node(self, name: str) -> None:
        self.feed.node_changed(None, node(name, "4"))

    def run(self, node_name: str) -> None:
        self.last += 1
        self.feed.pod_changed(None, replace(pod(), ordinal=self.last, node_name=node_name))

    def gang(self, size: int) -> Unit:
        ids = tuple(range(self.last + 1, self.last + size + 1))
        self.last += size
        pods = PendingPods(ids, (self.feed.signature_of(pod()),) * size)
        return Unit(GroupTree(ObjectKey(POD_GROUP, "default", "g"), is_gang=True, minimum=size, pods=pods))


@dataclass
class Workers:
    """A pool, and how often it gave a worker up."""

    pool: WorkerPool
    restarts: int = 0

    async def decide(
        self,
        fed: Fed,
        unit: Unit,
        profile: Profile | None = None,
        *,
        cluster: str = "c",
        is_recording: bool = False,
    ) -> WorkerAnswer:
        return await self.pool.decide(
            cluster, fed.feed, lambda: unit, profile or default_profile(), is_recording=is_recording
        )


def _workers(size: int, limit: float = 60.0) -> Workers:
    def restarted() -> None:
        made.restarts += 1

    made = Workers(WorkerPool(size, limit, restarted))
    return made


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    made = _workers(1)
    yield made
    await made.pool.close()


@pytest.fixture
def fed() -> Fed:
    made = Fed()
    made.add_node("a")
    made.add_node("b")
    return made


@pytest.mark.parametrize("changed", ["more pods", "another node", "nothing"])
async def test_a_replica_decides_as_its_original_does_after_a_change(
    workers: Workers, fed: Fed, changed: str
) -> None:
    await workers.decide(fed, fed.gang(7))
    if changed == "more pods":
        fed.run("a")
        fed.run("b")
    elif changed == "another node":
        fed.add_node("c")
        fed.run("c")
    unit = fed.gang(7)

    answer = await workers.decide(fed, unit)

    assert answer.decision == decide(fed.feed.flush(), unit, default_profile(), NullObserver())
    assert answer.snapshot_version == fed.feed.snapshot.version
    assert len(answer.decision.assignments.pods) == (0 if changed == "more pods" else 7)


async def test_a_worker_that_was_prepared_knows_the_arrays_before_it_is_asked(
    workers: Workers, fed: Fed
) -> None:
    workers.pool.prepare("c", fed.feed)
    await asyncio.sleep(0)
    is_followed = fed.feed.is_followed
    unit = fed.gang(8)

    answer = await workers.decide(fed, unit)

    assert answer.decision == decide(fed.feed.flush(), unit, default_profile(), NullObserver())
    assert is_followed
    assert len(answer.decision.assignments.pods) == 8


async def test_a_decision_sees_the_state_of_the_moment_at_which_its_turn_comes(
    workers: Workers, fed: Fed
) -> None:
    first = asyncio.create_task(workers.decide(fed, fed.gang(1)))
    await asyncio.sleep(0)
    second = asyncio.create_task(workers.decide(fed, fed.gang(9)))
    await asyncio.sleep(0)
    before = fed.feed.snapshot.version
    fed.add_node("c")

    assert (await first).snapshot_version == before
    answer = await second

    assert answer.snapshot_version == before + 1
    assert answer.decision.code.value == "SCHEDULED"


async def test_observer_events_come_home_if_they_are_asked_for(workers: Workers, fed: Fed) -> None:
    silent = await workers.decide(fed, fed.gang(1))
    heard = await workers.decide(fed, fed.gang(1), is_recording=True)

    assert list(silent.events) == []
    assert [event[0] for event in heard.events] == ["enter"] * 3 + ["leave"] * 3


async def test_an_error_in_the_core_is_told_and_costs_no_worker(workers: Workers, fed: Fed) -> None:
    with pytest.raises(WorkerFailedError, match="ValueError: no mask today"):
        await workers.decide(fed, fed.gang(1), with_filter(Raises()))

    answer = await workers.decide(fed, fed.gang(8))

    assert answer.decision.code.value == "SCHEDULED"
    assert workers.restarts == 0


async def test_a_killed_worker_fails_its_unit_alone_and_all_its_clusters_go_on(
    workers: Workers, fed: Fed
) -> None:
    other = Fed()
    other.add_node("x")
    await workers.decide(fed, fed.gang(1))
    await workers.decide(other, other.gang(1), cluster="other")
    fed.run("a")

    with pytest.raises(WorkerFailedError, match="died"):
        await workers.decide(fed, fed.gang(1), with_filter(KillsItself()))

    assert workers.restarts == 1
    assert (await workers.decide(fed, fed.gang(7))).decision.code.value == "SCHEDULED"
    assert (await workers.decide(fed, fed.gang(8))).decision.code.value == "UNSCHEDULABLE"
    assert (await workers.decide(other, other.gang(4), cluster="other")).decision.code.value == "SCHEDULED"


async def test_a_worker_that_overruns_its_limit_is_given_up(fed: Fed) -> None:
    slow = _workers(1, limit=4.0)
    await slow.decide(fed, fed.gang(1))

    with pytest.raises(WorkerFailedError, match="overran its limit of 4 s"):
        await slow.decide(fed, fed.gang(1), with_filter(NeverAnswers()))

    assert slow.restarts == 1
    assert (await slow.decide(fed, fed.gang(8))).decision.code.value == "SCHEDULED"
    await slow.pool.close()


async def test_what_cannot_be_sent_fails_its_unit_alone(workers: Workers, fed: Fed) -> None:
    class Local(Raises):
        """Pickle finds no name for it."""

    with pytest.raises(WorkerFailedError, match="cannot be told"):
        await workers.decide(fed, fed.gang(1), with_filter(Local()))

    assert (await workers.decide(fed, fed.gang(8))).decision.code.value == "SCHEDULED"


async def test_an_asker_who_leaves_costs_no_worker(workers: Workers, fed: Fed) -> None:
    left = asyncio.create_task(workers.decide(fed, fed.gang(1)))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    fed.add_node("c")

    answer = await workers.decide(fed, fed.gang(12))

    assert answer.decision.code.value == "SCHEDULED"
    assert workers.restarts == 0


async def test_a_forgotten_cluster_is_sent_anew(workers: Workers, fed: Fed) -> None:
    await workers.decide(fed, fed.gang(1))
    workers.pool.forget("c")
    reloaded = Fed()
    reloaded.add_node("z")

    answer = await workers.decide(reloaded, reloaded.gang(4))

    assert answer.decision.assignments.nodes == ("z",)


async def test_a_pool_without_workers_decides_here(fed: Fed) -> None:
    here = _workers(0)
    unit = fed.gang(8)

    answer = await here.decide(fed, unit, is_recording=True)

    assert answer.decision == decide(fed.feed.flush(), unit, default_profile(), NullObserver())
    assert [event[0] for event in answer.events] == ["enter"] * 3 + ["leave"] * 3
    with pytest.raises(WorkerFailedError, match="no mask today"):
        await here.decide(fed, unit, with_filter(Raises()))
    await here.pool.close()


async def test_closing_fails_units_in_work_and_is_no_restart(fed: Fed) -> None:
    closing = _workers(1)
    in_work = asyncio.create_task(closing.decide(fed, fed.gang(1)))
    waiting = asyncio.create_task(closing.decide(fed, fed.gang(1)))
    await asyncio.sleep(0)

    await closing.pool.close()

    for each in (in_work, waiting):
        with pytest.raises(WorkerFailedError):
            await each
    assert closing.restarts == 0


async def test_a_worker_loads_nothing_but_the_core(workers: Workers, fed: Fed) -> None:
    answer = await workers.decide(fed, fed.gang(1), with_filter(RefusesHeavyImports()))

    assert answer.decision.code.value == "SCHEDULED"


async def test_a_question_that_is_in_work_already_is_not_asked_again(workers: Workers, fed: Fed) -> None:
    unit = fed.gang(7)

    first, again = await asyncio.gather(workers.decide(fed, unit), workers.decide(fed, replace(unit)))

    assert again.decision is first.decision
    assert again.snapshot_version == first.snapshot_version


async def test_a_question_on_a_changed_cluster_is_another_one(workers: Workers, fed: Fed) -> None:
    unit = fed.gang(9)
    asked = asyncio.create_task(workers.decide(fed, unit))
    await asyncio.sleep(0)
    fed.add_node("c")

    answers = [await workers.decide(fed, unit), await asked]

    assert [each.decision.code.value for each in answers] == ["SCHEDULED", "UNSCHEDULABLE"]


def test_warming_up_takes_every_way_to_a_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Decision] = []

    def noted(snapshot: Snapshot, unit: Unit, profile: Profile, observer: Observer) -> Decision:
        made.append(decide(snapshot, unit, profile, observer))
        return made[-1]

    monkeypatch.setattr(warm_up, "decide", noted)

    warm_up.warm_up()

    searched = {(each.search.end, each.unit.kind) for each in made if each.search.steps}
    assert {(SearchEnd.FOUND, POD_GROUP), (SearchEnd.FOUND, COMPOSITE_POD_GROUP)} <= searched
    assert SearchEnd.NOT_NEEDED in {each.search.end for each in made}
    assert SearchEnd.EXHAUSTED in {each.search.end for each in made}


async def test_a_worker_that_dies_while_it_starts_holds_nobody_up(fed: Fed) -> None:
    made = _workers(1)
    made.pool.warm_up()
    (started,) = made.pool._workers.values()
    started.process.kill()

    await made.pool.ready()

    answer = await made.decide(fed, fed.gang(1))
    assert answer.decision.code.value == "SCHEDULED"
    assert made.restarts == 1
    await made.pool.close()
