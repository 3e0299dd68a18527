"""A worker process: replicas of clusters' arrays, and the pure core run on them.

It is a new interpreter that imports nothing but the core and its plugins, and lives as long as the pipe to its parent.
It says ("ready",) once it has been through all of its code. Messages are tuples: ("start", cluster, pickled snapshot), ("deltas", cluster, deltas), ("drop", cluster),
("decide", cluster, unit, profile, recording), ("place", cluster, unit, profile, departures), ("follow", cluster). Only
the last three are answered, with ("decided", decision, events), ("placed", place) or ("failed", text), ("following",). A replica that cannot follow its deltas ends the process: the parent sends all of them anew.
"""

from __future__ import annotations

import gc
import pickle
import signal
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from muster.core.decide import decide
from muster.core.framework import Profile
from muster.core.observer import NullObserver, RecordingObserver
from muster.core.snapshot import Snapshot
from muster.core.soonest_place import Departures, soonest_place
from muster.core.tree import Unit
from muster.engine.warm_up import warm_up


def main(descriptor: int) -> None:
    """Serve the pipe that was inherited under this number."""
    run(Connection(descriptor))


def run(pipe: Connection) -> None:
    """Serve until the parent closes the pipe. Signals are the parent's business."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    warm_up()
    gc.freeze()
    replicas: dict[str, Snapshot] = {}
    with suppress(EOFError, ConnectionError):
        pipe.send(("ready",))
        while True:
            answer = _follow(replicas, pipe.recv())
            if answer is not None:
                pipe.send(answer)


def decide_on(snapshot: Snapshot, unit: Unit, profile: Profile, *, is_recording: bool) -> tuple[Any, ...]:
    """The answer to "decide". Leaves the snapshot as it found it, whatever the core does."""
    recorder = RecordingObserver(time.monotonic_ns) if is_recording else None
    before = snapshot.mark()
    try:
        decision = decide(snapshot, unit, profile, recorder or NullObserver())
    except Exception as error:  # noqa: BLE001 - whoever asked is told, and the snapshot stays of use
        snapshot.rollback(before)
        return ("failed", f"{type(error).__name__}: {error}")
    return ("decided", decision, recorder.events if recorder is not None else [])


def place_on(snapshot: Snapshot, unit: Unit, profile: Profile, departures: Departures) -> tuple[Any, ...]:
    """The answer to "place". Leaves the snapshot as it found it, whatever the core does."""
    try:
        return ("placed", soonest_place(snapshot, unit, profile, departures))
    except Exception as error:  # noqa: BLE001 - whoever asked is told, and the snapshot stays of use
        return ("failed", f"{type(error).__name__}: {error}")


def _follow(replicas: dict[str, Snapshot], message: tuple[Any, ...]) -> tuple[Any, ...] | None:
    word, cluster, *rest = message
    if word == "decide":
        unit, profile, is_recording = rest
        return decide_on(replicas[cluster], unit, profile, is_recording=is_recording)
    if word == "place":
        unit, profile, departures = rest
        return place_on(replicas[cluster], unit, profile, departures)
    if word == "follow":
        return ("following",)
    if word == "start":
        replicas[cluster] = pickle.loads(rest[0])  # noqa: S301 - from our own parent
        # A replica lives long: no collection need walk through it.
        gc.freeze()
    elif word == "deltas":
        for delta in rest[0]:
            replicas[cluster].apply(delta)
    else:
        replicas.pop(cluster, None)
    return None
