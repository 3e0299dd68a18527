"""Making recorded decisions again from the same input, to see whether they come out equal (semantics 5).

They are made aside, on a copy of the cluster that is put back to the revision of each. How to get there is
`rerun_way`'s to find out, when and together with which others `rerun_batches`'. What no object tells is in the record.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

from muster.core.decision import Decision, GroupResult
from muster.core.observer import RecordingObserver
from muster.engine.aside import Setting
from muster.engine.binder import pods_by_ordinal
from muster.engine.cluster import Cluster
from muster.engine.deciding import Decider
from muster.engine.decision_input import input_of
from muster.engine.hierarchy import unit_of_pod
from muster.engine.nominations import nominated_pods
from muster.engine.ports import ClusterWrites, DecisionRecord, PreemptionWait
from muster.engine.replica import follow, follow_wait
from muster.engine.rerun_way import StepBack
from muster.engine.reservations import Reservation, ReservedNodes
from muster.engine.side_process import OutOfTimeError
from muster.engine.simulation import StoppedClock
from muster.engine.slices import finished
from muster.engine.telemetry_port import NullTelemetry, StartedCycle
from muster.engine.uncommitted import uncommitted
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.meta import ObjectKey

_ABOVE_ALL = 2**31
"""A priority that no unit has."""
_COMPARED = ("code", "result", "assignments", "preemption", "search")
MOST_EVENTS = 10_000


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
class Moved:
    """The cluster is not where the way back starts, but at this revision."""

    revision: int


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
class RerunQuestion:
    """Decides recorded decisions again on a copy of their cluster, which it takes back from one's revision to the next.

    steps: pickled steps of a way back, one leading to the revision of each record's snapshot. records: those of the
    newest snapshots first.
    """

    start: int
    steps: Sequence[bytes]
    records: Sequence[DecisionRecord]

    def __call__(self, cluster: Cluster, setting: Setting) -> tuple[Rerun, ...] | Moved:
        """What came of each, in order; if the time ends, of the first ones, at least one."""
        if cluster.state.revision != self.start:
            return Moved(cluster.state.revision)
        made: list[Rerun] = []
        try:
            made.extend(self._made(cluster, setting))
        except OutOfTimeError:
            if not made:
                made.append(Rerun(not_possible="making it again takes longer than a question may take"))
        return tuple(made)

    def _made(self, cluster: Cluster, setting: Setting) -> Iterator[Rerun]:
        steps = iter(self.steps)
        for record in self.records:
            while cluster.state.revision != record.snapshot_revision:
                step: StepBack = pickle.loads(next(steps))  # noqa: S301 - from our own parent
                _go_back(cluster, step)
            yield _made_again(cluster, record, setting)


def _made_again(cluster: Cluster, record: DecisionRecord, setting: Setting) -> Rerun:
    """What comes of the decision on the cluster, which is at the revision of its snapshot."""
    if record.profile not in setting.profiles:
        return Rerun(not_possible=f"profile {record.profile!r} is not defined any more")
    if cluster.state.get(record.decision.unit) is None:
        return Rerun(not_possible=f"{record.decision.unit} is not among the objects of that revision")
    _put_back_rows(cluster, record)
    unit = replace(
        build_unit(cluster, record.decision.unit), search_budget_share=Fraction(record.input.budget_share)
    )
    pods = pods_by_ordinal(cluster, unit)
    digest = input_of(cluster, unit, setting.profiles[record.profile], record.snapshot_revision).digest
    clock = StoppedClock(setting.now_us)
    telemetry = _RecordingTelemetry()
    decider = Decider(cluster, clock, setting.profiles, WorkerPool(0), telemetry)
    verdict = finished(decider.verdict(unit))
    again = uncommitted(cluster, pods, verdict, verdict.decision, setting.now_us)
    cluster.waits.forget(unit.key)
    return Rerun(
        again=replace(again, revision=0, input=replace(record.input, digest=digest)),
        is_same_input=digest == record.input.digest,
        differences=tuple(differing(record.decision, again.decision)),
        events=tuple(telemetry.observer.events[:MOST_EVENTS]),
    )


def differing(one: Decision, other: Decision) -> Iterable[str]:
    """Names of the parts that make decisions equal and are not."""
    return (part for part in _COMPARED if _comparable(one, part) != _comparable(other, part))


def _comparable(decision: Decision, part: str) -> object:
    value = getattr(decision, part)
    return _unnumbered(value) if isinstance(value, GroupResult) else value


def _unnumbered(result: GroupResult) -> GroupResult:
    """The result without the numbers of signatures, which each start of the service gives anew."""
    in_order = sorted(result.pod_reasons.values(), key=repr)
    children = tuple(_unnumbered(child) for child in result.children)
    return replace(result, pod_reasons=dict(enumerate(in_order)), children=children)


def _go_back(cluster: Cluster, step: StepBack) -> None:
    """Put the objects back; of the rows none is put back, since a cycle reads none but those of the record."""
    state = cluster.state
    gone = {key: item for key in step.came_later if (item := state.get(key)) is not None}
    for key, earlier in step.earlier.items():
        present = state.get(key)
        # Another object of that name, or one on its way out: nothing that a cluster goes through leads back from that.
        if present is not None and (present.ordinal, present.deletion_us) != (
            earlier.ordinal,
            earlier.deletion_us,
        ):
            gone[key] = present
    writes = ClusterWrites(cluster.name, 0, step.revision, puts=step.earlier, removed=gone)
    state.revision = step.revision
    follow(cluster, writes)


def _put_back_rows(cluster: Cluster, record: DecisionRecord) -> None:
    """What the record says of the unit beside its objects."""
    _put_back_wait(cluster, record)
    cluster.failed_bindings.take_over(
        {pod: dict.fromkeys(nodes, 0) for pod, nodes in record.input.excluded.items()}
    )
    cluster.reservations.current = _reservation_of(cluster, record)


def _reservation_of(cluster: Cluster, record: DecisionRecord) -> Reservation | None:
    """One that keeps from the unit what was kept from it then, and has no other use."""
    rows = record.input.reserved
    if not rows:
        return None
    wanted = {ordinal for ordinal, _, _ in rows}
    pods = {pod.ordinal: pod for pod in cluster.state.pods() if pod.ordinal in wanted}
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
