"""What the queue tells of its moves, and whose trace a unit's next cycle belongs to."""

from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.queueing_hints import EventKind
from muster.engine.scheduling_queue import SchedulingQueue
from muster.engine.telemetry_port import NullTelemetry
from muster.model.meta import ObjectKey

UNIT = ObjectKey("PodGroup", "default", "g")
SECOND_US = 1_000_000


class Listening(NullTelemetry):
    """Notes moves; `traceparent` is that of the call which is being served."""

    def __init__(self) -> None:
        self.moves: list[tuple[str, str]] = []
        self.traceparent = ""

    def caller(self) -> str:
        return self.traceparent

    def queue_moved(self, state: str, event: str, units: int) -> None:
        self.moves += [(state, event)] * units


def listened_queue() -> tuple[SchedulingQueue, Listening]:
    listening = Listening()
    return SchedulingQueue(_ignore, listening), listening


def _ignore(key: ObjectKey, row: QueuedUnit | None) -> None:
    return None


def test_each_move_into_a_state_is_told_with_its_cause() -> None:
    queue, listening = listened_queue()

    queue.gated(UNIT, 0, 0, "1 of 2 members")
    queue.changed(UNIT, 0, 0)
    queue.pop()
    queue.landed(UNIT)
    queue.failed(UNIT, 0, ("INSUFFICIENT_CPU",), "no room")
    queue.happened([EventKind.POD_BOUND, EventKind.NODE_ADDED], SECOND_US)
    queue.pop()
    queue.landed(UNIT)
    queue.errored(UNIT, SECOND_US, "broken")
    queue.due(60 * SECOND_US)
    queue.bring_forward(UNIT)

    assert listening.moves == [
        ("GATED", "UnitGated"),
        ("ACTIVE", "UnitChanged"),
        ("UNSCHEDULABLE", "ScheduleAttemptFailure"),
        ("ACTIVE", "NodeAdded"),
        ("BACKOFF", "ScheduleAttemptError"),
        ("ACTIVE", "BackoffComplete"),
    ]


def test_a_unit_that_stays_as_it_is_has_not_moved() -> None:
    queue, listening = listened_queue()

    queue.changed(UNIT, 0, 0)
    queue.changed(UNIT, 0, 0)

    assert listening.moves == [("ACTIVE", "UnitChanged")]


def test_the_call_that_made_a_unit_active_is_told_once_to_its_next_cycle() -> None:
    queue, listening = listened_queue()
    listening.traceparent = "00-a-b-01"
    queue.changed(UNIT, 0, 0)
    listening.traceparent = ""

    assert queue.take_caller(UNIT) == "00-a-b-01"
    assert queue.take_caller(UNIT) == ""


def test_a_call_that_asks_for_a_cycle_of_an_active_unit_has_it_in_its_trace() -> None:
    queue, listening = listened_queue()
    queue.changed(UNIT, 0, 0)
    listening.traceparent = "00-c-d-01"

    queue.bring_forward(UNIT)

    assert queue.take_caller(UNIT) == "00-c-d-01"


def test_a_unit_that_left_leaves_no_caller_behind() -> None:
    queue, listening = listened_queue()
    listening.traceparent = "00-a-b-01"
    queue.changed(UNIT, 0, 0)
    queue.remove(UNIT)
    listening.traceparent = ""

    queue.changed(UNIT, 0, 0)

    assert queue.take_caller(UNIT) == ""


def test_a_unit_that_changed_in_flight_before_its_first_attempt_ended_goes_round_again() -> None:
    queue, _ = listened_queue()
    queue.changed(UNIT, 0, 0)
    queue.pop()
    queue.changed(UNIT, 0, 0)

    assert queue.landed(UNIT)
    queue.changed(UNIT, 0, 0)

    row = queue.pop()
    assert row is not None
    assert row.key == UNIT


def test_a_unit_that_went_and_came_again_in_flight_is_not_lost() -> None:
    queue, _ = listened_queue()
    queue.changed(UNIT, 0, 0)
    queue.pop()

    queue.remove(UNIT)
    queue.changed(UNIT, 0, 0)
    queue.landed(UNIT)

    row = queue.pop()
    assert row is not None
    assert row.key == UNIT


def waiting_queue(*, message: str = "waiting") -> SchedulingQueue:
    """A unit that has nodes in view."""
    queue, _ = listened_queue()
    queue.changed(UNIT, 0, 0)
    queue.pop()
    queue.landed(UNIT)
    queue.nominated(UNIT, 0, ("INSUFFICIENT_CPU",), message)
    return queue


def state_of(queue: SchedulingQueue) -> UnitState:
    return queue.rows[UNIT].state


def test_a_unit_that_waits_for_preemption_is_tried_when_an_event_may_help() -> None:
    queue = waiting_queue()

    queue.happened([EventKind.POD_BOUND], 1)
    before = state_of(queue)
    queue.happened([EventKind.POD_FREED], 1)

    assert (before, state_of(queue)) == (UnitState.WAITING_FOR_PREEMPTION, UnitState.ACTIVE)


def test_a_unit_that_was_tried_while_it_waits_rests_until_the_next_full_second() -> None:
    queue = waiting_queue()
    queue.still_waiting(UNIT, SECOND_US // 2, ("INSUFFICIENT_CPU",), "waiting")

    queue.happened([EventKind.POD_FREED], SECOND_US)
    early = queue.due(2 * SECOND_US - 1), state_of(queue)
    late = queue.due(2 * SECOND_US), state_of(queue)

    assert early == (False, UnitState.WAITING_FOR_PREEMPTION)
    assert late == (True, UnitState.ACTIVE)


def test_a_unit_that_nothing_helps_waits_on() -> None:
    queue = waiting_queue()
    queue.still_waiting(UNIT, 0, ("INSUFFICIENT_CPU",), "waiting")

    assert not queue.due(600 * SECOND_US)
    assert state_of(queue) is UnitState.WAITING_FOR_PREEMPTION


def test_a_unit_whose_victims_are_gone_is_tried_whatever_its_backoff() -> None:
    queue = waiting_queue()
    queue.errored(UNIT, 0, "broken")

    queue.victims_gone(UNIT)

    assert (state_of(queue), queue.rows[UNIT].not_before_us) == (UnitState.ACTIVE, 0)


def test_a_cleared_nomination_wakes_those_who_want_room() -> None:
    queue, _ = listened_queue()
    queue.changed(UNIT, 0, 0)
    queue.pop()
    queue.landed(UNIT)
    queue.failed(UNIT, 0, ("INSUFFICIENT_CPU",), "no room")

    queue.happened([EventKind.NOMINATION_CLEARED], 1)

    assert state_of(queue) is UnitState.ACTIVE
