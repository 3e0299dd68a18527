"""The process of the side worker: replicas of clusters, and one short-lived copy of itself for each question.

A question is a function of a cluster. It runs in a fork of this process, whose memory is a consistent copy of the
replica that costs next to nothing: it may change the cluster as it likes, and nothing needs to be undone. This process
has one thread and no gRPC in it, so that forking is safe. A question that runs out of time gets `OutOfTimeError` raised
in it and may still answer; one that does not heed that is killed.

Messages are tuples: ("rehearse", modules that questions come from), ("begin", cluster, names, head), ("signatures", cluster, signatures), ("objects", cluster, bytes),
("complete", cluster), ("follow", cluster, writes), ("drop", cluster), ("ask", `Asked`), ("leave", number). Answers are
(number, pickled answer or None): None if the process of the question died.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from muster.engine.cluster import Cluster
from muster.engine.errors import Refusal
from muster.engine.replica import Replica, Unstored
from muster.engine.warm_up import warm_up

AT_ONCE = 2
"""Questions in work; all others wait in line."""
GRACE_SECONDS = 2.0
"""How long a question may go on after its time."""
_LEAST_SECONDS = 0.05
"""What a question gets that had to wait until its time was over: enough to say that it has nothing."""

Question = Callable[[Cluster], object]


class OutOfTimeError(BaseException):
    """Raised wherever a question is at the end of its time; no `except Exception` holds it up."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. cluster: None for an empty one, whose profiles have `names`.

    limit_seconds: for the work on it, without the time in line. latest: when it must end however long it waited, in
    monotonic seconds.
    """

    number: int
    cluster: str | None
    names: frozenset[str]
    unstored: Unstored
    question: Question
    limit_seconds: float
    latest: float


@dataclass(slots=True, eq=False)
class _Running:
    """A question in work; deadline: in monotonic seconds."""

    asked: Asked
    process: int
    answers: Connection
    deadline: float


def main(descriptor: int) -> None:
    """Serve the pipe that was inherited under this number, until the other end closes it.

    Begins without a collector, as long as all that is made are modules.
    """
    gc.freeze()
    gc.enable()
    _SideProcess(Connection(descriptor)).run()


class _SideProcess:
    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._replicas: dict[str, Replica] = {}
        self._waiting: deque[Asked] = deque()
        self._running: dict[int, _Running] = {}

    def run(self) -> None:
        """Serve until the parent is gone; then end all that runs."""
        with suppress(EOFError, ConnectionError):
            while True:
                self._serve()
        for running in self._running.values():
            os.kill(running.process, signal.SIGKILL)

    def _serve(self) -> None:
        """One round: what came in, what is answered, what is overdue, what can be started."""
        by_pipe = {running.answers: running for running in self._running.values()}
        for ready in wait([self._pipe, *by_pipe], self._seconds_to_wait()):
            if ready is self._pipe:
                self._take(self._pipe.recv())
            elif isinstance(ready, Connection):
                self._answer(by_pipe[ready])
        now = time.monotonic()
        for running in list(self._running.values()):
            if now > running.deadline + GRACE_SECONDS:
                self._end(running)
                self._pipe.send((running.asked.number, None))
        while self._waiting and len(self._running) < AT_ONCE:
            self._start(self._waiting.popleft())

    def _seconds_to_wait(self) -> float | None:
        if not self._running:
            return None
        first = min(running.deadline for running in self._running.values())
        return max(0.0, first + GRACE_SECONDS - time.monotonic())

    def _take(self, message: tuple[Any, ...]) -> None:
        match message:
            case ("rehearse", modules):
                for module in modules:
                    import_module(module)
                warm_up()
            case ("ask", asked):
                self._waiting.append(asked)
            case ("leave", number):
                self._leave(number)
            case _:
                self._learn(message)

    def _learn(self, message: tuple[Any, ...]) -> None:
        """News of a cluster that is followed."""
        match message:
            case ("begin", name, names, head):
                # What is loaded stays: to look for garbage in it would take as long as all else.
                gc.disable()
                self._replicas[name] = Replica(head, names)
            case ("signatures", name, signatures):
                self._replicas[name].learn(signatures)
            case ("objects", name, pickled):
                self._replicas[name].add(pickled)
            case ("complete", name):
                self._replicas[name].complete()
                # A replica lives long: no collection need walk through it, nor unshare its memory.
                gc.freeze()
                gc.enable()
            case ("follow", name, writes):
                self._replicas[name].follow(writes)
            case ("drop", name):
                self._replicas.pop(name, None)
                gc.enable()

    def _leave(self, number: int) -> None:
        """Nobody wants the answer any more."""
        self._waiting = deque(each for each in self._waiting if each.number != number)
        running = self._running.get(number)
        if running is not None:
            self._end(running)

    def _start(self, asked: Asked) -> None:
        replica = self._replicas.get(asked.cluster) if asked.cluster is not None else None
        if replica is not None:
            replica.take_over(asked.unstored)
        answers, theirs = Pipe(duplex=False)
        deadline = min(time.monotonic() + asked.limit_seconds, asked.latest)
        process = os.fork()
        if process == 0:
            self._pipe.close()
            answers.close()
            cluster = replica.cluster if replica is not None else Cluster("", 0, asked.names)
            _work(asked, cluster, theirs, deadline)
        theirs.close()
        self._running[asked.number] = _Running(asked, process, answers, deadline)

    def _answer(self, running: _Running) -> None:
        """Hand on what the question answered, or that it died."""
        try:
            answer: bytes | None = running.answers.recv_bytes()
        except EOFError:
            answer = None
        self._end(running)
        self._pipe.send((running.asked.number, answer))

    def _end(self, running: _Running) -> None:
        with suppress(ProcessLookupError):
            os.kill(running.process, signal.SIGKILL)
        os.waitpid(running.process, 0)
        running.answers.close()
        del self._running[running.asked.number]


def _work(asked: Asked, cluster: Cluster, answers: Connection, deadline: float) -> None:
    """Answer in the forked process, and end it: nothing of the process that it is a copy of may go on here."""
    status = 1
    try:
        gc.disable()
        answers.send_bytes(_answered(asked, cluster, deadline))
        status = 0
    finally:
        os._exit(status)


def _answered(asked: Asked, cluster: Cluster, deadline: float) -> bytes:
    try:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST_SECONDS, deadline - time.monotonic()))
        try:
            answer = ("answered", asked.question(cluster))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except OutOfTimeError:
        return pickle.dumps(("late",))
    except Refusal as refusal:
        return pickle.dumps(("refused", type(refusal), refusal.__dict__))
    except Exception as error:  # noqa: BLE001 - whoever asked is told
        return pickle.dumps(("failed", f"{type(error).__name__}: {error}"))


@contextmanager
def unhurried() -> Iterator[None]:
    """What happens inside is done whole: the end of the time is told afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _out_of_time(_number: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError
