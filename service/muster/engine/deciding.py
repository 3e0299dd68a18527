"""How one unit is decided: here or in a worker, and again with its potential victims if it asks for them (semantics 5).

Small units are decided here, as long as neither a search nor preemption is needed; all else in a worker process on a
replica of the arrays. Nothing is committed. Potential victims are looked up only for a unit that fits nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision, DecisionCode, Search, SearchEnd
from muster.core.framework import Profile
from muster.core.preemption_units import DisruptionUnits
from muster.core.search.search import budget_of
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.ports import Clock
from muster.engine.telemetry_port import EngineTelemetry, StartedCycle
from muster.engine.unit_faults import fault_of
from muster.engine.worker_pool import WorkerAnswer, WorkerPool
from muster.model.variations import varied
from muster.telemetry.facts import CycleFacts

INLINE_PODS = 64
INLINE_WORK = 400_000
NO_SEARCH = Fraction(0)
_OUR_PLUGINS = "muster.plugins."


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with how it was made: seconds of the core, a worker's observer events (None: decided here).

    unit: as it was decided, with its share of the search budget and its victims.
    """

    decision: Decision
    profile: str
    cycle: StartedCycle
    snapshot_revision: int
    started: float
    core_seconds: float
    unit: Unit
    events: list[tuple[object, ...]] | None = None


@dataclass(frozen=True, slots=True)
class _Decided:
    """A decision on the arrays of this version; `events` are a worker's."""

    decision: Decision
    unit: Unit
    version: int
    events: list[tuple[object, ...]] | None = None


class Decider:
    """Decides units of one cluster. What it decides here stays assumed in the arrays until they are brought up to date."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        profiles: Mapping[str, Profile],
        pool: WorkerPool,
        telemetry: EngineTelemetry,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._profiles = profiles
        self._pool = pool
        self._telemetry = telemetry
        # A dry run of a unit whose own cycle waits for its search is not placed greedily once more.
        self._last_in_vain: tuple[Unit, str, int] | None = None
        self._last_victims: tuple[tuple[int, int], DisruptionUnits] | None = None

    async def verdict(self, unit: Unit, caller: str = "") -> Verdict:
        """The decision on the present state; `caller` is the trace that it belongs to, whose cycle the caller ends."""
        cycle = self._telemetry.cycle_started(self._cluster.name, unit.key, caller)
        try:
            return await self._verdict(unit, cycle)
        except Exception as error:
            broken = Decision(
                unit.key, DecisionCode.SCHEDULER_ERROR, message=f"{type(error).__name__}: {error}"
            )
            self._telemetry.cycle_dropped(cycle, CycleFacts(broken))
            raise

    async def _verdict(self, unit: Unit, cycle: StartedCycle) -> Verdict:
        cluster = self._cluster
        started, revision = self._clock.monotonic(), cluster.state.revision
        profile = self._profile(unit)
        fault = fault_of(cluster.state, cluster.layouts, unit.key)
        if fault is not None:
            return Verdict(fault, profile.name, cycle, revision, started, 0.0, unit)
        snapshot = cluster.feed.flush()
        unit = cluster.searches.allowed(unit, snapshot, profile)
        made = self._here(snapshot, unit, profile, cycle) if self._is_small(unit, profile) else None
        if made is None:
            made = await self._elsewhere(unit, profile, cycle)
        if made.decision.asks_for_victims:
            made = await self._with_victims(made, profile, cycle)
        seconds = self._clock.monotonic() - started
        return Verdict(made.decision, profile.name, cycle, revision, started, seconds, made.unit, made.events)

    def _here(self, snapshot: Snapshot, unit: Unit, profile: Profile, cycle: StartedCycle) -> _Decided | None:
        """The decision in this process; None if it needs a search, which takes its time."""
        tried = unit if self._pool.is_empty else varied(unit, search_budget_share=NO_SEARCH)
        attempt = (unit, profile.name, snapshot.version)
        if attempt == self._last_in_vain:
            return None
        decision = decide_and_assume(snapshot, tried, profile, cycle.observer)
        if tried is not unit and _is_worth_a_search(decision, unit, profile):
            self._last_in_vain = attempt
            return None
        return _Decided(decision, unit, snapshot.version)

    async def _elsewhere(self, unit: Unit, profile: Profile, cycle: StartedCycle) -> _Decided:
        cluster = self._cluster
        answer: WorkerAnswer = await self._pool.decide(
            cluster.name, cluster.feed, unit, profile, is_recording=cycle.is_recording
        )
        return _Decided(answer.decision, unit, answer.snapshot_version, list(answer.events))

    async def _with_victims(self, made: _Decided, profile: Profile, cycle: StartedCycle) -> _Decided:
        """The decision of a unit that may preempt. How its search ended counts only on the very same arrays."""
        cluster = self._cluster
        snapshot = cluster.feed.flush()
        searched: Search | None = made.decision.search if snapshot.version == made.version else None
        victims = self._victims_below(made.unit.priority)
        if not victims.keys and not snapshot.pods.leaving:
            return _Decided(
                varied(made.decision, asks_for_victims=False), made.unit, made.version, made.events
            )
        unit = varied(made.unit, victims=victims, searched=searched)
        if self._pool.is_empty:
            decision = decide_and_assume(snapshot, unit, profile, cycle.observer)
            return _Decided(decision, unit, snapshot.version)
        answer = await self._elsewhere(unit, profile, cycle)
        if searched is not None and answer.version != made.version:
            return await self._elsewhere(varied(unit, searched=None), profile, cycle)
        return answer

    def _victims_below(self, priority: int) -> DisruptionUnits:
        """The same object for as long as nothing changes, by which a dry run beside the unit's own cycle asks the same."""
        asked = (self._cluster.state.revision, priority)
        if self._last_victims is None or self._last_victims[0] != asked:
            self._last_victims = (asked, self._cluster.disruption.below(priority, self._cluster.budgets))
        return self._last_victims[1]

    def _is_small(self, unit: Unit, profile: Profile) -> bool:
        if self._pool.is_empty:
            return True
        if not _is_our_own(profile):
            return False
        pods = unit.pod_count
        nodes = len(self._cluster.state.objects["Node"])
        return pods <= 1 or (pods <= INLINE_PODS and pods * nodes <= INLINE_WORK)

    def _profile(self, unit: Unit) -> Profile:
        """The profile that the unit's pods name; all of them name the same, or the unit is at fault."""
        signatures = self._cluster.feed.signatures
        for leaf in leaves(unit.root):
            for index in leaf.pods.signatures[:1]:
                name = signatures[index].spec.scheduler_name
                if name in self._profiles:
                    return self._profiles[name]
        return next(iter(self._profiles.values()))


@lru_cache(maxsize=64)
def _is_our_own(profile: Profile) -> bool:
    """Whether all plugins are known to be quick. Others might hang, which only a worker can be stopped from."""
    plugins: list[object] = [*profile.node_filters, *profile.pod_filters]
    plugins += [each.plugin for each in profile.node_scores]
    plugins += [each.plugin for each in profile.fit_scores]
    plugins += [each.plugin for each in profile.pod_scores]
    return all(type(each).__module__.startswith(_OUR_PLUGINS) for each in plugins)


def _is_worth_a_search(decision: Decision, unit: Unit, profile: Profile) -> bool:
    """Whether greedy placement failed where a search, which takes its time, may find something."""
    failed = decision.code is DecisionCode.UNSCHEDULABLE and decision.search.end is SearchEnd.NOT_NEEDED
    return failed and budget_of(unit, profile) > 0
