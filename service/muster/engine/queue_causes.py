"""What moves units of the queue, as `scheduler_queue_incoming_entities_total` names it. The moves are the queue's."""

from __future__ import annotations

from muster.engine.ports import UnitState
from muster.engine.queueing_hints import EventKind

TIMED = {
    UnitState.BACKOFF: "BackoffComplete",
    UnitState.UNSCHEDULABLE: "UnschedulableTimeout",
    UnitState.WAITING_FOR_PREEMPTION: "RestComplete",
}
"""Time itself, by the state that it ends."""


def cause_of(event: EventKind) -> str:
    """NODE_ADDED as metrics name it: NodeAdded."""
    return event.name.title().replace("_", "")
