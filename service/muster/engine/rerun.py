"""Making a recorded decision again from the same input, to see whether it comes out equal (semantics 5).

The objects of the snapshot's revision are found by going back from the present along the log. That works for as long as
the log holds the revisions since then, and the earlier states of all objects that changed since. What no object tells is
in the record. The decision itself is made aside, on a copy that is put back to that revision.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from muster.core.decision import Decision
from muster.core.observer import RecordingObserver
from muster.engine.aside import Setting
from muster.engine.binder import pods_by_ordinal
from muster.engine.cluster import Cluster
from muster.engine.cycle import uncommitted
from muster.engine.deciding import Decider
from muster.engine.decision_input import input_of
from muster.engine.hierarchy import unit_of_pod
from muster.engine.nominations import nominated_pods
from muster.engine.overlay import finished
from muster.engine.ports import (
    ClusterWrites,
    DecisionRecord,
    EventType,
    LogEntry,
    PreemptionWait,
    Store,
)
from muster.engine.replica import follow, follow_wait
from muster.engine.reservations import Reservation, ReservedNodes
from muster.engine.simulation import StoppedClock
from muster.engine.telemetry_port import NullTelemetry, StartedCycle
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.meta import POD, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod

_BLOCK = 500
_ABOVE_ALL = 2**31
"""A priority that no unit has."""
_COMPARED = ("code", "result", "assignments", "preemption", "search")

_ATTEMPTS = 5
MOST_EVENTS = 10_000


class History(Protocol):
    """The log of one cluster."""

    async def read(self, after_revision: int, limit: int) -> list[LogEntry]:
        """Entries in ascending order, at most so many."""
        ...

    async def compacted_revision(self) -> int:
        """The newest revision whose entry is gone."""
        ...


class StoredHistory:
    """The log as a store has it, read apart from the event loop."""

    def __init__(self, store: Store, cluster: str) -> None:
        self._store = store
        self._cluster = cluster

    async def read(self, after_revision: int, limit: int) -> list[LogEntry]:
        return await asyncio.to_thread(self._store.read_log, self._cluster, after_revision, limit)

    async def compacted_revision(self) -> int:
        return await asyncio.to_thread(self._store.compacted_revision, self._cluster)


Ask = Callable[["RerunQuestion"], Awaitable["Rerun | None"]]


class NotKeptError(Exception):
    """What the decision was made on is not kept any more, or never was."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of it. `again`: the decision of now, None if it could not be made, which `not_possible` explains.

    events: how it was made, as a `RecordingObserver` tells it; the first MOST_EVENTS.
    """

    again: DecisionRecord | None = None
    is_same_input: bool = False
    differences: tuple[str, ...] = ()
    not_possible: str = ""
    events: tuple[tuple[object, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class _RecordedCycle:
    observer: RecordingObserver
    trace_id: str = ""
    is_recording: bool = True


class _RecordingTelemetry(NullTelemetry):
    """Hears nothing but how cycles decide."""

    def __init__(self) -> None:
        self.observer = RecordingObserver(time.monotonic_ns)

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> StartedCycle:
        """A cycle whose observer keeps what it hears."""
        return _RecordedCycle(self.observer)


@dataclass(frozen=True, slots=True)
class WayBack:
    """From one revision, the `start`, back to `revision`: earlier states of objects that changed, keys of those that came."""

    start: int
    revision: int
    came_later: frozenset[ObjectKey] = frozenset()
    earlier: dict[ObjectKey, ClusterObject] = field(default_factory=dict)


async def rerun(record: DecisionRecord, history: History, ask: Ask) -> Rerun:
    """What comes of deciding again. Raises what `ask` does."""
    if not record.input.digest:
        return Rerun(not_possible="no cycle made this decision, or one that kept no note of its input")
    for _ in range(_ATTEMPTS):
        try:
            way = await way_back(history, record.snapshot_revision)
        except NotKeptError as error:
            return Rerun(not_possible=str(error))
        found = await ask(RerunQuestion(record, way))
        if found is not None:
            return found
    return Rerun(not_possible=f"the cluster changed during each of {_ATTEMPTS} attempts")


async def way_back(history: History, revision: int) -> WayBack:
    """How to get from the present to a revision. Raises NotKeptError."""
    compacted = await history.compacted_revision()
    if revision < compacted:
        raise NotKeptError(f"revision {revision} is not kept any more: the oldest is {compacted}")
    present, came, wanted = await _changed_since(history, revision)
    earlier: dict[ObjectKey, ClusterObject] = {}
    end = revision
    while wanted and end > compacted:
        start = max(compacted, end - _BLOCK)
        for entry in reversed(
            [each for each in await history.read(start, end - start) if each.revision <= end]
        ):
            for change in entry.changes:
                key = change.object.key
                if key in wanted and change.type is not EventType.DELETED:
                    wanted.discard(key)
                    earlier[key] = change.object
        end = start
    if wanted:
        text = f"the state of {min(wanted)} at revision {revision} is not kept any more"
        raise NotKeptError(text if len(wanted) == 1 else f"{text}, nor that of {len(wanted) - 1} others")
    return WayBack(present, revision, frozenset(came), earlier)


async def _changed_since(history: History, revision: int) -> tuple[int, set[ObjectKey], set[ObjectKey]]:
    """The newest revision, objects that came after the older one, and those that were there and changed."""
    came: set[ObjectKey] = set()
    changed: set[ObjectKey] = set()
    after = revision
    while entries := await history.read(after, _BLOCK):
        for entry in entries:
            for change in entry.changes:
                key = change.object.key
                if key not in came and key not in changed:
                    (came if change.type is EventType.ADDED else changed).add(key)
        after = entries[-1].revision
    return after, came, changed


@dataclass(frozen=True, slots=True)
class RerunQuestion:
    """Decides a recorded decision again on a copy of its cluster."""

    record: DecisionRecord
    way: WayBack

    def __call__(self, cluster: Cluster, setting: Setting) -> Rerun | None:
        """What came of it; None if the copy is not where the way starts."""
        record = self.record
        if cluster.state.revision != self.way.start:
            return None
        if record.profile not in setting.profiles:
            return Rerun(not_possible=f"profile {record.profile!r} is not defined any more")
        _go_back(cluster, self.way)
        _put_back_wait(cluster, record)
        cluster.failed_bindings.take_over(
            {pod: dict.fromkeys(nodes, 0) for pod, nodes in record.input.excluded.items()}
        )
        cluster.reservations.current = _reservation_of(cluster, record)
        if cluster.state.get(record.decision.unit) is None:
            return Rerun(not_possible=f"{record.decision.unit} is not among the objects of that revision")
        unit = replace(
            build_unit(cluster, record.decision.unit), search_budget_share=Fraction(record.input.budget_share)
        )
        pods = pods_by_ordinal(cluster, unit)
        digest = input_of(cluster, unit, setting.profiles[record.profile], self.way.revision).digest
        clock = StoppedClock(setting.now_us)
        telemetry = _RecordingTelemetry()
        decider = Decider(cluster, clock, setting.profiles, WorkerPool(0), telemetry)
        verdict = finished(decider.verdict(unit))
        again = uncommitted(cluster, pods, verdict, verdict.decision, setting.now_us)
        return Rerun(
            again=replace(again, revision=0, input=replace(record.input, digest=digest)),
            is_same_input=digest == record.input.digest,
            differences=tuple(differing(record.decision, again.decision)),
            events=tuple(telemetry.observer.events[:MOST_EVENTS]),
        )


def differing(one: Decision, other: Decision) -> Iterable[str]:
    """Names of the parts that make decisions equal and are not."""
    return (part for part in _COMPARED if getattr(one, part) != getattr(other, part))


def _go_back(cluster: Cluster, way: WayBack) -> None:
    """Put the objects back; of the rows none is put back, since a cycle reads none but those of the record."""
    state = cluster.state
    gone = {key: item for key in way.came_later if (item := state.get(key)) is not None}
    for key, earlier in way.earlier.items():
        present = state.get(key)
        # Another object of that name, or one on its way out: nothing that a cluster goes through leads back from that.
        if present is not None and (present.ordinal, present.deletion_us) != (
            earlier.ordinal,
            earlier.deletion_us,
        ):
            gone[key] = present
    writes = ClusterWrites(cluster.name, 0, way.revision, puts=dict(way.earlier), removed=gone)
    state.revision = way.revision
    follow(cluster, writes)


def _reservation_of(cluster: Cluster, record: DecisionRecord) -> Reservation | None:
    """One that keeps from the unit what was kept from it then, and has no other use."""
    rows = record.input.reserved
    if not rows:
        return None
    wanted = {ordinal for ordinal, _, _ in rows}
    pods = {
        pod.ordinal: pod
        for pod in cluster.state.objects[POD].values()
        if isinstance(pod, Pod) and pod.ordinal in wanted
    }
    if len(pods) < len(wanted):
        return None
    room = tuple(
        ReservedNodes(pods[ordinal], tuple(name for _, name, number in alike for _ in range(number)))
        for ordinal, alike in groupby(rows, key=itemgetter(0))
    )
    holder = unit_of_pod(cluster.state, pods[rows[0][0]]).key
    return Reservation(holder, _ABOVE_ALL, preempts=False, room=room)


def _put_back_wait(cluster: Cluster, record: DecisionRecord) -> None:
    """What the unit waited for then; where its pods were nominated is in their status."""
    unit = record.decision.unit
    cluster.waits.forget(unit)
    is_nominating = any(each == unit for each, _ in nominated_pods(cluster))
    if record.input.awaited or record.input.stayed or is_nominating:
        follow_wait(cluster, PreemptionWait(unit, record.input.awaited, 0, record.input.stayed))
