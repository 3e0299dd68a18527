"""Which change in the cluster may help a unit that failed (queueing hints, semantics 4). Pure.

A hint answers an event and a code of the unit's last failure: never, always, or where a node or a pod that the event
touches is of use for the unit (`changes` looks at those). A node's change may help every unit that is not at fault itself,
whatever its reasons: they name the first filter that refuses each node, and that may have ceased to since without the
node being of any use yet. A wrong "never" would leave a unit asleep, so a code that the table does not know is helped by
every event.

What becomes of the unit's own pods, groups and Workload is no event here: `settlement` makes it active at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, Flag, auto
from functools import reduce
from operator import or_

from muster.core.pins import NO_DOMAIN, PINNED_APART, PINNED_OUTSIDE
from muster.core.reasons import BINDING_FAILED, NO_NODES, TOO_MANY_PODS
from muster.engine.layouts import (
    DISRUPTION_MODE_CLASH,
    GROUP_PRIORITY_CLASH,
    SEVERAL_WORKLOADS,
    TEMPLATE_ELSEWHERE,
    TEMPLATE_OF_OTHER_KIND,
    TEMPLATE_UNKNOWN,
    TOO_MANY_GROUPS,
    TREE_TOO_DEEP,
)
from muster.engine.unit_faults import UNIT_TOO_LARGE
from muster.model.node import Node, Taint
from muster.model.resources import Amounts, node_allocatable
from muster.plugins.host_ports import HostPortsFilter
from muster.plugins.node_affinity import NodeAffinityFilter
from muster.plugins.pod_affinity import PodAffinityFilter, PodAntiAffinityFilter
from muster.plugins.taint_toleration import TaintFilter
from muster.plugins.topology_spread import SpreadFilter, SpreadKeyFilter
from muster.plugins.unschedulable import UnschedulableFilter

NOT_READY = "NOT_READY"
"""All pods that wait are in groups that are not admissible: no event in the cluster helps, their own changes do."""
INSUFFICIENT = "INSUFFICIENT_"
"""What the code for the lack of a resource begins with."""


class EventKind(Enum):
    """What happened, seen from a unit that waits for room."""

    NODE_ADDED = auto()
    NODE_GREW = auto()
    NODE_SHRANK = auto()
    NODE_RELABELLED = auto()
    NODE_TAINTED = auto()
    NODE_UNTAINTED = auto()
    NODE_CORDONED = auto()
    NODE_UNCORDONED = auto()
    NODE_REMOVED = auto()
    POD_FREED = auto()
    """A pod gave its room back: it finished, was deleted, unbound or moved."""
    POD_LEAVING = auto()
    """A bound pod got a deletion mark: it takes room, and counts in no spread any more."""
    POD_BOUND = auto()
    POD_RELABELLED = auto()
    NOMINATION_CLEARED = auto()
    BINDING_FORGIVEN = auto()
    """A pod may be tried again on a node on which its binding failed."""


class Help(Flag):
    """When an event may do something for a unit: never, on any of these conditions, or always."""

    NEVER = 0
    WHERE_ADMITTED = auto()
    """A node that it touches could take one of the unit's pods."""
    WHERE_SELECTED = auto()
    """A pod that it touches bears on where the unit's pods may run, by affinity or spread."""
    ALWAYS = auto()


Hints = Mapping[EventKind, Help]

_E = EventKind
_NODE_CHANGES = (
    _E.NODE_GREW,
    _E.NODE_SHRANK,
    _E.NODE_RELABELLED,
    _E.NODE_TAINTED,
    _E.NODE_UNTAINTED,
    _E.NODE_CORDONED,
    _E.NODE_UNCORDONED,
)
FREEING = frozenset(
    (
        _E.NODE_ADDED,
        _E.NODE_GREW,
        _E.NODE_RELABELLED,
        _E.NODE_UNTAINTED,
        _E.NODE_UNCORDONED,
        _E.POD_FREED,
        _E.NOMINATION_CLEARED,
    )
)
"""Events after which a node may have more room for a unit than before."""

NODE_EVENTS = frozenset({_E.NODE_ADDED, *_NODE_CHANGES, _E.NODE_REMOVED, _E.BINDING_FORGIVEN})
"""Events that may help a unit which no removal of pods would help: of nodes, and of which nodes count."""


def _hints(always: Iterable[EventKind] = (), admitted: Iterable[EventKind] = ()) -> Hints:
    return dict.fromkeys(admitted, Help.WHERE_ADMITTED) | dict.fromkeys(always, Help.ALWAYS)


