"""The scheduling cycle of one cluster: pop, check, decide, commit (semantics 5), one unit after the other in queue order.

1. Pop the next active unit.  2. Build its tree from live objects.  3. Check its layout and what its pods must share.
4. Decide (`deciding`): a unit that fits nowhere is decided again with those whom it may preempt.
5. Check a worker's answer on the present state; decide again at most three times.  6. Commit as one revision.
A unit whose cycle breaks goes to backoff with SchedulerError; the loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass

from muster.core.decision import Decision, DecisionCode
from muster.core.framework import Profile
from muster.core.tree import Unit
from muster.engine.askers import Askers
from muster.engine.binder import commit_decision, pods_by_ordinal, set_back, still_holds
from muster.engine.cluster import Cluster
from muster.engine.deciding import Decider, Verdict
from muster.engine.errors import Refusal, UnavailableError
from muster.engine.eviction import Eviction
from muster.engine.mutation import Mutation
from muster.engine.placed_units import PlacedUnits, is_whole
from muster.engine.ports import NO_INPUT, Clock, DecisionRecord, QueuedUnit, UnitState
from muster.engine.queueing_hints import FREEING
from muster.engine.reserving import Reserver, reserves
from muster.engine.search_allowance import found_nothing
from muster.engine.settlement import settle_unit
from muster.engine.slices import SLICE_SECONDS, give_way
from muster.engine.telemetry_port import EngineTelemetry
from muster.engine.uncommitted import fitting, uncommitted
from muster.engine.unit_runs import Left, UnitRuns
from muster.engine.units import build_unit
from muster.engine.waited_for import WaitedFor
from muster.engine.worker_pool import WorkerPool
from muster.engine.writer import Writer
from muster.model.meta import ObjectKey
from muster.telemetry.facts import CycleFacts

_LOG = logging.getLogger(__name__)
BESIDE_SECONDS = 0.02
"""For how long slices follow before they wait for a transaction again: else units come faster than they are decided."""
ATTEMPTS = 3
MOST_OPEN_REVISIONS = 512


@dataclass(frozen=True, slots=True)
class CycleTools:
    """What the cycles of all clusters share."""

    clock: Clock
    profiles: Mapping[str, Profile]
    pool: WorkerPool
    writer: Writer
    telemetry: EngineTelemetry
    clients_evict: bool = False


class CycleRunner:
    """Runs until `stop`. `decided` is called with every committed record, in order, before it is durable.

    `lost` is called if a commit breaks half way: memory is in doubt then, and these cycles end.
    """

    def __init__(
        self,
        cluster: Cluster,
        tools: CycleTools,
        decided: Callable[[DecisionRecord], None],
        lost: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        cluster.profiles = tools.profiles
        self._tools = tools
        self._decided = decided
        self._lost = lost
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._stopping = False
        self._decider = Decider(cluster, tools.clock, tools.profiles, tools.pool, tools.telemetry)
        self._reserver = (
            Reserver(cluster, tools.clock, tools.profiles, tools.pool) if reserves(tools.profiles) else None
        )
        self._probes: Askers[DecisionRecord] = Askers()
        self._runs = UnitRuns(cluster, tools.clock, self._decider, self._probes.__contains__)
        self._waited_for = WaitedFor()
        self._dry_runs = 0

    def start(self) -> None:
        """Begin to schedule."""
        self.wake()
        name = f"cycles of {self._cluster.name}"
        # A context of its own: it outlives the call that made the cluster, and is no part of that call's trace.
        self._running = asyncio.create_task(self._run(), name=name, context=Context())

    def wake(self) -> None:
        """The queue may have an active unit."""
        self._wake.set()
        self._cluster.coming.begin()

    def time_passes(self) -> None:
        """Somebody may have waited long enough for a reservation."""
        if self._reserver is not None:
            self._wake.set()

    async def stop(self) -> None:
        """Finish the cycle in work, then end."""
        self._stopping = True
        self._wake.set()
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            self._cluster.coming.begin()
            try:
                await self._decider.prepare()
                await self._drain_queue()
            except UnavailableError:
                return  # the cluster is loaded again, and with it come cycles of its own
            except Exception:  # noqa: BLE001 - no error may leave the units of the cluster without cycles
                _LOG.exception("the cycles of cluster %s broke", self._cluster.name)
                self._give_up()
                return
            finally:
                self._cluster.coming.end()
            if not self._stopping:
                await self._wake.wait()

    async def _drain_queue(self) -> None:
        clock = self._tools.clock
        # What comes while callers wait for a transaction is decided together behind it, or once the next one is full.
        await self._tools.writer.let_through()
        slice_start = waited = clock.monotonic()
        while not self._stopping and (row := await self._next()) is not None:
            self._cluster.coming.at(is_new=self._cluster.is_new(row.key))
            if (left := self._place_run(row)) is not None:
                await self._cycle(*left)
            if self._cluster.open_revisions > MOST_OPEN_REVISIONS:
                await self._tools.writer.taken(self._cluster)
            if clock.monotonic() - slice_start > SLICE_SECONDS:
                self._tools.writer.schedule(self._cluster)
                await give_way()
                if clock.monotonic() - waited > BESIDE_SECONDS:
                    await self._tools.writer.let_through()
                    waited = clock.monotonic()
                slice_start = clock.monotonic()
        self._tools.writer.schedule(self._cluster)

    async def _next(self) -> QueuedUnit | None:
        """The next unit; between two of them nobody speaks of signatures by number, but for dry runs."""
        if self._reserver is not None:
            await self._reserver.renew()
        await self._cluster.large_calls.over()
        if not self._dry_runs:
            self._cluster.forget_signatures()
        return self._cluster.queue.pop()

    def _place_run(self, row: QueuedUnit) -> Left | None:
        """Place and commit this unit and those behind it, for as long as each is placed whole; the one that was not."""
        clock, telemetry = self._tools.clock, self._tools.telemetry
        run, left = self._runs.collect(row)
        if not run:
            return left
        now_us, begun = clock.now_us(), clock.monotonic()
        records = PlacedUnits(self._cluster, now_us).write([placed.verdict for placed in run])
        ended = clock.monotonic()
        for placed, record in zip(run, records, strict=True):
            self._told(record)
            facts = _facts(placed.verdict, placed.row, record, (begun, ended))
            telemetry.cycle_ended(placed.verdict.cycle, facts)
        return left

    async def _cycle(self, row: QueuedUnit, caller: str) -> None:
        """One unit from the pop to the commit; a broken cycle is the unit's own misfortune."""
        try:
            if row.attempts and self._fails_as_before(row):
                return
            with self._cluster.coming.cycle(is_new=self._cluster.is_new(row.key)):
                await self._decide_and_commit(row, caller)
        except Exception as error:  # noqa: BLE001 - one failing plugin spoils only its own unit
            _LOG.exception("the cycle of %s broke", row.key)
            if self._stopping:
                return
            self._commit_error(row, f"the scheduling cycle failed: {type(error).__name__}: {error}")

    def _fails_as_before(self, row: QueuedUnit) -> bool:
        """Whether the unit is no better off than when it failed last; then it waits on without a cycle."""
        cluster = self._cluster
        if row.key not in cluster.queue.rows or cluster.queue.is_asked_for(row.key):
            return False
        needs = cluster.failures.holds(row, cluster.feed.flush(), self._tools.profiles)
        if needs is not None:
            cluster.queue.failed_again(row.key, self._tools.clock.now_us(), needs)
            cluster.failures.repeat(cluster.queue.rows[row.key])
        return needs is not None

    async def _decide_and_commit(self, row: QueuedUnit, caller: str) -> None:
        caller = caller or self._cluster.queue.take_caller(row.key)
        for _ in range(ATTEMPTS):
            if not self._exists(row.key):
                self._cluster.queue.landed(row.key)
                self._probes.tell(row.key, None)
                return
            unit = build_unit(self._cluster, row.key)
            if not unit.root.admissible and row.key not in self._cluster.layouts.faults:
                set_back(Mutation(self._cluster, self._tools.clock.now_us()), row.key)
                self._probes.tell(row.key, None)
                return
            verdict = await self._decider.verdict(unit, caller)
            decision: Decision | None = verdict.decision
            if verdict.events is not None:
                is_of_use = self._exists(row.key) and not verdict.is_outdated
                decision = self._confirmed(unit, verdict) if is_of_use else None
            if decision is not None and decision.assignments.pods and row.key in self._probes:
                self._put_back(unit, decision, verdict)
                return
            if decision is not None:
                self._commit(row, unit, decision, verdict)
                return
            self._drop(verdict)
            if self._cluster.queue.is_overtaken(row.key):
                # It would have to be evicted from what it takes now.
                if self._cluster.queue.step_back(row.key, caller):
                    self._settle(row.key)
                return
        self._commit_error(row, f"the cluster changed during each of {ATTEMPTS} cycles")

    async def verdict(self, unit: Unit) -> Verdict:
        """Decide a unit on the present state, for a call that commits nothing; part of the call's trace."""
        self._dry_runs += 1
        try:
            verdict = await self._decider.verdict(unit, self._tools.telemetry.caller())
        finally:
            self._dry_runs -= 1
        self._drop(verdict)
        return verdict

    def _drop(self, verdict: Verdict) -> None:
        """Nothing of it is committed; its trace ends here."""
        seconds = self._tools.clock.monotonic() - verdict.started
        facts = CycleFacts(
            verdict.decision,
            profile=verdict.profile,
            attempt_seconds=seconds,
            algorithm_seconds=verdict.core_seconds,
        )
        self._tools.telemetry.cycle_dropped(verdict.cycle, facts, verdict.events)

    async def preempt(self, key: ObjectKey) -> DecisionRecord | None:
        """The unit's next decision, now, which may preempt and binds nothing; None if no cycle is to come for it.

        Raises the refusal that these cycles ended with.
        """
        self._cluster.queue.bring_forward(key)
        self.wake()
        return await self._probes.told(key)

    def tell_in_vain(self) -> None:
        """Answer those who asked for a preemption of a unit that is gated by now, or has left the queue."""
        self._probes.tell_in_vain(self._cluster.queue.is_at_rest)

    def refuse(self, refusal: Refusal) -> None:
        """Refuse all who asked for a preemption and have no answer."""
        self._probes.fail(refusal)

    def _confirmed(self, unit: Unit, verdict: Verdict) -> Decision | None:
        changed = self._cluster.state.revision != verdict.snapshot_revision
        if not changed:
            return verdict.decision
        if self._cluster.layouts.changed_at.get(unit.key, 0) > verdict.snapshot_revision:
            return None
        profile = self._tools.profiles[verdict.profile]
        return still_holds(self._cluster, unit, profile, verdict.decision, changed=changed)

    def _put_back(self, unit: Unit, decision: Decision, verdict: Verdict) -> None:
        """Answer those who asked for a preemption that none is needed. The unit is tried again, which binds it."""
        self._drop(verdict)
        cluster, now_us = self._cluster, self._tools.clock.now_us()
        pods = pods_by_ordinal(cluster, unit)
        self._probes.tell(unit.key, uncommitted(cluster, pods, verdict, fitting(decision), now_us))
        if cluster.queue.landed(unit.key):
            self._settle(unit.key)

    def _settle(self, key: ObjectKey) -> None:
        """Look at a unit anew that changed while it was in flight."""
        mutation = Mutation(self._cluster, self._tools.clock.now_us())
        settle_unit(mutation, key)
        mutation.finish()

    def _exists(self, key: ObjectKey) -> bool:
        return self._cluster.state.get(key) is not None and key in self._cluster.queue.rows

    def _commit(self, row: QueuedUnit, unit: Unit, decision: Decision, verdict: Verdict) -> None:
        clock = self._tools.clock
        now_us = clock.now_us()
        duration = clock.monotonic() - verdict.started
        record = DecisionRecord(
            id="",
            revision=0,
            snapshot_revision=verdict.snapshot_revision,
            decision=decision,
            trace_id=verdict.cycle.trace_id,
            profile=verdict.profile,
            create_us=now_us,
            duration_us=int(duration * 1_000_000),
            # What was left out of it since then no rerun knows about.
            input=verdict.input if decision is verdict.decision else NO_INPUT,
        )
        preemption = decision.preemption
        if preemption is not None:
            evicted = sum(len(victim.pods) for victim in preemption.victims)
            self._tools.telemetry.preempted(evicted, preemption.pods_over_budget)
        begun = clock.monotonic()
        profile = self._tools.profiles[verdict.profile]
        has_seen_all = FREEING.isdisjoint(self._cluster.queue.events_in_flight(unit.key))
        if decision.assignments.pods:
            self._cluster.searches.forget(unit.key)
        elif has_seen_all and found_nothing(decision):
            self._cluster.searches.found_nothing(verdict.unit, self._cluster.feed.flush(), profile)
        record = self._written(unit, record, now_us)
        if has_seen_all and not decision.assignments.pods:
            self._note_failure(unit, profile)
        self._runs.is_promising = is_whole(unit, decision)
        facts = _facts(verdict, row, record, (begun, clock.monotonic()))
        self._tools.telemetry.cycle_ended(verdict.cycle, facts, verdict.events)

    def _note_failure(self, unit: Unit, profile: Profile) -> None:
        """Remember with what room the unit failed, if it waits for more."""
        cluster = self._cluster
        row, needs = cluster.queue.rows.get(unit.key), cluster.queue.needs(unit.key)
        if row is not None and row.state is UnitState.UNSCHEDULABLE and needs is not None:
            cluster.failures.note(row, unit, needs, cluster.feed.flush(), profile)

    def _commit_error(self, row: QueuedUnit, message: str) -> None:
        """The unit goes to backoff with SchedulerError; if even that fails, it is left to the next wake-up."""
        if not self._exists(row.key):
            self._cluster.queue.landed(row.key)
            self._probes.tell(row.key, None)
            return
        now_us = self._tools.clock.now_us()
        record = DecisionRecord(
            id="",
            revision=0,
            snapshot_revision=self._cluster.state.revision,
            decision=Decision(row.key, DecisionCode.SCHEDULER_ERROR, message=message),
            create_us=now_us,
        )
        unit = build_unit(self._cluster, row.key)
        self._written(unit, record, now_us)

    def _written(self, unit: Unit, record: DecisionRecord, now_us: int) -> DecisionRecord:
        """The decision as one revision; if that breaks half way, the cluster must be loaded again."""
        try:
            mutation = Mutation(self._cluster, now_us)
            record = commit_decision(self._cluster, unit, record, mutation, self._eviction(record.profile))
        except Exception:  # whatever it was: what is in memory may be half of a revision
            self._give_up()
            raise
        self._told(record)
        return record

    def _told(self, record: DecisionRecord) -> None:
        self._decided(record)
        self._probes.tell(record.decision.unit, self._waited_for.told(record))

    def _give_up(self) -> None:
        """End these cycles; the cluster is loaded again, once, and with it come others."""
        if not self._stopping:
            self._stopping = True
            self._lost()

    def _eviction(self, profile: str) -> Eviction:
        found = self._tools.profiles.get(profile)
        return Eviction(
            self._tools.clients_evict,
            *(() if found is None else (found.preemption.eviction_timeout_seconds,)),
        )


def _facts(
    verdict: Verdict, row: QueuedUnit, record: DecisionRecord, commit: tuple[float, float]
) -> CycleFacts:
    """`commit`: from when to when it was written, by the monotonic clock."""
    begun, ended = commit
    return CycleFacts(
        decision=record.decision,
        decision_id=record.id,
        profile=verdict.profile,
        attempt_seconds=ended - verdict.started,
        algorithm_seconds=verdict.core_seconds,
        wait_seconds=max(0, record.create_us - row.since_us) / 1_000_000,
        commit_start_ns=int(begun * 1e9),
        commit_end_ns=int(ended * 1e9),
    )
