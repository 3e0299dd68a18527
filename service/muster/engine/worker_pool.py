"""Long-lived worker processes that decide large units, so that the event loop stays free (architecture.md, "Work").

Each cluster belongs to one worker, which keeps a replica of its arrays: it gets the snapshot at first use, later the
deltas since then together with the unit. A worker that dies or overruns its time is killed; the unit that it had fails,
and the next use starts a new one. An asker who leaves does not stop the worker: what it decided is thrown away.
"""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from muster.core.decision import Decision
from muster.core.framework import Profile
from muster.core.soonest_place import Departures, SoonestPlace
from muster.core.tree import Unit
from muster.engine.array_feed import ArrayFeed
from muster.engine.child_process import command_of
from muster.engine.worker import decide_on, place_on

TIME_LIMIT_SECONDS = 60.0
READY_SECONDS = 5.0
"""A process may take so long to start, on top of the limit for what it is asked."""
Message = tuple[Any, ...]


class WorkerFailedError(Exception):
    """The worker died, overran its time, or the core raised: the unit that it had gets SchedulerError."""


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """`snapshot_version` is that of the arrays which the decision was made on; `events` are the observer's."""

    decision: Decision
    events: Sequence[tuple[object, ...]]
    snapshot_version: int


@dataclass(slots=True, eq=False)
class _Worker:
    """One process. `replicas` says which feed each of its clusters follows, `dropped` what it may forget.

    is_ready: it was heard to say so; only whoever holds its lock listens.
    """

    process: subprocess.Popen[bytes]
    pipe: Connection
    is_ready: bool = False
    replicas: dict[str, ArrayFeed] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)

    def end(self) -> None:
        """Reap the killed process. Not while a thread reads the pipe: its number may be another's at once."""
        self.process.wait()
        self.pipe.close()


@dataclass(frozen=True, slots=True)
class _Question:
    cluster: str
    feed: ArrayFeed
    unit: Unit
    profile: Profile
    is_recording: bool


@dataclass(frozen=True, slots=True)
class _InWork:
    """What a worker was asked last, on arrays of which version."""

    question: _Question
    version: int
    exchange: asyncio.Task[Message]

    def answers(self, question: _Question) -> bool:
        """Whether the answer to come is that to another question as well: a decision is the same for the same input."""
        if self.exchange.done() or question != self.question:
            return False
        return question.feed.flush().version == self.version


