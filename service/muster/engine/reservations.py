"""The room that one unit of a cluster has reserved, and whom it is kept from (semantics 7, "Reservation").

A reservation is a nomination without victims: where the minimum of a unit that waits would fit soonest. It binds units
of lower or equal priority, other than those that the unit may preempt and those that declare to be done before it is
expected to start. It ends with what holds it: a unit that is placed, changed, gated or deleted reserves nothing.

Nothing of it is stored, since it follows from the objects, the queue and the time; `reserving` works it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from muster.core.decision import Reason
from muster.core.messages import number_of
from muster.core.preemption_units import PromisedRoom
from muster.engine.array_feed import ArrayFeed
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import pods_of_unit
from muster.engine.members import Standing, standing
from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.queueing_hints import EventKind
from muster.model.meta import ObjectKey
from muster.model.pod import Pod
from muster.model.run_time import max_run_time_seconds

if TYPE_CHECKING:
    from muster.engine.mutation import Mutation

RESERVED = "RESERVED"
SECOND_US = 1_000_000
_HOLDING = (UnitState.ACTIVE, UnitState.BACKOFF, UnitState.UNSCHEDULABLE)
_NOTHING = PromisedRoom()


@dataclass(frozen=True, slots=True)
class ReservedNodes:
    """Nodes for pods that are equal to filters and scores, an entry for each. pod: one of them."""

    pod: Pod = field(compare=False)
    node_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one unit has reserved.

    preempts: whether the unit may preempt units of lower priority. room: its pods on the nodes that they are to have.
    start_us: when the last of those who are in the way is expected to go, which may have passed; None if nobody knows.
    domain_key, domain_value: what a constrained root is to use, else "". fits_now: nobody is in the way any more.
    """

    unit: ObjectKey
    priority: int
    preempts: bool
    room: tuple[ReservedNodes, ...]
    start_us: int | None = None
    domain_key: str = ""
    domain_value: str = ""
    fits_now: bool = False

    def is_open_to(self, priority: int, pods: Iterable[Pod], now_us: int) -> bool:
        """Whether a unit of this priority may use the room: it can be preempted, or is done before the start."""
        if priority > self.priority or (self.preempts and priority < self.priority):
            return True
        return self.start_us is not None and all(_is_done_by(self.start_us, pod, now_us) for pod in pods)

    def rows(self) -> tuple[tuple[int, str, int], ...]:
        """The room in short: a pod of each kind by ordinal, a node, how many of them it is to have."""
        return tuple(
            (each.pod.ordinal, name, len(list(equal)))
            for each in self.room
            for name, equal in groupby(each.node_names)
        )

    def promised(self, feed: ArrayFeed) -> PromisedRoom:
        """The room as the core takes it, by the present numbers of signatures."""
        signatures: list[int] = []
        for each in self.room:
            signatures += [feed.signature_of(each.pod)] * len(each.node_names)
        return PromisedRoom(tuple(signatures), tuple(name for each in self.room for name in each.node_names))

    @property
    def told_to_others(self) -> str:
        """What those hear whom it binds."""
        nodes = {name for each in self.room for name in each.node_names}
        return f"room on {number_of(len(nodes), 'node')} is reserved for {self.unit}"

    def frees_somebody(self, after: Reservation | None) -> bool:
        """Whether somebody whom this one binds might be free to use room once the other stands in its place."""
        if after is None or (self.unit, self.room) != (after.unit, after.room):
            return True
        if after.start_us is None:
            return False
        return self.start_us is None or after.start_us > self.start_us


class Reservations:
    """Of one cluster. `current`: the only one, if any; `now_us`: the time by which run times are judged."""

    def __init__(self) -> None:
        self.current: Reservation | None = None
        self.now_us = 0

    def kept_from(self, state: ClusterState, feed: ArrayFeed, unit: ObjectKey, priority: int) -> PromisedRoom:
        """The room that the unit may not use."""
        held = self.binding(state, unit, priority)
        return _NOTHING if held is None else held.promised(feed)

    def binding(self, state: ClusterState, unit: ObjectKey, priority: int) -> Reservation | None:
        """The reservation whose room the unit may not use, if there is one."""
        held = self.current
        if held is None or held.unit == unit:
            return None
        pending = (
            pod
            for pod in pods_of_unit(state, unit)
            if standing(pod, state.scheduler_names) is Standing.PENDING
        )
        return None if held.is_open_to(priority, pending, self.now_us) else held

    def reason(self, unit: ObjectKey) -> Reason | None:
        """What is told of the unit's reservation; None if it has none."""
        held = self.current
        if held is None or held.unit != unit:
            return None
        names = [name for each in held.room for name in each.node_names]
        nodes = len(set(names))
        where = f" in {held.domain_key}={held.domain_value}" if held.domain_key else ""
        details = {"pods": str(len(names))}
        if held.domain_key:
            details |= {"domain_key": held.domain_key, "domain_value": held.domain_value}
        text = f"room on {number_of(nodes, 'node')}{where} is reserved; when it is free is not known"
        if held.start_us is not None:
            start = _shown(max(held.start_us, self.now_us))
            details["estimated_start"] = start
            text = f"room on {number_of(nodes, 'node')}{where} is reserved, estimated start {start}"
        return Reason(RESERVED, text, nodes, details)


def may_hold(row: QueuedUnit | None) -> bool:
    """Whether the unit waits for room as it is: it was tried, and has not been bound, changed or nominated since."""
    return row is not None and row.attempts > 0 and row.state in _HOLDING


def settle_reservation(mutation: Mutation) -> None:
    """Drop the reservation if what held it is no more; others may have the room."""
    held = mutation.cluster.reservations
    if held.current is not None and not may_hold(mutation.cluster.queue.rows.get(held.current.unit)):
        held.current = None
        mutation.note(EventKind.NOMINATION_CLEARED)


def _is_done_by(end_us: int, pod: Pod, now_us: int) -> bool:
    """Whether a pod that starts now declares to be done by then."""
    seconds = max_run_time_seconds(pod)
    return seconds is not None and now_us + seconds * SECOND_US <= end_us


def _shown(time_us: int) -> str:
    return datetime.fromtimestamp(-(-time_us // SECOND_US), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
