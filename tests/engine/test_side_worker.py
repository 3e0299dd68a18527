"""Questions in the side worker: asked of a copy that is just like the cluster, bounded, and never in anybody's way."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from muster.engine import side_worker
from muster.engine.errors import NotFoundError, ResourceExhaustedError, UnavailableError
from muster.engine.mutation import Mutation
from muster.engine.side_link import Side
from muster.engine.side_worker import MOST_WAITING, SideWorker, SideWorkerFailedError
from muster.model.meta import POD, ObjectKey
from tests.engine import side_questions
from tests.engine.small_cluster import SmallCluster, composite, node, pod, pod_group

NAMES = frozenset({"default-scheduler"})


@dataclass
class Asking:
    """A side worker, and how often it gave its process up."""

    side: SideWorker
    restarts: int = 0

    def commit(self, held: SmallCluster) -> None:
        """What the writer does with what was written."""
        writes = held.cluster.take_writes()
        if writes is not None:
            self.side.note(writes)

    @property
    def process(self) -> Side:
        """What runs at the moment. Raises LookupError if nothing does."""
        if self.side._side is None:
            raise LookupError("no process runs")
        return self.side._side

    async def contents(self, held: SmallCluster) -> side_questions.Contents:
        self.commit(held)
        return await self.side.ask(held.cluster, side_questions.contents, 20)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    def restarted() -> None:
        made.restarts += 1

    made = Asking(SideWorker(NAMES, restarted))
    yield made
    await made.side.close()


def _cluster() -> SmallCluster:
    members = [pod(f"p{i}", group="a") for i in range(3)]
    return SmallCluster(
        node("n1"),
        node("n2"),
        composite("root"),
        pod_group("a", parent="root", minimum=2),
        *members,
        pod("s", on="n1"),
    )


async def test_a_question_sees_the_cluster_as_it_is(asking: Asking) -> None:
    held = _cluster()

    seen = await asking.contents(held)

    assert seen == side_questions.contents(held.cluster)


async def test_a_later_question_sees_what_was_committed_since(asking: Asking) -> None:
    held = _cluster()
    await asking.contents(held)

    def change(mutation: Mutation) -> None:
        mutation.remove(ObjectKey("Node", "", "n2"))
        mutation.put(replace(held.pod("p0"), node_name="n1", resource_version=mutation.revision))
        mutation.put(node("n3"))
        mutation.put(pod_group("b", parent="nowhere"))
        mutation.put(pod("waits", group="b"))
        mutation.remove(ObjectKey(POD, "default", "p1"))

    held.change(change)
    seen = await asking.contents(held)

    assert seen == side_questions.contents(held.cluster)
    assert asking.restarts == 0


async def test_the_pending_structures_follow(asking: Asking) -> None:
    held = SmallCluster(node("n1"), pod("waits", group="late"))
    await asking.contents(held)

    held.change(lambda mutation: mutation.put(pod_group("late")))
    seen = await asking.contents(held)

    assert seen == side_questions.contents(held.cluster)
    assert seen.queue


async def test_what_a_question_does_to_its_copy_is_gone_afterwards(asking: Asking) -> None:
    held = _cluster()
    await asking.contents(held)

    left = await asking.side.ask(held.cluster, side_questions.empty_it, 20)

    assert left == 0
    assert await asking.contents(held) == side_questions.contents(held.cluster)


async def test_a_replica_that_falls_far_behind_is_started_anew(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.replica.MOST_BEHIND", 1)
    held = _cluster()
    await asking.contents(held)

    def add(mutation: Mutation) -> None:
        for i in range(5):
            mutation.put(node(f"m{i}"))

    held.change(add)
    seen = await asking.contents(held)

    assert seen == side_questions.contents(held.cluster)


async def test_a_replica_is_started_anew_when_signatures_get_other_numbers(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.array_feed.LEAST_SIGNATURES", 2)
    held = _cluster()
    held.cluster.feed.forget_signatures()
    await asking.contents(held)
    many = [replace(pod(f"kind-{i}", on="n1"), labels={"own": str(i)}) for i in range(12)]
    for each in many:
        held.change(lambda mutation, each=each: mutation.put(each))  # type: ignore[misc]
    for each in many[1:]:
        held.change(lambda mutation, each=each: mutation.remove(each.key))  # type: ignore[misc]

    held.cluster.feed.flush()
    held.cluster.forget_signatures()
    held.change(lambda mutation: mutation.put(replace(pod("late", on="n2"), labels={"own": "late"})))
    seen = await asking.contents(held)

    assert len(held.cluster.feed.signatures) < len(many)
    assert seen == side_questions.contents(held.cluster)


async def test_a_cluster_that_was_loaded_again_is_told_anew(asking: Asking) -> None:
    await asking.contents(_cluster())
    again = SmallCluster(node("other"))

    seen = await asking.contents(again)

    assert seen == side_questions.contents(again.cluster)


async def test_without_a_cluster_the_copy_is_empty(asking: Asking) -> None:
    seen = await asking.side.ask(None, side_questions.contents, 20)

    assert seen.revision == 0
    assert not seen.objects


async def test_the_process_has_a_lower_priority_than_this_one(asking: Asking) -> None:
    assert await asking.side.ask(None, side_questions.niceness, 20) > os.nice(0)


async def test_the_process_imports_nothing_heavy(asking: Asking) -> None:
    assert await asking.side.ask(None, side_questions.heavy_imports, 20) == []


async def test_what_a_question_raises_is_raised_here(asking: Asking) -> None:
    with pytest.raises(SideWorkerFailedError, match="ValueError: no luck"):
        await asking.side.ask(None, side_questions.breaks, 20)


async def test_a_refusal_comes_as_it_was_raised(asking: Asking) -> None:
    with pytest.raises(NotFoundError, match="it is not there") as caught:
        await asking.side.ask(None, side_questions.refuses, 20)

    assert caught.value.reason == "OBJECT_NOT_FOUND"
    assert caught.value.resources == [("Pod", "a/b")]


async def test_a_question_that_dies_spoils_no_other(asking: Asking) -> None:
    dying, living = await asyncio.gather(
        asking.side.ask(None, side_questions.dies, 20),
        asking.side.ask(None, side_questions.niceness, 20),
        return_exceptions=True,
    )

    assert isinstance(dying, SideWorkerFailedError)
    assert isinstance(living, int)
    assert asking.restarts == 0


async def test_a_question_at_the_end_of_its_time_may_answer_what_it_has(asking: Asking) -> None:
    await asking.side.ask(None, side_questions.niceness, 20)  # its time begins before the process does

    assert await asking.side.ask(None, side_questions.says_how_far_it_came, 2.0) == "half way"


async def test_a_question_that_does_not_heed_its_time_is_ended(
    asking: Asking,
) -> None:
    with pytest.raises(SideWorkerFailedError, match="overran"):
        await asking.side.ask(None, side_questions.heeds_nothing, 0.5)

    assert await asking.side.ask(None, side_questions.niceness, 20) >= 0


async def test_the_time_in_line_does_not_count(asking: Asking) -> None:
    limit, count = 1.5, 20
    began = time.monotonic()

    await asyncio.gather(*(asking.side.ask(None, side_questions.sleeps, limit) for _ in range(count)))

    assert time.monotonic() - began > limit


async def test_a_question_that_must_end_by_a_time_has_what_is_left_after_the_line(asking: Asking) -> None:
    await asking.side.ask(None, side_questions.niceness, 20)
    line = [asyncio.create_task(asking.side.ask(None, side_questions.sleeps, 20)) for _ in range(4)]
    await asyncio.sleep(0)

    answer = await asking.side.ask(None, side_questions.says_how_far_it_came, 60, within_seconds=1.0)

    assert answer == "half way"
    await asyncio.gather(*line)


async def test_a_process_that_falls_silent_is_ended_with_all_its_questions() -> None:
    side = SideWorker(NAMES, silence_seconds=0.2)
    await side.ask(None, side_questions.niceness, 20)
    held = side._side
    assert held is not None
    held.process.send_signal(signal.SIGSTOP)

    asked = [side.ask(None, side_questions.niceness, 0.1) for _ in range(3)]
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(answer, SideWorkerFailedError) for answer in answers)
    assert await side.ask(None, side_questions.niceness, 20) >= 0
    await side.close()


async def test_more_questions_than_may_wait_are_refused(asking: Asking) -> None:
    asked = [
        asyncio.create_task(asking.side.ask(None, side_questions.sleeps, 60)) for _ in range(MOST_WAITING)
    ]
    await asyncio.sleep(0)

    with pytest.raises(ResourceExhaustedError):
        await asking.side.ask(None, side_questions.niceness, 20)

    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert await asking.side.ask(None, side_questions.niceness, 20) >= 0


async def test_after_its_process_was_killed_the_next_question_starts_another(asking: Asking) -> None:
    held = _cluster()
    await asking.contents(held)
    side = asking.process

    os.kill(side.process.pid, signal.SIGKILL)
    side.process.wait()
    seen = await asking.contents(held)

    assert seen == side_questions.contents(held.cluster)
    assert asking.restarts == 1


async def test_who_asks_a_process_that_just_died_is_told_and_nothing_is_left_to_be_reported(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _cluster()
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    await asking.contents(held)
    side = asking.process
    os.kill(side.process.pid, signal.SIGKILL)
    side.process.wait()
    monkeypatch.setattr(side.process, "poll", lambda: None)

    with pytest.raises(SideWorkerFailedError):
        await asking.contents(held)

    gc.collect()
    await asyncio.sleep(0.05)
    assert unheard == []


async def test_the_process_ends_when_no_question_comes_for_a_while(asking: Asking) -> None:
    side = SideWorker(NAMES, idle_seconds=0.01)
    await side.ask(None, side_questions.niceness, 20)
    held = side._side
    assert held is not None

    await asyncio.to_thread(held.process.wait, 20)

    assert side._side is None
    await side.close()


async def test_a_closed_one_refuses(asking: Asking) -> None:
    await asking.side.close()

    with pytest.raises(UnavailableError):
        await asking.side.ask(None, side_questions.niceness, 20)


async def test_what_was_made_ready_is_followed_and_loaded_before_the_first_question() -> None:
    side = SideWorker(NAMES, modules=["tests.engine.side_questions"])
    held = _cluster()

    await side.make_ready(held.cluster)
    process = side._side.process.pid if side._side is not None else 0
    held.change(lambda mutation: mutation.put(node("n3")))
    writes = held.cluster.take_writes()
    assert writes is not None
    side.note(writes)

    seen = await side.ask(held.cluster, side_questions.contents, 20)
    assert seen == side_questions.contents(held.cluster)
    assert await side.ask(None, side_questions.parent, 20) == process
    await side.close()


async def test_what_is_made_ready_gives_way_to_whoever_writes_to_another_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_worker, "REST_WHILE_WRITTEN", 1e9)
    side, held, other = SideWorker(NAMES), _cluster(), _cluster()
    written = other.cluster.take_writes()
    assert written is not None

    side.note(written)
    resting = asyncio.create_task(side.make_ready(held.cluster))
    await asyncio.wait([resting], timeout=0.5)
    rests = not resting.done()
    resting.cancel()
    await asyncio.wait([resting])
    monkeypatch.setattr(side_worker, "WRITTEN_SECONDS", 0.0)
    async with asyncio.timeout(20):
        await side.make_ready(held.cluster)

    assert rests
    await side.close()


async def test_nothing_is_made_ready_once_nobody_has_asked_for_a_while() -> None:
    side = SideWorker(NAMES, idle_seconds=0.0)

    await side.make_ready(_cluster().cluster)

    assert side._side is None
    await side.close()


async def test_what_was_made_ready_ends_when_nobody_asks() -> None:
    side = SideWorker(NAMES, idle_seconds=0.5)

    await side.make_ready(_cluster().cluster)
    held = side._side
    assert held is not None
    await asyncio.to_thread(held.process.wait, 20)

    assert side._side is None
    await side.close()
