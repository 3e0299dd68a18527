"""Simulate (api.md): what would be decided if the cluster were otherwise. Runs on a copy, by the code of real cycles.

The units are decided one after the other, each on what those before it leave, and committed to the copy as a cycle
commits: so a simulation and the Schedule calls that follow it agree, as long as nothing changes between. Where the
time ends, the answer is what was decided by then. Nothing here knows a store.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.core.decision import Decision, DecisionCode
from muster.engine.aside import Setting
from muster.engine.binder import commit_decision
from muster.engine.cluster import Cluster
from muster.engine.deciding import Decider
from muster.engine.errors import ConflictError, InvalidArgumentError, NotFoundError
from muster.engine.eviction import Eviction
from muster.engine.hierarchy import Root, why_gated, why_nothing_waits
from muster.engine.mutation import Mutation
from muster.engine.overlay import Overlay, SentObjects, lay_over, put_objects, uid_conflicts
from muster.engine.ports import DecisionRecord, UnitState
from muster.engine.scheduling import root_in
from muster.engine.side_process import OutOfTimeError, unhurried
from muster.engine.simulation_totals import Totals, Use, label_keys, totals_of, use_of
from muster.engine.slices import finished
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.meta import ObjectKey
from muster.model.priority import NEVER
from muster.model.variations import varied
from muster.validation.violations import TOO_MANY, Violation

_NO_CHANGES = Overlay()
_MOST_NAMED = 3
MOST_UNITS = 10_000
"""Units of a queue that one simulation decides."""


class StoppedClock:
    """One moment for all that is written; only durations go on."""

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class Simulation:
    """What is asked. base: objects to start from instead of a cluster. units: none for the whole queue.

    unit_uids: the uid that each of `units` must have, "" for any.
    faults: what is wrong with the request itself, to be told together with what is wrong with its objects.
    """

    base: SentObjects | None = None
    overlay: Overlay = _NO_CHANGES
    units: tuple[ObjectKey, ...] = ()
    unit_uids: tuple[str, ...] = ()
    with_preemption: bool = True
    faults: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulationAnswer:
    """decisions: one a unit, in order. is_partial: units were left undecided. revision: that of the cluster; 0 without."""

    decisions: tuple[DecisionRecord, ...]
    totals: Totals
    is_partial: bool
    revision: int


def simulate(cluster: Cluster, simulation: Simulation, setting: Setting) -> SimulationAnswer:
    """The decisions on the cluster with its changes, which it has afterwards.

    Raises InvalidArgumentError with every fault, ConflictError, NotFoundError for units that do not exist.
    """
    running = _Running(cluster, simulation, setting)
    try:
        is_partial = running.decide_all()
    except OutOfTimeError:
        is_partial = True
    cluster.feed.flush()
    return SimulationAnswer(
        tuple(running.records),
        totals_of(cluster, running.before, running.records),
        is_partial,
        running.revision,
    )


def _reason(of_request: Sequence[Violation], faults: Sequence[Violation]) -> str:
    """What a refusal with these faults is called, of which some are the request's own."""
    if not of_request:
        return "INVALID_OBJECTS"
    return "LIMIT_EXCEEDED" if all(fault.reason == TOO_MANY for fault in faults) else "INVALID_REQUEST"


class _Running:
    """One simulation in the making. `before`: what was in use when it began."""

    def __init__(self, cluster: Cluster, simulation: Simulation, setting: Setting) -> None:
        self.records: list[DecisionRecord] = []
        self.revision = cluster.state.revision if simulation.base is None else 0
        self.before = Use({}, {})
        self._cluster = cluster
        self._simulation = simulation
        self._setting = setting
        clock = StoppedClock(setting.now_us)
        self._decider = Decider(cluster, clock, setting.profiles, WorkerPool(0), NullTelemetry())

    def decide_all(self) -> bool:
        """Whether some units were left. Raises what refuses the request, OutOfTimeError at any time."""
        self._prepare()
        units = self._units()
        for root in units[:MOST_UNITS]:
            self._decide(root)
        return len(units) > MOST_UNITS

    def _prepare(self) -> None:
        cluster, asked, now_us = self._cluster, self._simulation, self._setting.now_us
        faults = list(asked.faults)
        if asked.base is not None:
            faults += put_objects(cluster, asked.base, now_us)
        self.before = use_of(cluster.feed.flush(), label_keys(cluster, asked.overlay.sent.objects))
        conflicts = uid_conflicts(cluster, asked.overlay.removed, asked.overlay.removed_uids)
        faults += lay_over(cluster, asked.overlay, now_us)
        if faults:
            first = faults[0]
            text = f"{len(faults)} fault(s) in the simulation, first {first.field}: {first.description}"
            raise InvalidArgumentError(_reason(asked.faults, faults), text, faults)
        conflicts += uid_conflicts(cluster, asked.units, asked.unit_uids)
        if conflicts:
            text = f"{conflicts[0].subject} {conflicts[0].description}"
            raise ConflictError("UID_MISMATCH", text, conflicts)

    def _units(self) -> list[Root]:
        state = self._cluster.state
        if not self._simulation.units:
            return [Root(row.key) for row in self._cluster.queue.in_order()]
        missing = _missing(self._cluster, self._simulation.units)
        if missing:
            names = ", ".join(map(str, missing[:_MOST_NAMED]))
            raise NotFoundError(
                "OBJECT_NOT_FOUND",
                f"{len(missing)} of the units do not exist: {names}",
                [(key.kind, str(key)) for key in missing],
            )
        return list(dict.fromkeys(root_in(state, key) for key in self._simulation.units))

    def _decide(self, root: Root) -> None:
        now_us = self._setting.now_us
        rests = self._rests(root)
        if rests is not None:
            self.records.append(DecisionRecord("", 0, self.revision, rests, create_us=now_us))
            return
        unit = build_unit(self._cluster, root.key)
        if not self._simulation.with_preemption:
            unit = varied(unit, preemption_policy=NEVER)
        verdict = finished(self._decider.verdict(unit))
        record = DecisionRecord(
            id="",
            revision=0,
            snapshot_revision=self.revision,
            decision=verdict.decision,
            profile=verdict.profile,
            create_us=now_us,
            duration_us=int(verdict.core_seconds * 1_000_000),
        )
        with unhurried():
            mutation = Mutation(self._cluster, now_us)
            record = commit_decision(self._cluster, unit, record, mutation, self._eviction(verdict.profile))
            self.records.append(varied(record, id="", revision=0))

    def _rests(self, root: Root) -> Decision | None:
        """Why no cycle can run for the unit; None if one can."""
        if root.missing:
            code = DecisionCode.INVALID if root.cycle else DecisionCode.PENDING
            return Decision(root.key, code, message=root.why_pending)
        row = self._cluster.queue.get(root.key)
        if row is None:
            return Decision(
                root.key, DecisionCode.UNCHANGED, message=why_nothing_waits(self._cluster.state, root.key)
            )
        if row.state is UnitState.GATED:
            return Decision(root.key, DecisionCode.GATED, message=why_gated(self._cluster.state, root.key))
        return None

    def _eviction(self, profile: str) -> Eviction:
        found = self._setting.profiles[profile]
        return Eviction(self._setting.clients_evict, found.preemption.eviction_timeout_seconds)


def _missing(cluster: Cluster, units: Iterable[ObjectKey]) -> list[ObjectKey]:
    return [key for key in units if cluster.state.get(key) is None]
