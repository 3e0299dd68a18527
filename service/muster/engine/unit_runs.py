"""Runs of small units that are placed whole one after the other, in one step of the event loop, and committed together.

As good as a cycle for each: every unit is decided on what those before it took, and its revision is the next one. The run
ends at the first unit of which that is not so, which gets a cycle of its own and decides there, on what was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from muster.core.snapshot import Snapshot
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.deciding import Decider, Verdict
from muster.engine.equal_units import EqualUnits
from muster.engine.hierarchy import unbound_pods
from muster.engine.placed_units import is_undisturbed, leaves_nothing
from muster.engine.ports import Clock, QueuedUnit
from muster.engine.units import build_unit
from muster.model.meta import ObjectKey

_LOG = logging.getLogger(__name__)
MOST_UNITS = 32
MOST_SECONDS = 0.002


class Placed(NamedTuple):
    """A unit of a run, in flight still: its row, and the verdict by which all of it has nodes, which are assumed."""

    row: QueuedUnit
    verdict: Verdict


class Left(NamedTuple):
    """A unit in flight that is to have a cycle of its own, with the trace that it belongs to."""

    row: QueuedUnit
    caller: str = ""


class UnitRuns:
    """`is_promising`: the last unit was placed whole, so that the next one is likely to be; else it would be decided twice."""

    def __init__(
        self, cluster: Cluster, clock: Clock, decider: Decider, is_asked_for: Callable[[ObjectKey], bool]
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._decider = decider
        self._is_asked_for = is_asked_for
        self.is_promising = True

    def collect(self, row: QueuedUnit) -> tuple[list[Placed], Left | None]:
        """The units of a run that begins with this one, which was popped; and the one that ended it, popped as well, if any."""
        run: list[Placed] = []
        if not self.is_promising or not is_undisturbed(self._cluster):
            return run, Left(row)
        queue, until = self._cluster.queue, self._clock.monotonic() + MOST_SECONDS
        snapshot, revision = self._cluster.feed.flush(), self._cluster.state.revision
        equal = EqualUnits(self._cluster, snapshot)
        following: QueuedUnit | None = row
        while following is not None:
            caller = queue.take_caller(following.key)
            verdict = self._verdict(following, equal, snapshot, revision + len(run), caller)
            if verdict is None:
                return run, Left(following, caller)
            run.append(Placed(following, verdict))
            run += self._placed_together(equal, MOST_UNITS - len(run), snapshot, revision + len(run))
            is_over = len(run) >= MOST_UNITS or self._clock.monotonic() >= until
            following = None if is_over else queue.pop()
        return run, None

    def _verdict(
        self, row: QueuedUnit, equal: EqualUnits, snapshot: Snapshot, revision: int, caller: str
    ) -> Verdict | None:
        """The verdict that places all of the unit; None if it is to have a cycle of its own."""
        if not self._is_fresh(row):
            return None
        try:
            unit = equal.unit(row.key) or self._unit(row.key, equal, snapshot)
            if unit is None:
                return None
            verdict = self._decider.at_once(unit, equal.profile, snapshot, revision, caller)
        except Exception:  # noqa: BLE001 - its own cycle says what is wrong with it
            _LOG.debug("%s broke in a run, and is tried by itself", row.key, exc_info=True)
            return None
        self.is_promising = verdict is not None
        return verdict

    def _placed_together(
        self, equal: EqualUnits, most: int, snapshot: Snapshot, revision: int
    ) -> list[Placed]:
        """Units that follow and are equal to the last one, in one step, for as long as they find nodes; others stay in line."""
        queue, rows, units = self._cluster.queue, list[QueuedUnit](), list[Unit]()
        most = min(most, equal.most()) if queue.first() is not None else 0
        while len(units) < most and (row := queue.first()) is not None:
            unit = self._equal_unit(row, equal)
            if unit is None:
                break
            queue.take(row.key)
            rows.append(row)
            units.append(unit)
        callers = [queue.take_caller(row.key) for row in rows]
        verdicts: list[Verdict] = []
        try:
            if units:
                verdicts = self._decider.together(units, equal.profile, snapshot, revision, callers)
        except Exception:  # noqa: BLE001 - one by one they show which of them it is
            _LOG.debug("units from %s on broke together", units[0].key, exc_info=True)
        for place in range(len(verdicts), len(rows)):
            queue.step_back(rows[place].key, callers[place])
        return [Placed(row, verdict) for row, verdict in zip(rows, verdicts, strict=False)]

    def _equal_unit(self, row: QueuedUnit, equal: EqualUnits) -> Unit | None:
        """The unit, if it is equal to the last one and as likely to be placed."""
        if not self._is_fresh(row) or self._cluster.searches.has_failed(row.key):
            return None
        try:
            return equal.unit(row.key)
        except Exception:  # noqa: BLE001 - its own cycle says what is wrong with it
            return None

    def _is_fresh(self, row: QueuedUnit) -> bool:
        """Whether the unit has not failed, is not at fault, and nobody asks about it."""
        return not (row.attempts or row.key in self._cluster.layouts.faults or self._is_asked_for(row.key))

    def _unit(self, key: ObjectKey, equal: EqualUnits, snapshot: Snapshot) -> Unit | None:
        """The unit, if it may be part of the run; it is noted as the one that others are compared to."""
        cluster = self._cluster
        if cluster.state.get(key) is None:
            return None
        if not self._decider.may_be_small(sum(unbound_pods(cluster.state, key))):
            return None
        unit = build_unit(cluster, key)
        if not leaves_nothing(cluster, unit) or not self._knows(unit, snapshot):
            return None
        profile = self._decider.profile_at_once(unit)
        if profile is None:
            self.is_promising = False
            return None
        equal.note(unit, profile)
        return unit

    def _knows(self, unit: Unit, snapshot: Snapshot) -> bool:
        """Whether the arrays have the signatures of all its pods. They take in no new ones once a unit of the run is assumed."""
        highest = max(max(leaf.pods.signatures, default=0) for leaf in leaves(unit.root))
        if highest >= len(snapshot.signatures) and not snapshot.has_assumptions:
            self._cluster.feed.flush()
        return highest < len(snapshot.signatures)