def _with(hints: Hints, always: Iterable[EventKind], selected: Iterable[EventKind]) -> Hints:
    """The hints, and more for what other pods do."""
    both = {event: hints.get(event, Help.NEVER) | Help.WHERE_SELECTED for event in selected}
    return {**hints, **both, **dict.fromkeys(always, Help.ALWAYS)}


_NOTHING = _hints()
_ANYTHING = _hints(EventKind)
_ROOM = _hints([_E.NOMINATION_CLEARED], FREEING - {_E.NOMINATION_CLEARED})
_LABELS = (_E.NODE_RELABELLED, _E.NODE_REMOVED)
_PINS = {**_ROOM, **_hints(_LABELS)}
_MOVES = (_E.NODE_ADDED, *_LABELS)
_GONE = (_E.POD_FREED, _E.POD_RELABELLED)

HINTS: Mapping[str, Hints] = {
    UnschedulableFilter.code: _ROOM,
    TaintFilter.code: _ROOM,
    NodeAffinityFilter.code: _ROOM,
    SpreadKeyFilter.code: _ROOM,
    NO_NODES: _ROOM,
    NO_DOMAIN: _ROOM,
    PINNED_APART: _PINS,
    PINNED_OUTSIDE: _PINS,
    TOO_MANY_PODS: _ROOM,
    HostPortsFilter.code: _ROOM,
    PodAffinityFilter.code: _with(_ROOM, _MOVES, [*_GONE, _E.POD_BOUND]),
    PodAntiAffinityFilter.code: _with(_ROOM, _LABELS, _GONE),
    SpreadFilter.code: _with(
        _ROOM,
        [*_MOVES, _E.NODE_TAINTED, _E.NODE_UNTAINTED],
        [*_GONE, _E.POD_BOUND, _E.POD_LEAVING],
    ),
    BINDING_FAILED: {**_ROOM, **_hints([_E.BINDING_FORGIVEN], _NODE_CHANGES)},
    "SCHEDULER_NAME_CLASH": _NOTHING,
    "PRIORITY_CLASH": _NOTHING,
    "PREEMPTION_POLICY_CLASH": _NOTHING,
    TREE_TOO_DEEP: _NOTHING,
    TOO_MANY_GROUPS: _NOTHING,
    UNIT_TOO_LARGE: _NOTHING,
    SEVERAL_WORKLOADS: _NOTHING,
    GROUP_PRIORITY_CLASH: _NOTHING,
    DISRUPTION_MODE_CLASH: _NOTHING,
    TEMPLATE_UNKNOWN: _NOTHING,
    TEMPLATE_OF_OTHER_KIND: _NOTHING,
    TEMPLATE_ELSEWHERE: _NOTHING,
    NOT_READY: _NOTHING,
}
"""By reason code; the lack of a resource has one code for each resource and is found by `hints_for`."""


def hints_for(code: str) -> Hints:
    """What each event may do about a reason; an event that is not named may do nothing."""
    if code.startswith(INSUFFICIENT):
        return _ROOM
    return HINTS.get(code, _ANYTHING)


def help_of(event: EventKind, reasons: Iterable[str]) -> Help:
    """When the event may do something for a unit that failed for these reasons; always if none is known."""
    found = [hints_for(code).get(event, Help.NEVER) for code in reasons]
    return reduce(or_, found) if found else Help.ALWAYS


def may_help(event: EventKind, reasons: Iterable[str]) -> bool:
    """Whether the event could change the outcome of a unit that failed for these reasons, as far as they tell."""
    return help_of(event, reasons) is not Help.NEVER


def node_events(old: Node | None, new: Node | None) -> Iterator[EventKind]:
    """What became of a node, as far as placement reads it; nothing if it reads the same."""
    if new is None:
        yield EventKind.NODE_REMOVED
    elif old is None:
        yield EventKind.NODE_ADDED
    else:
        yield from _amount_events(node_allocatable(old), node_allocatable(new))
        if old.labels != new.labels:
            yield EventKind.NODE_RELABELLED
        yield from _taint_events(old.taints, new.taints)
        if old.unschedulable != new.unschedulable:
            yield EventKind.NODE_CORDONED if new.unschedulable else EventKind.NODE_UNCORDONED


def _amount_events(old: Amounts, new: Amounts) -> Iterator[EventKind]:
    if any(amount > old.get(resource, 0) for resource, amount in new.items()):
        yield EventKind.NODE_GREW
    if any(amount > new.get(resource, 0) for resource, amount in old.items()):
        yield EventKind.NODE_SHRANK


def _taint_events(old: tuple[Taint, ...], new: tuple[Taint, ...]) -> Iterator[EventKind]:
    if set(new) - set(old):
        yield EventKind.NODE_TAINTED
    if set(old) - set(new):
        yield EventKind.NODE_UNTAINTED
