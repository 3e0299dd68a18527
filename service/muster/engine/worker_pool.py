"""Long-lived worker processes that decide large units, so that the event loop stays free (architecture.md, "Work").

Each cluster belongs to one worker, which keeps a replica of its arrays: it gets the snapshot at first use, later the
deltas since then together with the unit. A worker that dies or overruns its time is killed; the unit that it had fails,
and the next use starts a new one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from muster.core.decision import Decision
from muster.core.framework import Profile
from muster.core.tree import Unit
from muster.engine import worker
from muster.engine.array_feed import ArrayFeed

TIME_LIMIT_SECONDS = 60.0
_SPAWN = multiprocessing.get_context("spawn")


class WorkerFailedError(Exception):
    """The worker died, overran its time, or the core raised: the unit that it had gets SchedulerError."""


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """`snapshot_version` is that of the arrays which the decision was made on; `events` are the observer's."""

    decision: Decision
    events: Sequence[tuple[object, ...]]
    snapshot_version: int


@dataclass(slots=True)
class _Worker:
    """One process. `replicas` says which feed each of its clusters follows."""

    process: BaseProcess
    pipe: Connection
    replicas: dict[str, ArrayFeed] = field(default_factory=dict)


class WorkerPool:
    """`on_restart` is called for every worker that had to be given up."""

    def __init__(
        self,
        size: int,
        time_limit_seconds: float = TIME_LIMIT_SECONDS,
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._size = size
        self._limit = time_limit_seconds
        self._on_restart = on_restart
        self._workers: dict[int, _Worker] = {}
        self._locks = [asyncio.Lock() for _ in range(size)]
        self._threads = ThreadPoolExecutor(max(1, size), thread_name_prefix="muster-worker")

    @property
    def is_empty(self) -> bool:
        """No workers at all: everything is decided in this process."""
        return self._size == 0

    def warm_up(self) -> None:
        """Start the processes before they are needed; each takes a fraction of a second to import the core."""
        for place in range(self._size):
            self._started(place)

    async def decide(
        self, cluster: str, feed: ArrayFeed, unit: Unit, profile: Profile, *, is_recording: bool
    ) -> WorkerAnswer:
        """The decision on the arrays as they are when the worker is free. Raises WorkerFailedError."""
        place = zlib.crc32(cluster.encode()) % self._size
        async with self._locks[place]:
            chosen = self._started(place)
            messages = _catch_up(chosen, cluster, feed)
            version = feed.snapshot.version
            messages.append(("decide", cluster, unit, profile, is_recording))
            loop = asyncio.get_running_loop()
            exchange = loop.run_in_executor(self._threads, _exchange, chosen.pipe, messages, self._limit)
            try:
                answer = await exchange
            except asyncio.CancelledError:
                self._give_up(place)
                raise
            except (EOFError, OSError, TimeoutError) as error:
                self._give_up(place)
                self._on_restart()
                raise WorkerFailedError(str(error) or "the worker process died") from error
        if answer[0] != "decided":
            raise WorkerFailedError(answer[1])
        return WorkerAnswer(answer[1], answer[2], version)

    def forget(self, cluster: str) -> None:
        """The cluster was dropped or loaded again: its replica is sent anew at the next use."""
        for each in self._workers.values():
            feed = each.replicas.pop(cluster, None)
            if feed is not None:
                feed.unsubscribe()

    async def close(self) -> None:
        """End all processes."""
        for place in list(self._workers):
            self._give_up(place)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _started(self, place: int) -> _Worker:
        known = self._workers.get(place)
        if known is not None and known.process.is_alive():
            return known
        if known is not None:
            self._give_up(place)
            self._on_restart()
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=worker.run, args=(theirs,), daemon=True, name="muster-worker")
        process.start()
        theirs.close()
        self._workers[place] = _Worker(process, ours)
        return self._workers[place]

    def _give_up(self, place: int) -> None:
        given_up = self._workers.pop(place)
        for feed in given_up.replicas.values():
            feed.unsubscribe()
        given_up.process.kill()
        given_up.process.join()
        given_up.pipe.close()


def _catch_up(chosen: _Worker, cluster: str, feed: ArrayFeed) -> list[tuple[Any, ...]]:
    """What the worker must hear before it can decide: the whole snapshot at first, then what changed."""
    if chosen.replicas.get(cluster) is feed:
        deltas = feed.take_deltas()
        return [("deltas", cluster, deltas)] if deltas else []
    chosen.replicas[cluster] = feed
    # Pickled here and now: the snapshot goes on changing while the thread sends.
    return [("start", cluster, pickle.dumps(feed.subscribe(), pickle.HIGHEST_PROTOCOL))]


def _exchange(pipe: Connection, messages: list[tuple[Any, ...]], seconds: float) -> tuple[Any, ...]:
    """Send all, wait for the one answer. Runs in a thread. Raises TimeoutError, EOFError, OSError."""
    for message in messages:
        pipe.send(message)
    if not pipe.poll(seconds):
        raise TimeoutError(f"the worker overran its limit of {seconds:.0f} s")
    answer: tuple[Any, ...] = pipe.recv()
    return answer