class WorkerPool:
    """`size` 0: everything is decided here. `on_restart` is called for every worker that had to be given up."""

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
        self._exchanges: set[asyncio.Task[Message]] = set()
        self._preparing: set[asyncio.Task[None]] = set()
        self._in_work: dict[int, _InWork] = {}
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """No workers at all: everything is decided in this process."""
        return self._size == 0

    def warm_up(self) -> None:
        """Start the processes before they are needed; each takes a fraction of a second to import the core."""
        for place in range(self._size):
            self._started(place)

    async def ready(self) -> None:
        """Wait until the started processes have loaded all of their code, at most some seconds: they may be late."""
        greetings = [asyncio.create_task(self._greeted(place)) for place in self._workers]
        if greetings:
            await asyncio.wait(greetings, timeout=READY_SECONDS)

    async def decide(
        self, cluster: str, feed: ArrayFeed, unit: Callable[[], Unit], profile: Profile, *, is_recording: bool
    ) -> WorkerAnswer:
        """The decision on the arrays as they are when the worker is free. Raises WorkerFailedError.

        unit: tells the unit as it is then; called once more if the worker was busy.
        """
        if self.is_empty:
            asked, snapshot = unit(), feed.flush()
            return _answer_of(
                decide_on(snapshot, asked, profile, is_recording=is_recording), snapshot.version
            )
        place = zlib.crc32(cluster.encode()) % self._size
        question = _Question(cluster, feed, unit(), profile, is_recording)
        in_work = self._in_work.get(place)
        if in_work is not None and in_work.answers(question):
            return _answer_of(await asyncio.shield(in_work.exchange), in_work.version)
        exchange, version = await self._asked(
            place, cluster, feed, lambda: ("decide", cluster, unit(), profile, is_recording)
        )
        self._in_work[place] = _InWork(replace(question, unit=unit()), version, exchange)
        return _answer_of(await asyncio.shield(exchange), version)

    async def soonest_place(
        self, cluster: str, feed: ArrayFeed, unit: Unit, profile: Profile, departures: Departures
    ) -> SoonestPlace | None:
        """The place on the arrays as they are when the worker is free. Raises WorkerFailedError."""
        if self.is_empty:
            return _place_of(place_on(feed.flush(), unit, profile, departures))
        place = zlib.crc32(cluster.encode()) % self._size
        message = ("place", cluster, unit, profile, departures)
        exchange, _ = await self._asked(place, cluster, feed, lambda: message)
        return _place_of(await asyncio.shield(exchange))

    def prepare(self, cluster: str, feed: ArrayFeed) -> None:
        """Have a free worker take in what it does not know of the arrays; a busy one hears it with the next question."""
        place = zlib.crc32(cluster.encode()) % max(1, self._size)
        if not (self.is_empty or self._is_closed or self._locks[place].locked()):
            preparing = asyncio.create_task(self._prepare(place, cluster, feed), context=Context())
            self._preparing.add(preparing)
            preparing.add_done_callback(self._preparing.discard)

    async def _prepare(self, place: int, cluster: str, feed: ArrayFeed) -> None:
        with suppress(WorkerFailedError):
            exchange, _ = await self._asked(place, cluster, feed, lambda: ("follow", cluster))
            await asyncio.shield(exchange)

    async def _asked(
        self, place: int, cluster: str, feed: ArrayFeed, question: Callable[[], Message]
    ) -> tuple[asyncio.Task[Message], int]:
        """The exchange that the question began once the worker was free, and the version of the arrays that it is about."""
        await self._locks[place].acquire()
        try:
            chosen = self._started(place)
            asked = question()
            messages = [*_catch_up(chosen, cluster, feed), asked]
            version = feed.snapshot.version
        except BaseException:
            self._locks[place].release()
            raise
        return self._begun(place, chosen, messages), version

    def forget(self, cluster: str) -> None:
        """The cluster was dropped or loaded again: its replica is sent anew at the next use."""
        for each in self._workers.values():
            feed = each.replicas.pop(cluster, None)
            if feed is not None:
                feed.unsubscribe()
                each.dropped.add(cluster)

    async def close(self) -> None:
        """End all processes; units in work fail."""
        self._is_closed = True
        for each in self._workers.values():
            each.process.kill()
        await asyncio.gather(*self._exchanges, *self._preparing, return_exceptions=True)
        for place, each in list(self._workers.items()):
            self._give_up(place, each)
        self._threads.shutdown(wait=False)

    async def _greeted(self, place: int) -> None:
        await self._locks[place].acquire()
        chosen = self._workers.get(place)
        if chosen is None or chosen.is_ready:
            self._locks[place].release()
            return
        with suppress(WorkerFailedError):
            await asyncio.shield(self._begun(place, chosen, []))

    def _begun(self, place: int, chosen: _Worker, messages: list[Message]) -> asyncio.Task[Message]:
        """An exchange that goes on without its asker; the lock of the place, which he holds, is released at its end."""
        exchange = asyncio.create_task(self._exchange(place, chosen, messages))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        exchange.add_done_callback(lambda _: self._locks[place].release())
        return exchange

    async def _exchange(self, place: int, chosen: _Worker, messages: list[Message]) -> Message:
        """Send all, wait for the one answer. The limit counts for sending too: a stopped process takes nothing."""
        limit = self._limit if chosen.is_ready else self._limit + READY_SECONDS
        answered = self._threads.submit(_talk, chosen, messages)
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(answered)
        except BaseException as error:
            self._give_up(place, chosen, answered)
            if not isinstance(error, Exception):
                raise
            if not self._is_closed:
                self._on_restart()
            raise WorkerFailedError(self._reason(error)) from error

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"the worker overran its limit of {self._limit:g} s"
        if isinstance(error, EOFError | OSError):
            return "the worker process died"
        return f"the worker cannot be told or understood: {type(error).__name__}: {error}"

    def _started(self, place: int) -> _Worker:
        if self._is_closed:
            raise WorkerFailedError("the worker pool is closed")
        known = self._workers.get(place)
        if known is not None and known.process.poll() is None:
            return known
        if known is not None:
            self._give_up(place, known)
            self._on_restart()
        self._workers[place] = _start()
        return self._workers[place]

    def _give_up(self, place: int, given_up: _Worker, talking: Future[Message] | None = None) -> None:
        if self._workers.get(place) is given_up:
            del self._workers[place]
        for feed in given_up.replicas.values():
            feed.unsubscribe()
        given_up.process.kill()
        if talking is None:
            given_up.end()
        else:
            talking.add_done_callback(lambda _: given_up.end())


def _start() -> _Worker:
    ours, theirs = Pipe()
    command = command_of("muster.engine.worker", theirs.fileno())
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
        )
    return _Worker(process, ours)


def _catch_up(chosen: _Worker, cluster: str, feed: ArrayFeed) -> list[Message]:
    """What the worker must hear before it can decide: the whole snapshot at first, then what changed."""
    messages: list[Message] = [("drop", name) for name in sorted(chosen.dropped)]
    chosen.dropped.clear()
    feed.flush()
    if chosen.replicas.get(cluster) is feed and feed.is_followed:
        deltas = feed.take_deltas()
        if deltas:
            messages.append(("deltas", cluster, deltas))
        return messages
    # Pickled here and now: the snapshot goes on changing while the thread sends.
    messages.append(("start", cluster, pickle.dumps(feed.subscribe(), pickle.HIGHEST_PROTOCOL)))
    chosen.replicas[cluster] = feed
    return messages


def _talk(chosen: _Worker, messages: list[Message]) -> Message:
    """Runs in a thread; no messages, no answer. Raises EOFError or OSError if the process is gone, else what pickle raises."""
    _await_ready(chosen)
    for message in messages:
        chosen.pipe.send(message)
    answer: Message = chosen.pipe.recv() if messages else ("ready",)
    return answer


def _await_ready(started: _Worker) -> None:
    """Hear the first word of a worker, once. Raises as `_talk`."""
    if not started.is_ready:
        started.pipe.recv()
        started.is_ready = True


def _place_of(message: Message) -> SoonestPlace | None:
    if message[0] != "placed":
        raise WorkerFailedError(message[1])
    place: SoonestPlace | None = message[1]
    return place


def _answer_of(message: Message, version: int) -> WorkerAnswer:
    if message[0] != "decided":
        raise WorkerFailedError(message[1])
    return WorkerAnswer(message[1], message[2], version)
