"""How one unit is decided: here or in a worker, and again with its potential victims if it asks for them (semantics 5).

Small units are decided here, as long as neither a search nor preemption is needed; all else in a worker process on a
replica of the arrays. Nothing is committed. Potential victims are looked up only for a unit that fits nowhere.
A unit may wait for its worker: what is asked then is the unit of that moment, as the arrays are, so that one revision
tells the whole input and the decision can be made again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from muster.core.decide import decide_and_assume, decide_together
from muster.core.decision import Decision, DecisionCode, Search, SearchEnd, Status
from muster.core.framework import Profile
from muster.core.preemption_units import DisruptionUnits
from muster.core.search.search import budget_of
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.decision_input import input_of
from muster.engine.placed_units import is_whole
from muster.engine.ports import Clock, DecisionInput
from muster.engine.slices import give_way
from muster.engine.telemetry_port import EngineTelemetry, StartedCycle
from muster.engine.unit_faults import fault_of
from muster.engine.unit_terms import term_count
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.variations import variation, varied
from muster.telemetry.facts import CycleFacts

CHANGES_A_SLICE = 100
INLINE_PODS = 64
INLINE_WORK = 400_000
INLINE_TERMS = 48
NO_SEARCH = Fraction(0)
_FAILED = (DecisionCode.UNSCHEDULABLE, DecisionCode.WAITING_FOR_PREEMPTION)
_OUR_PLUGINS = "muster.plugins."
_with_share = variation(Unit, "search_budget_share")


class Verdict(NamedTuple):
    """A decision with how it was made: seconds of the core, a worker's observer events (None: decided here).

    unit: as it was decided, with its share of the search budget and its victims. snapshot_revision: that of the unit and
    of the arrays, which `input` tells about. is_outdated: the unit's tree had changed when its worker was free for it.
    """

    decision: Decision
    profile: str
    cycle: StartedCycle
    snapshot_revision: int
    started: float
    core_seconds: float
    unit: Unit
    input: DecisionInput
    events: list[tuple[object, ...]] | None = None
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class _Decided:
    """A decision on the unit and the arrays of one moment; `events` are a worker's."""

    decision: Decision
    unit: Unit
    version: int
    revision: int
    input: DecisionInput
    events: list[tuple[object, ...]] | None = None
    is_outdated: bool = False


