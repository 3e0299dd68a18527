"""Reruns that are asked for at about the same time are made together: one pass over the log, one way back for all.

While some are made others wait, and then go together. Those of the newest snapshots go first; where the time of one
question ends, the rest is asked in the next.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field

from muster.engine.aside import TimeLimit
from muster.engine.ports import DecisionRecord, Store
from muster.engine.rerun import Moved, Rerun, RerunQuestion
from muster.engine.rerun_way import History, StoredHistory, WayBack, way_back

MOST_TOGETHER = 256
LIMIT = TimeLimit(seconds=25.0)
_ATTEMPTS = 5
NO_NOTE = "no cycle made this decision, or its input is not noted: pods went while it was made, or an old version made it"

Asked = Callable[[RerunQuestion], Awaitable[tuple[Rerun, ...] | Moved]]


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """What a rerun needs of its cluster. durable_revision: the present one, once all up to it is durable."""

    history: History
    durable_revision: Callable[[], Awaitable[int]]
    ask: Asked


@dataclass(slots=True)
class _Waiting:
    record: DecisionRecord
    answer: asyncio.Future[Rerun] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Reruns:
    """Those of all clusters of an engine."""

    def __init__(
        self,
        store: Store,
        durable_revision: Callable[[str], Awaitable[int]],
        ask: Callable[[str, RerunQuestion, TimeLimit], Awaitable[tuple[Rerun, ...] | Moved]],
    ) -> None:
        self._store = store
        self._durable_revision = durable_revision
        self._ask = ask
        self._waiting: dict[str, list[_Waiting]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def rerun(self, cluster: str, record: DecisionRecord) -> Rerun:
        """What comes of deciding again. Raises what `durable_revision` and `ask` do."""
        if not record.input.digest:
            return Rerun(not_possible=NO_NOTE)
        waiting = _Waiting(record)
        self._waiting.setdefault(cluster, []).append(waiting)
        if cluster not in self._running:
            # In no caller's context: what is made together is no part of anybody's trace.
            self._running[cluster] = asyncio.create_task(
                self._run(cluster), name=f"reruns of {cluster}", context=Context()
            )
        return await waiting.answer

    async def _run(self, cluster: str) -> None:
        """Make reruns until nobody waits for one."""
        access = ClusterAccess(
            StoredHistory(self._store, cluster),
            lambda: self._durable_revision(cluster),
            lambda question: self._ask(cluster, question, LIMIT),
        )
        try:
            while waiting := [each for each in self._waiting.pop(cluster, ()) if not each.answer.done()]:
                waiting.sort(key=lambda each: each.record.snapshot_revision, reverse=True)
                together = waiting[:MOST_TOGETHER]
                self._waiting[cluster] = waiting[MOST_TOGETHER:]
                self._waiting[cluster] += await _answer(together, access)
        finally:
            del self._running[cluster]


async def _answer(together: Sequence[_Waiting], access: ClusterAccess) -> Sequence[_Waiting]:
    """Answer those who wait; the rest, for which there was no time."""
    try:
        reruns = await rerun_together([each.record for each in together], access)
    except Exception as error:  # noqa: BLE001 - whoever asked is told
        for each in together:
            if not each.answer.done():
                each.answer.set_exception(error)
        return ()
    for each, rerun in zip(together, reruns, strict=False):
        if not each.answer.done():
            each.answer.set_result(rerun)
    return together[len(reruns) :]


async def rerun_together(records: Sequence[DecisionRecord], access: ClusterAccess) -> list[Rerun]:
    """What comes of each, in order, at least of the first one. records: the newest snapshots first."""
    start = await access.durable_revision()
    way = await way_back(access.history, start, (record.snapshot_revision for record in records))
    for _ in range(_ATTEMPTS):
        reached = [record for record in records if record.snapshot_revision not in way.not_kept]
        steps = await asyncio.to_thread(_pickled, way)
        found = await access.ask(RerunQuestion(way.start, steps, reached)) if reached else ()
        if not isinstance(found, Moved):
            return _in_order(way, records, found)
        start = await access.durable_revision()
        way = way.beginning_at(await way_back(access.history, start, [way.start]))
    return [Rerun(not_possible=f"the cluster changed during each of {_ATTEMPTS} attempts")] * len(records)


def _pickled(way: WayBack) -> list[bytes]:
    """The steps one by one, so that other threads have their turn between two."""
    return [pickle.dumps(step, pickle.HIGHEST_PROTOCOL) for step in way.steps]


def _in_order(way: WayBack, records: Sequence[DecisionRecord], found: Sequence[Rerun]) -> list[Rerun]:
    """What was found of those that the way reaches, and why others are not reached, up to the first without an answer."""
    answers = iter(found)
    made: list[Rerun] = []
    for record in records:
        not_kept = way.not_kept.get(record.snapshot_revision)
        rerun = next(answers, None) if not_kept is None else Rerun(not_possible=not_kept)
        if rerun is None:
            break
        made.append(rerun)
    return made
