"""What is known of a unit from the pop to the commit of its cycle, beside its row. The queue decides what follows."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.engine.queueing_hints import EventKind


@dataclass(slots=True)
class Flight:
    """A unit that a worker has: whether it changed, and what happened around it, since its snapshot.

    is_asked_for: a caller or the safety net wants a decision, even if it can but be the last one again.
    """

    is_asked_for: bool
    changed: bool = False
    events: dict[EventKind, None] = field(default_factory=dict)
