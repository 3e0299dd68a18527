"""One cluster as it runs: its state, its cycles, its feeds of revisions and decisions, its timers.

Every write goes through `write`: it happens in one step of the event loop, wakes the cycles, and is answered once it is
durable. If a step breaks half way, or the store refuses it, memory is no longer to be trusted: the cluster is loaded again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from muster.engine.api import RequestIdentity
from muster.engine.askers import Askers
from muster.engine.cluster import Cluster
from muster.engine.cycle import CycleRunner, CycleTools
from muster.engine.deletion import end_grace
from muster.engine.errors import FailedPreconditionError, Precondition, Refusal, UnavailableError
from muster.engine.finished import FinishedPods
from muster.engine.hierarchy import find_root
from muster.engine.mutation import Mutation
from muster.engine.nominations import end_waits
from muster.engine.ports import ClusterWrites, DecisionRecord, RequestRecord
from muster.engine.queueing_hints import EventKind
from muster.engine.watch_hub import DecisionFeed, RevisionFeed
from muster.model.meta import ObjectKey

_LOG = logging.getLogger(__name__)
LONGEST_SLEEP_SECONDS = 0.2
SECOND_US = 1_000_000
IN_VAIN_SECONDS = 0.005
"""How soon after a write those are told who ask for what is not to come: all are looked at, so not at every write."""

Answer = TypeVar("Answer")


class ClusterService:
    """`lost` asks the engine to load the cluster again, after an error that left its memory in doubt."""

    def __init__(
        self,
        cluster: Cluster,
        tools: CycleTools,
        revisions: RevisionFeed,
        decisions: DecisionFeed,
        lost: Callable[[str], None],
    ) -> None:
        self.cluster = cluster
        self.revisions = revisions
        self.decisions = decisions
        self.available = True
        self.deleting: asyncio.Task[None] | None = None
        self._seen_us: int | None = None
        self._tools = tools
        self._lost = lost
        self._followers: Askers[DecisionRecord] = Askers()
        self._expecting: Askers[DecisionRecord] = Askers()
        self._askers: Askers[DecisionRecord] = Askers()
        self.cycles = CycleRunner(cluster, tools, self._decided, self._in_doubt)
        self._timers: asyncio.Task[None] | None = None
        self._telling: asyncio.TimerHandle | None = None
        self._finished: FinishedPods | None = None

    def start(self) -> None:
        """Begin to schedule and to watch the clock."""
        self.cycles.start()
        name = f"timers of {self.cluster.name}"
        self._timers = asyncio.create_task(self._run_timers(), name=name, context=Context())

    async def stop(self) -> None:
        """Finish what is in work."""
        if self._timers is not None:
            self._timers.cancel()
            await asyncio.wait([self._timers])
        await self.cycles.stop()

    def replace(self, cluster: Cluster) -> None:
        """Go on with a cluster that was loaded again. The cycles of the old one have been stopped.

        The store may hold a transaction more than was published: one that happened, though its answer was lost.
        """
        self.cluster = cluster
        self.revisions.restart(cluster.state.revision)
        self.decisions.restart(cluster.state.revision)
        self.cycles = CycleRunner(cluster, self._tools, self._decided, self._in_doubt)
        self.available = True
        self._seen_us = None
        self.start()

    def check_available(self) -> None:
        """Raises UnavailableError while the cluster is being loaded again, FailedPreconditionError while it is deleted."""
        if self.deleting is not None:
            name = self.cluster.name
            text = f"cluster {name!r} is being deleted"
            raise FailedPreconditionError(
                "CLUSTER_DELETING", text, [Precondition("CLUSTER_DELETING", f"Cluster {name}", text)]
            )
        if not self.available:
            raise self.being_loaded()

    def being_loaded(self) -> UnavailableError:
        """The refusal of calls that came while the cluster is loaded again, or waited for cycles that it lost."""
        return UnavailableError("STORE_UNAVAILABLE", f"cluster {self.cluster.name} is being loaded again")

    def write(
        self,
        step: Callable[[Mutation], tuple[Answer, bool]],
        identity: RequestIdentity | None = None,
        encode: Callable[[Answer], bytes] | None = None,
    ) -> Answer:
        """One revision. `step` returns its answer and whether it may write; a refusal must come before any change.

        The answer is kept with the request's id in the same transaction. Durable after `durable`.
        """
        self.check_available()
        mutation = Mutation(self.cluster, self._tools.clock.now_us())
        try:
            answer, writes = step(mutation)
            if writes:
                mutation.finish()
        except Refusal:
            raise
        except Exception:  # whatever it was: what is in memory may be half of a revision
            _LOG.exception("a revision of cluster %s broke half way", self.cluster.name)
            self._lost(self.cluster.name)
            raise
        if identity is not None and encode is not None:
            self.keep_answer(identity, encode(answer), mutation.now_us)
        self.cycles.wake()
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(IN_VAIN_SECONDS, self._tell_in_vain)
        return answer

    async def remove_finished(self, after_seconds: int) -> None:
        """Delete what has been finished for so long, some of it at a time. Raises UnavailableError."""
        if self._finished is None:
            self._finished = FinishedPods(after_seconds * SECOND_US)
        finished, clients_evict = self._finished, self._tools.clients_evict

        def step(mutation: Mutation) -> tuple[int, bool]:
            removed = finished.remove(mutation, clients_evict=clients_evict)
            return removed, bool(removed)

        while self.write(step):
            await self.durable()

    async def durable(self) -> None:
        """Return once everything in memory is durable."""
        await self._tools.writer.durable(self.cluster)

    def publish(self, writes: ClusterWrites) -> None:
        """The transaction is durable: tell the watches."""
        self.revisions.publish(writes.entries)
        if writes.decisions:
            self.decisions.publish(writes.decisions)

    async def next_decision(self, unit: ObjectKey) -> DecisionRecord | None:
        """The unit's next decision, which need not be durable yet. Raises the refusal that all calls ended with.

        None as soon as it is no unit any more: its root is gone, or nothing waits for a missing one, or that came and
        is part of another.
        """
        self.cycles.wake()
        is_missing = self.cluster.state.get(unit) is None
        return await (self._expecting if is_missing else self._followers).told(unit)

    async def next_cycle(self, unit: ObjectKey) -> DecisionRecord | None:
        """As `next_decision`, but None as soon as the unit is gated or has left the queue: no cycle is to come."""
        self.cycles.wake()
        return await self._askers.told(unit)

    def refuse_callers(self, refusal: Refusal) -> None:
        """Refuse all who wait for cycles: those that they wait for do not come."""
        for each in (self._followers, self._askers, self._expecting):
            each.fail(refusal)
        self.cycles.refuse(refusal)

    def _tell_in_vain(self) -> None:
        cluster, self._telling = self.cluster, None
        self._followers.tell_in_vain(lambda unit: cluster.state.get(unit) is None)
        self._expecting.tell_in_vain(lambda unit: not _may_come(cluster, unit))
        self._askers.tell_in_vain(cluster.queue.is_at_rest)
        self.cycles.tell_in_vain()

    def _in_doubt(self) -> None:
        self._lost(self.cluster.name)

    def _decided(self, record: DecisionRecord) -> None:
        for each in (self._followers, self._askers, self._expecting):
            each.tell(record.decision.unit, record)

    def keep_answer(self, identity: RequestIdentity, response: bytes, now_us: int) -> None:
        """Write down what a request was answered, for the time when it comes again."""
        record = RequestRecord(identity.method, identity.request_id, identity.digest, response, now_us)
        self.cluster.writes().requests.append(record)

    async def _run_timers(self) -> None:
        while True:
            await asyncio.sleep(self._sleep_seconds())
            if self.available:
                try:
                    self._tick()
                    self._tell_in_vain()
                except Exception:  # noqa: BLE001 - no error may leave the cluster without timers
                    _LOG.exception("the timers of cluster %s broke", self.cluster.name)
                    if self.available:
                        self._in_doubt()

    def _tick(self) -> None:
        cluster, now_us = self.cluster, self._tools.clock.now_us()
        if self._clock_went_back(now_us):
            cluster.queue.time_went_back(now_us)
        if cluster.failed_bindings.forgive(now_us):
            cluster.queue.happened((EventKind.BINDING_FORGIVEN,), now_us)
            self.cycles.wake()
        if any(until_us <= now_us for until_us in cluster.leaving_until.values()):
            self.write(self._end_grace)
        if cluster.waits.overdue(now_us):
            self.write(_end_waits)
        if cluster.queue.due(now_us):
            self.cycles.wake()
        self.cycles.time_passes()
        self._tools.writer.schedule(cluster)

    def _clock_went_back(self, now_us: int) -> bool:
        """Whether the wall clock is behind what it said before, here or in the process that ran before this one."""
        before_us, self._seen_us = self._seen_us, now_us
        return before_us is None or now_us < before_us

    def _sleep_seconds(self) -> float:
        now_us = self._tools.clock.now_us()
        cluster, later_us = self.cluster, now_us + 1_000_000
        due = [
            cluster.queue.next_due_us() or later_us,
            cluster.waits.next_due_us() or later_us,
            *cluster.leaving_until.values(),
        ]
        return max(0.001, min(LONGEST_SLEEP_SECONDS, (min(due) - now_us) / 1_000_000))

    def _end_grace(self, mutation: Mutation) -> tuple[None, bool]:
        end_grace(mutation, clients_evict=self._tools.clients_evict)
        return None, True


def _end_waits(mutation: Mutation) -> tuple[None, bool]:
    end_waits(mutation)
    return None, True


def _may_come(cluster: Cluster, unit: ObjectKey) -> bool:
    """Whether a root that was missing still is, and waited for, or has come as the root that it was taken for."""
    if cluster.state.get(unit) is None:
        return unit in cluster.pending_groups.values() or unit in cluster.pending_members.values()
    return find_root(cluster.state, unit).key == unit
