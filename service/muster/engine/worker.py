"""A worker process: replicas of clusters' arrays, and the pure core run on them.

It is spawned, imports nothing but the core, and lives as long as the pipe to its parent. Messages are tuples:
("start", cluster, pickled snapshot), ("deltas", cluster, deltas), ("drop", cluster), ("decide", cluster, unit, profile, recording);
only the last is answered, with ("decided", decision, events) or ("failed", text).
"""

from __future__ import annotations

import gc
import pickle
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from muster.core.decide import decide
from muster.core.framework import Profile
from muster.core.observer import NullObserver, RecordingObserver
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit


def run(pipe: Connection) -> None:
    """Serve until the parent closes the pipe. Signals are the parent's business."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()
    replicas: dict[str, Snapshot] = {}
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            return
        answer = _handle(replicas, message)
        if answer is not None:
            pipe.send(answer)


def _handle(replicas: dict[str, Snapshot], message: tuple[Any, ...]) -> tuple[Any, ...] | None:
    word, cluster = message[0], message[1]
    if word == "start":
        replicas[cluster] = pickle.loads(message[2])  # noqa: S301 - from our own parent
    elif word == "deltas":
        for delta in message[2]:
            replicas[cluster].apply(delta)
    elif word == "drop":
        replicas.pop(cluster, None)
    else:
        return _decide(replicas[cluster], *message[2:])
    return None


def _decide(snapshot: Snapshot, unit: Unit, profile: Profile, recording: bool) -> tuple[Any, ...]:  # noqa: FBT001 - a message's field
    observer = RecordingObserver(time.monotonic_ns) if recording else None
    before = snapshot.mark()
    try:
        decision = decide(snapshot, unit, profile, observer or NullObserver())
    except Exception as error:  # noqa: BLE001 - the parent is told, and the replica goes on
        snapshot.rollback(before)
        return ("failed", f"{type(error).__name__}: {error}")
    return ("decided", decision, observer.events if observer is not None else [])
