"""Questions about a cluster that must not hold up its schedulers: simulations and explanations (architecture.md, "Work").

They run in one process of lower priority (`side_process`) on a replica of the cluster that follows every transaction.
The process starts with the first question, or before it if somebody has it made ready (`side_readiness`), and ends when
no question has come for a while. Whoever asks sees all that was durable when the question was sent. Bounded: how many
wait, and how long each is worked on, for which the time in line does not count. A process that dies or falls silent
fails its questions, and the next one starts another.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import Any, TypeVar, cast

from muster.engine.cluster import Cluster
from muster.engine.errors import Refusal, ResourceExhaustedError, UnavailableError
from muster.engine.ports import ClusterWrites
from muster.engine.replica import ReplicaFeed, Unstored, pickled
from muster.engine.side_link import Side, started_side
from muster.engine.side_process import Asked

MOST_WAITING = 64
IDLE_SECONDS = 600.0
MOST_UNSENT = 256
"""Messages that wait for the process to read them, so that its start takes up none of the time of making them."""
REST_PER_WORK, REST_WHILE_WRITTEN = 1.0, 50.0
"""How long what is done ahead of any question pauses for as long as it worked: longer if somebody writes to any cluster."""
WRITTEN_SECONDS = 1.0
"""For so long after a transaction the next one is expected."""
SILENCE_SECONDS = 10.0
"""For how much longer than any of its questions may take the process may say nothing before it is given up."""
Message = tuple[Any, ...]
Answer = TypeVar("Answer")


class SideWorkerFailedError(Exception):
    """The question broke, overran its time, or its process died."""


class SideWorker:
    """`names` are those of all profiles. `on_restart` is called for every process that had to be given up.

    modules: where questions come from, to be loaded when the process is made ready.
    """

    def __init__(
        self,
        names: frozenset[str],
        on_restart: Callable[[], None] = lambda: None,
        idle_seconds: float = IDLE_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        modules: Sequence[str] = (),
    ) -> None:
        self._names = names
        self._on_restart = on_restart
        self._idle_seconds = idle_seconds
        self._silence_seconds = silence_seconds
        self._modules = tuple(modules)
        self._side: Side | None = None
        self._telling = asyncio.Lock()
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="muster-side")
        self._number = 0
        self._open = 0
        self._rest: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._wanted_until = time.monotonic() + idle_seconds
        self._written_at = -inf

    async def make_ready(self, cluster: Cluster) -> None:
        """Have the process and its replica of the cluster follow before anybody asks, in slices with pauses between.

        Nothing happens once no question has come for as long as the process may be idle. Raises SideWorkerFailedError.
        """
        if self._is_closed or time.monotonic() >= self._wanted_until:
            return
        async with self._telling:
            side = self._started(asyncio.get_running_loop())
            if not side.is_rehearsed:
                side.is_rehearsed = True
                await self._tell(side, ("rehearse", self._modules))
            feed = self._feed_of(side, cluster)
            if feed.is_behind:
                await self._catch_up(side, feed)
        if not self._open:
            self._begin_to_rest()

    async def ask(
        self,
        cluster: Cluster | None,
        question: Callable[[Cluster], Answer],
        limit_seconds: float,
        within_seconds: float = inf,
    ) -> Answer:
        """What the question answers about the cluster, or about an empty one.

        The question and its answer can be pickled: a value of a module's class with `__call__`, or a function of a
        module. It works on a copy: what it does to the cluster is gone afterwards. Its time is limit_seconds from when
        it is begun, but no more than within_seconds from now; at the end `OutOfTimeError` is raised in it. Raises the `Refusal` that it raises, SideWorkerFailedError,
        ResourceExhaustedError, UnavailableError.
        """
        if self._open >= MOST_WAITING:
            text = f"{self._open} simulations and explanations are waiting already"
            raise ResourceExhaustedError("TOO_MANY_CALLS", text)
        self._open += 1
        self._stop_resting()
        try:
            answered = await self._answered(
                cluster, question, limit_seconds, time.monotonic() + within_seconds
            )
        finally:
            self._open -= 1
            self._wanted_until = time.monotonic() + self._idle_seconds
            if not self._open:
                self._begin_to_rest()
        return cast("Answer", _answer_of(answered))

    def note(self, writes: ClusterWrites) -> None:
        """A transaction is durable: the cluster's replica, if there is one, hears of it before the next question."""
        self._written_at = time.monotonic()
        if self._side is not None and (feed := self._side.replicas.get(writes.cluster)) is not None:
            feed.note(writes)

    def forget(self, cluster: str) -> None:
        """The cluster is gone, or its replica cannot go on: it is sent anew at the next question."""
        side = self._side
        feed = side.replicas.pop(cluster, None) if side is not None else None
        if side is not None and feed is not None:
            feed.stop()
            side.dropped.add(cluster)

    async def close(self) -> None:
        """End the process; questions in work fail."""
        self._is_closed = True
        self._stop_resting()
        if self._side is not None:
            self._give_up(self._side)
        self._sender.shutdown(wait=False)

    async def _answered(
        self,
        cluster: Cluster | None,
        question: Callable[[Cluster], object],
        limit_seconds: float,
        latest: float,
    ) -> bytes:
        loop = asyncio.get_running_loop()
        async with self._telling:
            side = self._started(loop)
            self._number += 1
            number = self._number
            answer: asyncio.Future[bytes] = loop.create_future()
            answer.add_done_callback(_look_at)
            side.answers[number] = answer
            try:
                name, unstored = await self._prepared(side, cluster)
                asked = Asked(number, name, self._names, unstored, question, limit_seconds, latest)
                await self._tell(side, ("ask", asked))
            except BaseException:
                side.answers.pop(number, None)
                raise
        if not side.limits:
            side.heard = time.monotonic()
        side.limits[number] = limit_seconds
        try:
            return await self._heard(side, answer)
        except asyncio.CancelledError:
            if self._side is side and not self._is_closed:
                self._sender.submit(side.pipe.send_bytes, pickle.dumps(("leave", number)))
            raise
        finally:
            side.answers.pop(number, None)
            side.limits.pop(number, None)

    async def _heard(self, side: Side, answer: asyncio.Future[bytes]) -> bytes:
        """The answer, for which nobody waits once the process hangs."""
        while not answer.done():
            left = side.speaks_by() + self._silence_seconds - time.monotonic()
            if left <= 0:
                self._restart(side)
                raise SideWorkerFailedError("the side worker hung, and was ended")
            await asyncio.wait([answer], timeout=left)
        return answer.result()

    async def _prepared(self, side: Side, cluster: Cluster | None) -> tuple[str | None, Unstored]:
        """Tell the process all that it must hear before a question about the cluster; its name, and what goes with it."""
        if cluster is None:
            return None, Unstored()
        feed = self._feed_of(side, cluster)
        await self._catch_up(side, feed)
        return cluster.name, feed.unstored()

    def _feed_of(self, side: Side, cluster: Cluster) -> ReplicaFeed:
        feed = side.replicas.get(cluster.name)
        if feed is None or feed.cluster is not cluster:
            feed = side.replicas[cluster.name] = ReplicaFeed(cluster)
        return feed

    async def _catch_up(self, side: Side, feed: ReplicaFeed) -> None:
        """What the process must hear before it can answer; between two slices others have their turn."""
        unsent: deque[asyncio.Future[None]] = deque()
        try:
            state, began = feed.cluster.state, time.monotonic()
            revision = state.revision
            for message in _news(side, feed, self._names):
                unsent.append(self._sent(side, message))
                if len(unsent) > MOST_UNSENT:
                    await unsent.popleft()
                now, before, revision = time.monotonic(), revision, state.revision
                is_written = revision != before or now - self._written_at < WRITTEN_SECONDS
                rest = REST_WHILE_WRITTEN if is_written else REST_PER_WORK
                await asyncio.sleep(0 if self._open else rest * (now - began))
                began = time.monotonic()
            while unsent:
                await unsent.popleft()
        except BaseException as error:
            # Half told is worse than untold: the next question starts with the whole state.
            self.forget(feed.cluster.name)
            for each in unsent:
                each.cancel()
            if not isinstance(error, OSError):
                raise
            self._restart(side)
            raise SideWorkerFailedError("the side worker died") from error

    async def _tell(self, side: Side, message: Message) -> None:
        try:
            await self._sent(side, message)
        except OSError as error:
            self._restart(side)
            raise SideWorkerFailedError("the side worker died") from error

    def _sent(self, side: Side, message: Message) -> asyncio.Future[None]:
        """Done when the process has read the message, or nearly; messages arrive in their order."""
        sending = asyncio.get_running_loop().run_in_executor(
            self._sender, side.pipe.send_bytes, pickled(message)
        )
        sending.add_done_callback(_look_at)
        return sending

    def _started(self, loop: asyncio.AbstractEventLoop) -> Side:
        if self._is_closed:
            raise UnavailableError("SERVER_DRAINING", "the server is shutting down")
        if self._side is not None and self._side.process.poll() is not None:
            self._restart(self._side)
        if self._side is None:
            self._side = side = started_side()
            threading.Thread(
                target=self._read, args=(side, loop), name="muster-side-answers", daemon=True
            ).start()
        return self._side

    def _read(self, side: Side, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in a thread of its own for as long as the process lives, then reaps it."""
        with suppress(EOFError, OSError):
            while True:
                number, answer = side.pipe.recv()
                with suppress(RuntimeError):  # the loop may be closed
                    loop.call_soon_threadsafe(_resolve, side, number, answer)
        side.process.wait()
        side.pipe.close()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._died, side)

    def _died(self, side: Side) -> None:
        if self._side is side:
            self._restart(side)

    def _restart(self, side: Side) -> None:
        """The process is of no use any more; the next question starts another."""
        if self._side is side:
            self._give_up(side)
            if not self._is_closed:
                self._on_restart()

    def _give_up(self, side: Side) -> None:
        self._side = None
        for feed in side.replicas.values():
            feed.stop()
        with suppress(ProcessLookupError):
            os.killpg(side.process.pid, signal.SIGKILL)
        for answer in side.answers.values():
            if not answer.done():
                answer.set_exception(SideWorkerFailedError("the side worker died"))

    def _begin_to_rest(self) -> None:
        self._stop_resting()
        if self._side is not None and not self._is_closed:
            left = self._wanted_until - time.monotonic()
            self._rest = asyncio.get_running_loop().call_later(max(0.0, left), self._end_idle)

    def _stop_resting(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _end_idle(self) -> None:
        if self._side is not None and not self._open:
            self._give_up(self._side)


def _news(side: Side, feed: ReplicaFeed, names: frozenset[str]) -> Iterator[Message]:
    """All that the process has to hear about a cluster to be where the cluster is now; made while it is told."""
    for dropped in sorted(side.dropped):
        yield ("drop", dropped)
    side.dropped.clear()
    name = feed.cluster.name
    while not feed.is_followed:
        first = feed.start()
        yield ("begin", name, names, first.head)
        yield ("signatures", name, feed.take_signatures())
        for part in first.pickled():
            yield ("objects", name, part)
        yield ("complete", name)
    # Signatures first, so that the replica gives none of them an index of its own.
    signatures, news = feed.take_signatures(), feed.take()
    yield ("signatures", name, signatures)
    for writes in news:
        yield ("follow", name, writes)


def _look_at(done: asyncio.Future[Any]) -> None:
    """The first of several that fail ends whoever waits; asyncio is not to report the others."""
    if not done.cancelled():
        done.exception()


def _resolve(side: Side, number: int, answer: bytes | None) -> None:
    side.heard = time.monotonic()
    waiter = side.answers.get(number)
    if waiter is None or waiter.done():
        return
    if answer is None:
        waiter.set_exception(SideWorkerFailedError("the process of the question died or overran its time"))
    else:
        waiter.set_result(answer)


def _answer_of(pickled: bytes) -> object:
    """The answer, or what was raised instead of one."""
    match pickle.loads(pickled):  # noqa: S301 - from our own process
        case ("answered", answer):
            return answer
        case ("refused", kind, attributes):
            raise _refusal(kind, attributes)
        case ("late",):
            raise SideWorkerFailedError("the question ran out of time")
        case (_, text):
            raise SideWorkerFailedError(text)
    raise SideWorkerFailedError("the answer cannot be understood")


def _refusal(kind: type[Refusal], attributes: dict[str, Any]) -> Refusal:
    """The refusal as it was raised in the other process."""
    refusal = kind.__new__(kind, attributes["message"])
    refusal.__dict__.update(attributes)
    return refusal