@dataclass(slots=True, eq=False)
class _Asked:
    """What a worker is asked about a unit: the unit as it is when the worker is free, made ready as `ready` does it.

    A unit whose tree is another by then is asked about as it was: that answer is of no use to a cycle, but tells a dry
    run what it wanted to know.
    """

    cluster: Cluster
    profile: Profile
    plain: Unit
    ready: Callable[[Unit], Unit]
    is_outdated: bool = False
    revision: int = -1
    unit: Unit = field(init=False)
    input: DecisionInput = field(init=False)

    def __call__(self) -> Unit:
        state = self.cluster.state
        if self.revision != state.revision:
            if self.revision >= 0:
                self._renew()
            self.revision = state.revision
            self.unit = self.ready(self.plain)
            self.input = input_of(self.cluster, self.unit, self.profile, self.revision)
        return self.unit

    def _renew(self) -> None:
        key = self.plain.key
        is_there = self.cluster.state.get(key) is not None
        unit = build_unit(self.cluster, key) if is_there else None
        if unit is None or unit.root != self.plain.root or key in self.cluster.layouts.faults:
            self.is_outdated = True
        else:
            self.plain = unit
            self.is_outdated = self.is_outdated or self.cluster.queue.is_overtaken(key)


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

    async def prepare(self) -> None:
        """Take in many changed nodes, in slices, and have the worker do so: else the next unit would do it in one go."""
        feed = self._cluster.feed
        is_much = feed.is_far_behind
        while feed.is_far_behind:
            feed.take_in(CHANGES_A_SLICE)
            await give_way()
        if is_much:
            self._pool.prepare(self._cluster.name, feed)

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
            made_on = input_of(cluster, unit, profile, revision)
            return Verdict(fault, profile.name, cycle, revision, started, 0.0, unit, made_on)
        made = self._here(unit, profile, cycle) if self._is_small(unit, profile) else None
        if made is None:
            made = await self._elsewhere(unit, self._allowed(profile), profile, cycle)
        if made.decision.asks_for_victims:
            made = await self._with_victims(unit, made, profile, cycle)
        return Verdict(
            made.decision,
            profile.name,
            cycle,
            made.revision,
            started,
            self._clock.monotonic() - started,
            made.unit,
            made.input,
            made.events,
            made.is_outdated,
        )

    def profile_at_once(self, unit: Unit) -> Profile | None:
        """The profile of a unit that may be decided at once, since it is small and not at fault."""
        cluster, profile = self._cluster, self._profile(unit)
        is_fit = self._is_small(unit, profile) and not fault_of(cluster.state, cluster.layouts, unit.key)
        return profile if is_fit else None

    def at_once(
        self, plain: Unit, profile: Profile, snapshot: Snapshot, revision: int, caller: str
    ) -> Verdict | None:
        """The decision on a unit that is placed whole, which stays assumed; None, and nothing is assumed, if it is not.

        profile: as of `profile_at_once`. snapshot: as of `revision`, with what was decided in the same step assumed. An
        attempt that comes to nothing is told to nobody: the unit's own cycle is.
        """
        cycle = self._telemetry.cycle_started(self._cluster.name, plain.key, caller)
        return self._at_once(plain, profile, snapshot, revision, cycle)

    def _at_once(
        self, plain: Unit, profile: Profile, snapshot: Snapshot, revision: int, cycle: StartedCycle
    ) -> Verdict | None:
        cluster, started, mark = self._cluster, self._clock.monotonic(), snapshot.mark()
        unit = cluster.searches.allowed(plain, snapshot, profile)
        decision = self._tried(unit, snapshot, profile, cycle)
        seconds = self._clock.monotonic() - started
        if not is_whole(unit, decision):
            snapshot.rollback(mark)
            return None
        made_on = input_of(cluster, unit, profile, revision)
        return Verdict(decision, profile.name, cycle, revision, started, seconds, unit, made_on)

    def together(
        self,
        units: Sequence[Unit],
        profile: Profile,
        snapshot: Snapshot,
        revision: int,
        callers: Sequence[str],
    ) -> list[Verdict]:
        """As `at_once` for one of these units after the other, until one is not placed whole; their times are shared out.

        units: as `equal_pods.most_together` allows, without failed searches. Recorded cycles have each a time of its own.
        """
        cluster, begin = self._cluster, self._telemetry.cycle_started
        cycles = [begin(cluster.name, unit.key, caller) for unit, caller in zip(units, callers, strict=True)]
        if any(cycle.is_recording for cycle in cycles):
            return self._one_by_one(units, profile, snapshot, revision, cycles)
        started = self._clock.monotonic()
        decisions = decide_together(snapshot, units, profile)
        seconds = (self._clock.monotonic() - started) / len(units)
        verdicts: list[Verdict] = []
        for decision, unit, cycle, at in zip(decisions, units, cycles, count(revision), strict=False):
            made_on = input_of(cluster, unit, profile, at)
            verdicts.append(Verdict(decision, profile.name, cycle, at, started, seconds, unit, made_on))
        return verdicts

    def _one_by_one(
        self,
        units: Sequence[Unit],
        profile: Profile,
        snapshot: Snapshot,
        revision: int,
        cycles: Sequence[StartedCycle],
    ) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for unit, cycle in zip(units, cycles, strict=True):
            verdict = self._at_once(unit, profile, snapshot, revision + len(verdicts), cycle)
            if verdict is None:
                break
            verdicts.append(verdict)
        return verdicts

    def _tried(self, unit: Unit, snapshot: Snapshot, profile: Profile, cycle: StartedCycle) -> Decision:
        """The decision in this process, without a search, which takes its time, where a worker is there for it."""
        tried = unit if self._pool.is_empty else _with_share(unit, NO_SEARCH)
        return decide_and_assume(snapshot, tried, profile, cycle.observer)

    def _allowed(self, profile: Profile) -> Callable[[Unit], Unit]:
        """Gives a unit the share of the search budget that it may spend now."""
        cluster = self._cluster
        return lambda unit: cluster.searches.allowed(unit, cluster.feed.flush(), profile)

    def _here(self, plain: Unit, profile: Profile, cycle: StartedCycle) -> _Decided | None:
        """The decision in this process; None if it needs a search, which takes its time."""
        snapshot = self._cluster.feed.flush()
        unit = self._cluster.searches.allowed(plain, snapshot, profile)
        attempt = (unit, profile.name, snapshot.version)
        if attempt == self._last_in_vain:
            return None
        decision = self._tried(unit, snapshot, profile, cycle)
        if not self._pool.is_empty and _is_worth_a_search(decision, unit, profile):
            self._last_in_vain = attempt
            return None
        return self._now(decision, unit, profile)

    def _now(self, decision: Decision, unit: Unit, profile: Profile) -> _Decided:
        """The decision as one on the present state."""
        cluster = self._cluster
        revision = cluster.state.revision
        made_on = input_of(cluster, unit, profile, revision)
        return _Decided(decision, unit, cluster.feed.snapshot.version, revision, made_on)

    async def _elsewhere(
        self, plain: Unit, ready: Callable[[Unit], Unit], profile: Profile, cycle: StartedCycle
    ) -> _Decided:
        cluster, asked = self._cluster, _Asked(self._cluster, profile, plain, ready)
        answer = await self._pool.decide(
            cluster.name, cluster.feed, asked, profile, is_recording=cycle.is_recording
        )
        return _Decided(
            answer.decision,
            asked.unit,
            answer.snapshot_version,
            asked.revision,
            asked.input,
            list(answer.events),
            asked.is_outdated,
        )

    async def _with_victims(
        self, plain: Unit, made: _Decided, profile: Profile, cycle: StartedCycle
    ) -> _Decided:
        """The decision of a unit that may preempt. How its search ended counts only on the very same arrays."""
        feed, allowed = self._cluster.feed, self._allowed(profile)

        def ready(unit: Unit) -> Unit:
            searched: Search | None = made.decision.search if feed.flush().version == made.version else None
            return varied(allowed(unit), victims=self._victims_below(unit.priority), searched=searched)

        if not self._victims_below(plain.priority).keys and not feed.flush().pods.leaving:
            return replace(made, decision=varied(made.decision, asks_for_victims=False))
        if self._pool.is_empty:
            unit = ready(plain)
            return self._now(decide_and_assume(feed.snapshot, unit, profile, cycle.observer), unit, profile)
        return await self._elsewhere(plain, ready, profile, cycle)

    def _victims_below(self, priority: int) -> DisruptionUnits:
        """The same object for as long as nothing changes, by which a dry run beside the unit's own cycle asks the same."""
        asked = (self._cluster.state.revision, priority)
        if self._last_victims is None or self._last_victims[0] != asked:
            self._last_victims = (asked, self._cluster.disruption.below(priority, self._cluster.budgets))
        return self._last_victims[1]

    def _is_small(self, unit: Unit, profile: Profile) -> bool:
        if self._pool.is_empty:
            return True
        pods = unit.pod_count
        if not _is_our_own(profile) or not self.may_be_small(pods):
            return False
        nodes = len(self._cluster.state.objects["Node"])
        if pods > 1 and pods * nodes > INLINE_WORK:
            return False
        return term_count(unit, self._cluster.feed) <= INLINE_TERMS

    def may_be_small(self, pods: int) -> bool:
        """Whether a unit with so many pods to place is perhaps decided here, and not by a worker for its size alone."""
        return self._pool.is_empty or pods <= max(1, INLINE_PODS)

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
    if decision.code not in _FAILED or decision.search.end is not SearchEnd.NOT_NEEDED:
        return False
    is_placed = decision.result is not None and decision.result.status is Status.SUCCESS
    return not is_placed and budget_of(unit, profile) > 0
