"""The process of the side worker seen from here: how it is started, and what is known of it while it lives."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from muster.engine.replica import ReplicaFeed

NICENESS = 10
# Threads of numerical libraries do not survive a fork, and a process of low priority needs none.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_ENTRY = """
import gc, os, signal, sys
gc.disable()
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.nice({niceness})
sys.path[:] = {path!r}
from muster.engine.side_process import main
main({descriptor})
"""


@dataclass(slots=True, eq=False)
class Side:
    """The process while it lives. `replicas` says which feed each of its clusters follows.

    limits: seconds of the questions that it was asked and has not answered. heard: when it last gave a sign of life, or
    had nothing to say.
    """

    process: subprocess.Popen[bytes]
    pipe: Connection
    is_rehearsed: bool = False
    replicas: dict[str, ReplicaFeed] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    answers: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)
    limits: dict[int, float] = field(default_factory=dict)
    heard: float = 0.0

    def speaks_by(self) -> float:
        """When it must have given a sign of life, or a little later: some question is in work, and ends or is ended."""
        return self.heard + max(self.limits.values(), default=0.0)


def started_side() -> Side:
    """A process that has just been started."""
    ours, theirs = Pipe()
    entry = _ENTRY.format(niceness=NICENESS, path=sys.path, descriptor=theirs.fileno())
    with theirs:
        # A group of its own, so that it can be ended with all that it started.
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", entry],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, **_ONE_THREAD},
            process_group=0,
        )
    return Side(process, ours)
