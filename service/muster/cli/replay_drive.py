"""Drives a trace through a server: submits gangs, ends them when their time is over, notes what is decided.

Two paces. In lock-step an event of the trace is given to the server only when the one before has been dealt with: no
unit is active, in flight or in backoff, and every placement so far has been seen. Units that back off after a failure
are hurried one by one in the order of the queue, since a backoff is wall time and the trace has none. In step with the
clock, events come at their time, so many times faster.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from muster.cli.idle import until_idle
from muster.cli.replay_record import Record, Unit
from muster.cli.state_check import check_state
from muster.cli.trace import Gang
from muster.client.client import LARGEST_PAGE, Client
from muster.client.watches import watch_decisions
from muster.v1.cluster_service_pb2 import ApplyRequest, DeleteRequest, DeleteTarget
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.queue_pb2 import UnitState
from muster.v1.scheduler_service_pb2 import GetQueueRequest, ScheduleRequest, WatchDecisionsRequest

CHECKPOINTS = 5
MOST_FAULTS = 20
# A gang holds its room for this long at least, so that no gang ends before it has run.
SHORTEST_SECONDS = 1
SILENCE_SECONDS = 120.0
BACKING_OFF = GetQueueRequest(states=[UnitState.UNIT_STATE_BACKOFF], page_size=LARGEST_PAGE)


class DecisionsStoppedError(RuntimeError):
    """The stream of decisions ended or fell silent; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of the trace a second of wall time; None is lock-step."""

    speed: float | None = None


@dataclass(slots=True)
class Replay:
    """One run over a loaded cluster. `advance` is told how many gangs were submitted, with a remark."""

    client: Client
    record: Record
    pace: Pace
    advance: Callable[[int, str], None]
    _at: float = 0.0
    _first_at: float = 0.0
    _start_wall: float = 0.0
    _ends: list[tuple[float, str]] = field(default_factory=list)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, gangs: Sequence[Gang], revision: int) -> None:
        """Submits all gangs, in order of time; decisions after `revision` are theirs. Raises DecisionsStoppedError."""
        following = asyncio.create_task(self._follow(revision))
        driving = asyncio.create_task(self._drive(gangs))
        try:
            await asyncio.wait({following, driving}, return_when=asyncio.FIRST_COMPLETED)
            if not driving.done():
                raise DecisionsStoppedError(f"the decisions ended: {following.exception()!r}")
            driving.result()
        finally:
            following.cancel()
            driving.cancel()
            await asyncio.gather(following, driving, return_exceptions=True)

    async def _drive(self, gangs: Sequence[Gang]) -> None:
        self._start_wall = time.monotonic()
        self._at = self._first_at = float(gangs[0].submit_seconds)
        check_after = len(gangs) / CHECKPOINTS
        checking_seconds = 0.0
        for at, arrivals in groupby(gangs, key=lambda gang: gang.submit_seconds):
            await self._end_until(at)
            await self._go_to(at)
            await self._submit(list(arrivals))
            if self.pace.speed is None and len(self.record.units) >= check_after:
                check_after += len(gangs) / CHECKPOINTS
                checking_seconds += await self._check()
        await self._all_decided()
        self.record.seconds = time.monotonic() - self._start_wall - checking_seconds
        if not self.record.checks:
            await self._check()
        await self._note_reasons()

    async def _submit(self, gangs: Sequence[Gang]) -> None:
        request = ApplyRequest(objects=[each for gang in gangs for each in gang.objects()])
        for gang in gangs:
            self.record.submit(gang)
        await self.client.apply(request)
        await self._settle()
        self.advance(len(gangs), f"{self.record.waiting} waiting")

    async def _end_until(self, at: float) -> None:
        """Ends what is over by a time, all that ends at the same time at once."""
        while self._ends and self._ends[0][0] <= at:
            moment = self._ends[0][0]
            await self._go_to(moment)
            over = []
            while self._ends and self._ends[0][0] == moment:
                over.append(self.record.units[heapq.heappop(self._ends)[1]])
            await self._end(over)

    async def _end(self, units: Sequence[Unit]) -> None:
        targets = [DeleteTarget(ref=ref) for unit in units for ref in unit.gang.refs()]
        for unit in units:
            self.record.end(unit, self._now())
        # Pods that were evicted are gone already.
        await self.client.delete(DeleteRequest(refs=targets, allow_missing=True))
        await self._settle()

    async def _go_to(self, at: float) -> None:
        """Goes on to a time of the trace; in step with the clock, waits for it."""
        if self.pace.speed is not None:
            wall = self._start_wall + (at - self._first_at) / self.pace.speed
            await asyncio.sleep(max(0.0, wall - time.monotonic()))
        self._at = max(self._at, float(at))

    def _now(self) -> float:
        """The time of the trace."""
        if self.pace.speed is None:
            return self._at
        return round(self._first_at + (time.monotonic() - self._start_wall) * self.pace.speed, 3)

    async def _settle(self) -> None:
        """In lock-step: returns once the server has dealt with everything and every placement has been seen."""
        while self.pace.speed is None:
            queue = await until_idle(self.client, self._moved)
            counts = {each.state: each.count for each in queue.counts}
            if counts.get(UnitState.UNIT_STATE_BACKOFF):
                await self._hurry()
            elif sum(counts.values()) == self.record.waiting:
                break
            else:
                await self._next_decisions()
        self.record.sample(self._now())

    async def _hurry(self) -> None:
        """Has each unit in backoff decided now, one after the other."""
        queue = await self.client.get_queue(BACKING_OFF)
        for waiting in queue.units:
            await self.client.schedule(ScheduleRequest(unit=waiting.unit))

    async def _all_decided(self) -> None:
        """Waits for the first decision about every gang, and for an idle queue."""
        while any(unit.decided_wall is None for unit in self.record.units.values()):
            await self._next_decisions()
        await until_idle(self.client)

    async def _next_decisions(self) -> None:
        self._moved.clear()
        try:
            await asyncio.wait_for(self._moved.wait(), SILENCE_SECONDS)
        except TimeoutError:
            raise DecisionsStoppedError(
                f"no decision came for {SILENCE_SECONDS:.0f} s while some are due"
            ) from None

    async def _follow(self, revision: int) -> None:
        async for batch in watch_decisions(self.client, WatchDecisionsRequest(from_revision=revision)):
            if batch.restarted:
                raise DecisionsStoppedError("the server no longer has all decisions of this replay")
            for decision in batch.decisions:
                self._note(decision)
            if batch.decisions:
                self._moved.set()

    def _note(self, decision: Decision) -> None:
        self.record.decisions += 1
        unit = self.record.units.get(decision.unit.name)
        if unit is None:
            return
        self.record.decide(unit)
        if decision.code == DecisionCode.DECISION_CODE_SCHEDULED and unit.placed_at is None:
            self._note_placement(unit, decision)
        if decision.preemption.victims:
            self._note_victims(decision)

    def _note_placement(self, unit: Unit, decision: Decision) -> None:
        placed = decision.assignments
        pairs = zip(placed.pods, placed.node_index, strict=True)
        self.record.place(unit, self._now(), ((pod, placed.nodes[index]) for pod, index in pairs))
        end = self._now() + max(SHORTEST_SECONDS, unit.gang.duration_seconds)
        heapq.heappush(self._ends, (end, unit.gang.name))

    def _note_victims(self, decision: Decision) -> None:
        self.record.preemptions += 1
        for victim in decision.preemption.victims:
            self.record.victims += len(victim.pods)
            for pod in victim.pods:
                unit = self.record.units.get(pod.name.rpartition("-")[0])
                if unit is not None:
                    self.record.evict(unit)

    async def _check(self) -> float:
        """Checks what is stored; returns the seconds that took, which are not the server's."""
        start = time.monotonic()
        found = await check_state(self.client)
        self.record.checks += 1
        self.record.faults += found.faults[: MOST_FAULTS - len(self.record.faults)]
        return time.monotonic() - start

    async def _note_reasons(self) -> None:
        """Why those that were never placed still wait, in the words of the queue."""
        request = GetQueueRequest(page_size=LARGEST_PAGE)
        while True:
            page = await self.client.get_queue(request)
            for state in page.units:
                unit = self.record.units.get(state.unit.name)
                if unit is not None and unit.placed_at is None:
                    texts = [each.message for each in state.reasons if each.message]
                    codes = [each.code for each in state.reasons]
                    word = UnitState.Name(state.state).removeprefix("UNIT_STATE_").lower()
                    self.record.waiting_reasons[state.unit.name] = "; ".join(texts or codes) or word
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
