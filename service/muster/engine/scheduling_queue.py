"""The scheduling queue of one cluster: the mirror of its rows in SQL, in the order in which units are tried.

States (semantics 4): GATED units wait for members or gates; ACTIVE ones are popped by priority, then by the time of
their first pending pod, then key; BACKOFF ones become active at `not_before_us`; UNSCHEDULABLE ones wait for an event
that may help, or for the safety net; WAITING_FOR_PREEMPTION ones for their victims to go, and are tried again meanwhile when
an event may help, a second apart at least. IN_FLIGHT is kept beside the rows: it never reaches the store.
Every change of a row is handed to `record`, which puts it into the transaction under way; every move into a state is
told to telemetry with its cause, and a unit that a call made active keeps the call's trace context for its next cycle.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from muster.core.needs import Needs
from muster.engine.backoff import (
    SECOND_US,
    backoff_end_us,
    full_second,
    is_overdue,
    no_later_than_now,
    timer_us,
)
from muster.engine.changes import Change
from muster.engine.flight import Flight
from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.queue_causes import TIMED, cause_of
from muster.engine.queueing_hints import EventKind
from muster.engine.telemetry_port import EngineTelemetry, NullTelemetry
from muster.engine.waiting_units import WaitingUnits
from muster.model.meta import ObjectKey
from muster.model.variations import variation, varied

Order = tuple[int, int, int, ObjectKey]

_NOBODY = NullTelemetry()
_ANY = QueuedUnit(ObjectKey("", "", ""), UnitState.ACTIVE)
_ready = variation(QueuedUnit, "key", "priority", "since_us")


class SchedulingQueue:
    """`record(key, row)` is called for every changed row, with None for one that left."""

    def __init__(
        self,
        record: Callable[[ObjectKey, QueuedUnit | None], None],
        telemetry: EngineTelemetry = _NOBODY,
    ) -> None:
        self._record = record
        self._telemetry = telemetry
        self.rows: dict[ObjectKey, QueuedUnit] = {}
        self._active: list[Order] = []
        self._timers: list[tuple[int, ObjectKey]] = []
        self._front: dict[ObjectKey, int] = {}
        self._in_flight: dict[ObjectKey, Flight] = {}
        self.waiting = WaitingUnits()
        self._retries: dict[ObjectKey, None] = {}
        self._callers: dict[ObjectKey, str] = {}
        self._wanted: dict[ObjectKey, bool] = {}

    def load(self, units: Iterable[QueuedUnit]) -> None:
        """Take over the rows of the store as they are."""
        for row in units:
            self._index(row)

    def get(self, key: ObjectKey) -> QueuedUnit | None:
        """The row with its live state: IN_FLIGHT while a worker has the unit."""
        row = self.rows.get(key)
        if row is not None and key in self._in_flight:
            return varied(row, state=UnitState.IN_FLIGHT)
        return row

    def is_at_rest(self, key: ObjectKey) -> bool:
        """Whether no cycle is to come for the unit as it is: it is gated, or has left the queue."""
        row = self.rows.get(key)
        return row is None or row.state is UnitState.GATED

    def order(self, row: QueuedUnit) -> Order:
        """The sort key: priority, asked for by a caller, time of the first pending pod, key."""
        return (-row.priority, self._front.get(row.key, 1), row.since_us, row.key)

    def put(self, row: QueuedUnit) -> None:
        """Store a row; an unchanged one costs nothing."""
        if self.rows.get(row.key) == row:
            return
        self._index(row)
        self._record(row.key, row)

    def remove(self, key: ObjectKey) -> None:
        """Forget a unit that has no pending pods any more."""
        if self.rows.pop(key, None) is not None:
            self.waiting.discard(key)
            self._retries.pop(key, None)
            self._front.pop(key, None)
            self._callers.pop(key, None)
            self._wanted.pop(key, None)
            self._record(key, None)

    def done(self, key: ObjectKey) -> None:
        """The unit in flight, which did not change meanwhile, has no pending pods any more."""
        del self._in_flight[key]
        self.remove(key)

    def activate(self, key: ObjectKey) -> None:
        """Make a unit ready to be tried now; its failures in a row stay counted."""
        row = self.rows.get(key)
        if row is not None and row.state is not UnitState.ACTIVE:
            self._move(varied(row, state=UnitState.ACTIVE), "Activated")

    def bring_forward(self, key: ObjectKey) -> None:
        """Put the unit at the front of its priority and make it active (a caller asked for a cycle)."""
        row = self.rows.get(key)
        if row is not None:
            self._front[key] = 0
            self._wanted[key] = True
            self._move(varied(row, state=UnitState.ACTIVE), "ScheduleCalled")
            heapq.heappush(self._active, self.order(row))

    def changed(self, key: ObjectKey, priority: int, now_us: int) -> None:
        """The unit is admissible and its own pods, groups or minimums changed: try it afresh, without backoff."""
        row = self.rows.get(key)
        flight = self._in_flight.get(key)
        if flight is not None:
            flight.changed = True
            if row is not None:
                return
        since = row.since_us if row is not None else now_us
        self._move(_ready(_ANY, key, priority, since), "UnitChanged")

    def gated(self, key: ObjectKey, priority: int, now_us: int, because: str) -> bool:
        """The unit is not admissible. True if it was not gated before."""
        row = self.rows.get(key)
        flight = self._in_flight.get(key)
        if flight is not None:
            flight.changed = True
            if row is not None:
                return False
        since = row.since_us if row is not None else now_us
        new = row is None or row.state is not UnitState.GATED
        if new:
            self._move(
                QueuedUnit(
                    key=key, state=UnitState.GATED, priority=priority, since_us=since, message=because
                ),
                "UnitGated",
            )
        return new

    def pop(self) -> QueuedUnit | None:
        """The next unit to try, now in flight; None if no unit is active."""
        row = self.first()
        if row is not None:
            self.take(row.key)
        return row

    def take(self, key: ObjectKey) -> None:
        """The unit, which is `first`, is in flight from now on."""
        heapq.heappop(self._active)
        self._in_flight[key] = Flight(self._wanted.pop(key, False))
        self._front.pop(key, None)

    def is_overtaken(self, key: ObjectKey) -> bool:
        """Whether a unit of higher priority became ready while this one is in flight."""
        row, first = self.rows.get(key), self.first()
        return row is not None and first is not None and first.priority > row.priority

    def step_back(self, key: ObjectKey, caller: str) -> bool:
        """Put the unit in flight, whose trace context was taken, back in line as it was; True as of `landed`."""
        if self.is_asked_for(key):
            self._front[key] = 0
            self._wanted[key] = True
        self._callers[key] = caller
        return self.landed(key)

    def first(self) -> QueuedUnit | None:
        """The next unit to try; what is out of date before it is dropped from the line."""
        while self._active:
            order = self._active[0]
            row = self.rows.get(order[3])
            is_ready = row is not None and row.state is UnitState.ACTIVE and row.key not in self._in_flight
            if row is not None and is_ready and self.order(row) == order:
                return row
            heapq.heappop(self._active)
        return None

    def take_caller(self, key: ObjectKey) -> str:
        """The trace context of the call that made the unit active last, "" without one; it is told once."""
        return self._callers.pop(key, "")

    def landed(self, key: ObjectKey) -> bool:
        """The unit is not in flight any more. True if it changed meanwhile and must go round again."""
        flight = self._in_flight.pop(key, None)
        row = self.rows.get(key)
        if row is not None and row.state is UnitState.ACTIVE:
            # Its row may stay as it is, and then nothing else would put it in line again.
            heapq.heappush(self._active, self.order(row))
        return flight is not None and flight.changed

    def is_asked_for(self, key: ObjectKey) -> bool:
        """Whether the unit in flight must be decided, though nothing around it may have changed."""
        flight = self._in_flight.get(key)
        return flight is not None and flight.is_asked_for

    def events_in_flight(self, key: ObjectKey) -> tuple[EventKind, ...]:
        """What happened in the cluster since the unit was popped: its cycle did not see it."""
        flight = self._in_flight.get(key)
        return tuple(flight.events) if flight is not None else ()

    def succeeded(self, key: ObjectKey, now_us: int) -> None:
        """Pods were bound and some are left: active again at once, keeping its time."""
        row = self.rows[key]
        self._move(
            varied(
                row, state=UnitState.ACTIVE, attempts=0, not_before_us=0, last_attempt_us=now_us, reasons=()
            ),
            "PodsLeft",
        )

    def failed_again(self, key: ObjectKey, now_us: int, needs: Needs) -> None:
        """The unit in flight would fail as it did last: it waits on, and no longer for the safety net than without this."""
        self.landed(key)
        self._wait_for_event(self.rows[key], now_us, "UnchangedFailure")
        self.learn_needs(key, needs)

    def failed(self, key: ObjectKey, now_us: int, reasons: tuple[str, ...], message: str) -> None:
        """Nothing was bound: wait for an event; the n-th failure in a row sets when the unit may return."""
        row = varied(self.rows[key], last_attempt_us=now_us, reasons=reasons, message=message)
        self._wait_for_event(row, now_us, "ScheduleAttemptFailure")

    def _wait_for_event(self, row: QueuedUnit, now_us: int, cause: str) -> None:
        attempts = row.attempts + 1
        until_us = backoff_end_us(now_us, attempts, row.key.kind)
        failed = varied(row, state=UnitState.UNSCHEDULABLE, attempts=attempts, not_before_us=until_us)
        self._move(failed, cause)

    def nominated(self, key: ObjectKey, now_us: int, reasons: tuple[str, ...], message: str) -> None:
        """Nodes are in view: wait for those to go who are there."""
        self._wait(key, now_us, reasons, message, not_before_us=0)

    def still_waiting(self, key: ObjectKey, now_us: int, reasons: tuple[str, ...], message: str) -> None:
        """Tried while it waits, and no better: events bring it back after a rest."""
        self._wait(key, now_us, reasons, message, not_before_us=full_second(now_us + SECOND_US))

    def _wait(
        self, key: ObjectKey, now_us: int, reasons: tuple[str, ...], message: str, *, not_before_us: int
    ) -> None:
        changed = varied(
            self.rows[key],
            state=UnitState.WAITING_FOR_PREEMPTION,
            not_before_us=not_before_us,
            last_attempt_us=now_us,
            reasons=reasons,
            message=message,
        )
        self._move(changed, "Nominated")

    def victims_gone(self, key: ObjectKey) -> None:
        """The unit need not wait any more: it is to be tried now, whatever its backoff."""
        row = self.rows.get(key)
        waits = (UnitState.WAITING_FOR_PREEMPTION, UnitState.UNSCHEDULABLE, UnitState.BACKOFF)
        if row is not None and row.state in waits:
            self._move(varied(row, state=UnitState.ACTIVE, not_before_us=0), "VictimsGone")

    def errored(self, key: ObjectKey, now_us: int, message: str) -> None:
        """The cycle itself broke: back after the backoff, whatever happens in the cluster."""
        row = self.rows[key]
        attempts = row.attempts + 1
        end = backoff_end_us(now_us, attempts, key.kind)
        self._move(
            varied(
                row,
                state=UnitState.BACKOFF,
                attempts=attempts,
                not_before_us=end,
                last_attempt_us=now_us,
                reasons=("SCHEDULER_ERROR",),
                message=message,
            ),
            "ScheduleAttemptError",
        )

    def rejected(self, key: ObjectKey, now_us: int, message: str) -> None:
        """A binding of the unit failed outside: back after the backoff. Gated units and those in flight stay as they are."""
        row = self.rows.get(key)
        if row is None or row.state is not UnitState.ACTIVE or key in self._in_flight:
            return
        attempts = row.attempts + 1
        self._move(
            varied(
                row,
                state=UnitState.BACKOFF,
                attempts=attempts,
                not_before_us=backoff_end_us(now_us, attempts, key.kind),
                last_attempt_us=now_us,
                reasons=("BINDING_FAILED",),
                message=message,
            ),
            "BindingFailure",
        )

    def learn_needs(self, key: ObjectKey, needs: Needs | None) -> None:
        """What a node must have to be of use for the unit, if it waits for an event; None: it may be any."""
        self.waiting.learn(key, needs)

    def needs(self, key: ObjectKey) -> Needs | None:
        """What was learned of a unit that waits."""
        return self.waiting.needs(key)

    def happened(self, events: Iterable[EventKind], now_us: int, change: Change | None = None) -> None:
        """Wake the waiting units that one of the events may help. Without `change` any node may be of use for them."""
        kinds = tuple(dict.fromkeys(events))
        for flight in self._in_flight.values():
            flight.events.update(dict.fromkeys(kinds))
        for key, helping in self.waiting.helped(kinds, change) if kinds else ():
            row = self.rows[key]
            if row.state is UnitState.WAITING_FOR_PREEMPTION and row.not_before_us > now_us:
                self._retries[key] = None
            else:
                early = row.attempts > 1 and row.not_before_us > now_us
                state = UnitState.BACKOFF if early else UnitState.ACTIVE
                self._move(varied(row, state=state), cause_of(helping))

    def due(self, now_us: int) -> bool:
        """Move on all units whose time has come; True if one became active."""
        woken = False
        while self._timers and self._timers[0][0] <= now_us:
            at_us, key = heapq.heappop(self._timers)
            row = self.rows.get(key)
            if row is None or timer_us(row) != at_us:
                continue
            if is_overdue(row, now_us):
                self._wanted[key] = True
            if row.state is not UnitState.WAITING_FOR_PREEMPTION or key in self._retries:
                self._move(varied(row, state=UnitState.ACTIVE), TIMED[row.state])
                woken = True
        return woken

    def time_went_back(self, now_us: int) -> None:
        """The clock shows less than it did: no unit waits longer for that than for a failure of now."""
        for row in list(self.rows.values()):
            sooner = no_later_than_now(row, now_us)
            if sooner != row:
                self._move(sooner, "ClockWentBack")

    def next_due_us(self) -> int | None:
        """When `due` has work next."""
        return self._timers[0][0] if self._timers else None

    def has_active(self) -> bool:
        """Whether `pop` might find a unit."""
        return bool(self._active)

    def in_order(self) -> list[QueuedUnit]:
        """All units with their live states, active ones first, in the order in which they are tried."""
        live = [self.get(key) for key in self.rows]
        ready = (UnitState.ACTIVE, UnitState.IN_FLIGHT)
        return sorted(
            (row for row in live if row is not None),
            key=lambda row: (row.state not in ready, self.order(row)),
        )

    def positions(self) -> Iterator[tuple[QueuedUnit, int]]:
        """`in_order`, with the place of each among the active units: 1 is next, 0 for one that is not active."""
        position = 0
        for row in self.in_order():
            position += row.state is UnitState.ACTIVE
            yield row, position if row.state is UnitState.ACTIVE else 0

    def position_of(self, key: ObjectKey) -> int:
        """The place of one unit among the active ones; 0 if it is not one of them."""
        own = self.get(key)
        if own is None or own.state is not UnitState.ACTIVE:
            return 0
        order = self.order(own)
        active = (self.get(each) for each, row in self.rows.items() if row.state is UnitState.ACTIVE)
        ahead = (row for row in active if row is not None and row.state is UnitState.ACTIVE)
        return 1 + sum(self.order(row) < order for row in ahead)

    def _move(self, row: QueuedUnit, cause: str) -> None:
        """Store a row that came into a state; one that is there already as it was has not moved."""
        if self.rows.get(row.key) != row:
            self._telemetry.queue_moved(row.state.name, cause, 1)
            self.put(row)
        caller = self._telemetry.caller() if row.state is UnitState.ACTIVE else ""
        if caller:
            self._callers[row.key] = caller

    def _index(self, row: QueuedUnit) -> None:
        self.rows[row.key] = row
        self.waiting.discard(row.key)
        if row.state is UnitState.ACTIVE:
            heapq.heappush(self._active, self.order(row))
        self._retries.pop(row.key, None)
        if row.state in (UnitState.UNSCHEDULABLE, UnitState.WAITING_FOR_PREEMPTION):
            self.waiting.add(row.key, row.reasons)
        at_us = timer_us(row)
        if at_us:
            heapq.heappush(self._timers, (at_us, row.key))
