"""Which change in the cluster may help a unit that failed (queueing hints, semantics 4). Pure.

A hint is a function of (event, codes of the unit's last failure); a wrong "no" would leave a unit asleep, so a code
that the table does not know is woken by every event.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto


class EventKind(Enum):
    """What happened, seen from a unit that waits for room."""

    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    NODE_REMOVED = auto()
    POD_FREED = auto()
    POD_BOUND = auto()
    POD_RELABELLED = auto()
    NOMINATION_CLEARED = auto()


_NODE_EVENTS = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED})
_ROOM = _NODE_EVENTS | {EventKind.POD_FREED, EventKind.NOMINATION_CLEARED}
_ANY = frozenset(EventKind)
FREEING = _ROOM
"""Events after which a node may have more room than before."""

_HELPED_BY: dict[str, frozenset[EventKind]] = {
    "NODE_UNSCHEDULABLE": _NODE_EVENTS,
    "NODE_TAINTED": _NODE_EVENTS,
    "NODE_AFFINITY": _NODE_EVENTS,
    "NO_NODES": _NODE_EVENTS,
    "NO_DOMAIN": _NODE_EVENTS,
    "TOO_MANY_PODS": _ROOM,
    "HOST_PORTS": _ROOM,
    "TOPOLOGY_SPREAD_KEY": _NODE_EVENTS,
    "SCHEDULER_NAME_CLASH": frozenset(),
    "PRIORITY_CLASH": frozenset(),
    "PREEMPTION_POLICY_CLASH": frozenset(),
    "TREE_TOO_DEEP": frozenset(),
    "SEVERAL_WORKLOADS": frozenset(),
    "GROUP_PRIORITY_CLASH": frozenset(),
    "DISRUPTION_MODE_CLASH": frozenset(),
    "TEMPLATE_UNKNOWN": frozenset(),
    "TEMPLATE_OF_OTHER_KIND": frozenset(),
    "TEMPLATE_ELSEWHERE": frozenset(),
    "NOT_READY": frozenset(),
}


def may_help(event: EventKind, reasons: Iterable[str]) -> bool:
    """Whether the event could change the outcome of a unit that failed for these reasons; true if none is known."""
    codes = list(reasons)
    return not codes or any(event in _helped_by(code) for code in codes)


def _helped_by(code: str) -> frozenset[EventKind]:
    if code.startswith("INSUFFICIENT_"):
        return _ROOM
    return _HELPED_BY.get(code, _ANY)
