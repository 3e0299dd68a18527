"""What a unit's last failure still says: nothing new, as long as there is no more room for it anywhere (semantics 4).

A unit that an event woke is often no better off: what one pod gave back another one has taken. Where only room decides
(no terms on other pods, no ports, nothing promised), a unit that failed with some room fails with no more of it, so its
failure is taken over without a cycle. Room is what is free once all are gone that leave anyway or that the unit may
preempt. For equal pods that may run anywhere the number that fits is compared, else the room of every node. A retry by
the safety net, and a cycle that a caller asks for, is always a cycle.

Kept in memory alone: after a restart, and for all but the units that failed last, the next retry is a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.core.arrays import IntArray
from muster.core.capacity import MANY
from muster.core.framework import Profile
from muster.core.needs import Needs
from muster.core.pod_placement import placer_of
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit, leaves
from muster.engine.ports import QueuedUnit
from muster.model.meta import ObjectKey

_MOST_UNITS = 4_096
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class _Failure:
    """attempts, attempt_us: which failure it is. nodes: version and membership of the node table.

    room: per resource row of `rows` and slot; or, for equal pods that may run anywhere, how many of them fit.
    """

    attempts: int
    attempt_us: int
    nodes: tuple[int, int]
    needs: Needs
    rows: tuple[int, ...]
    room: IntArray | int

    @property
    def size(self) -> int:
        return 0 if isinstance(self.room, int) else self.room.nbytes


class LastFailures:
    """Of the units that failed last."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, _Failure] = {}
        self._bytes = 0
        self._fits: dict[Needs, int] = {}
        self._fits_at = -1

    def __len__(self) -> int:
        return len(self._known)

    def note(self, row: QueuedUnit, unit: Unit, needs: Needs, snapshot: Snapshot, profile: Profile) -> None:
        """The unit failed as its row says, and the snapshot has no more room than its cycle saw."""
        self.forget(row.key)
        if not _is_room_all(unit, needs, snapshot, profile):
            return
        rows = tuple(sorted({snapshot.nodes.rows[name] for each in needs.shapes for name in each.requests}))
        room: IntArray | int = self._room(snapshot, needs)[list(rows)]
        if len(needs.shapes) == 1 and not _is_constrained(unit.root):
            room = self._fitting(snapshot, needs, profile)
        nodes = (snapshot.nodes.version, snapshot.nodes.membership)
        failure = _Failure(row.attempts, row.last_attempt_us, nodes, needs, rows, room)
        self._known[row.key] = failure
        self._bytes += failure.size
        while len(self._known) > _MOST_UNITS or self._bytes > _MOST_BYTES:
            self.forget(next(iter(self._known)))

    def holds(self, row: QueuedUnit, snapshot: Snapshot, profiles: Mapping[str, Profile]) -> Needs | None:
        """The needs of a unit that would fail now as it did last; None if that is not known."""
        failure = self._known.get(row.key)
        if failure is None or (failure.attempts, failure.attempt_us) != (row.attempts, row.last_attempt_us):
            return None
        needs, nodes = failure.needs, snapshot.nodes
        if failure.nodes != (nodes.version, nodes.membership):
            return None
        if isinstance(failure.room, int):
            grew = self._fitting(snapshot, needs, profiles[needs.profile]) > failure.room
        else:
            room = self._room(snapshot, needs)[list(failure.rows)]
            grew = room.shape != failure.room.shape or bool((room > failure.room).any())
        return None if grew else needs

    def repeat(self, row: QueuedUnit) -> None:
        """The failure held once more: it is now the one that the row tells of."""
        failure = self._known.pop(row.key)
        self._known[row.key] = replace(failure, attempts=row.attempts, attempt_us=row.last_attempt_us)

    def forget(self, unit: ObjectKey) -> None:
        """Its next retry is a cycle."""
        gone = self._known.pop(unit, None)
        if gone is not None:
            self._bytes -= gone.size

    def forget_all(self) -> None:
        """The next retry of every unit is a cycle: what its pods need is spoken of in other words now."""
        self._known.clear()
        self._bytes = 0
        self._fits.clear()

    def _fitting(self, snapshot: Snapshot, needs: Needs, profile: Profile) -> int:
        """How many pods of the only shape nodes hold, each by itself; worked out once for units that return together."""
        if self._fits_at != snapshot.version:
            self._fits.clear()
            self._fits_at = snapshot.version
        known = self._fits.get(needs)
        if known is None:
            known = self._fits[needs] = self._counted(snapshot, needs, profile)
        return known

    def _counted(self, snapshot: Snapshot, needs: Needs, profile: Profile) -> int:
        row = placer_of(snapshot, profile).keys.admission(needs.shapes[0])
        room = self._room(snapshot, needs)
        fitting = np.where(row.admitted, MANY, 0)
        for resource, amount in row.amounts:
            np.minimum(fitting, np.maximum(room[resource], 0) // amount, out=fitting)
        return int(fitting.sum())

    def _room(self, snapshot: Snapshot, needs: Needs) -> IntArray:
        """[R, N] what is free once leaving pods, and those that may be preempted, are gone. Not to be changed."""
        below = needs.priority if needs.preempts else None
        lower = _lower(snapshot, below)
        if not lower:
            return snapshot.nodes.free
        room: IntArray = snapshot.nodes.free.copy()
        for signature, by_slot in lower:
            slots = np.fromiter(by_slot.keys(), dtype=np.intp, count=len(by_slot))
            counts = np.fromiter(by_slot.values(), dtype=np.int64, count=len(by_slot))
            for resource, amount in signature.requests.items():
                room[snapshot.nodes.rows[resource], slots] += amount * counts
        return room


def _lower(snapshot: Snapshot, priority: int | None) -> Sequence[tuple[Signature, dict[int, int]]]:
    """Pods per slot, by signature, that leave or have a lower priority."""
    signatures, pods = snapshot.signatures, snapshot.pods
    lower = [
        (signatures[index], by_slot)
        for index, by_slot in pods.counts.items()
        if priority is not None and signatures[index].priority < priority
    ]
    leaving = [
        (signatures[index], by_slot)
        for index, by_slot in pods.leaving.items()
        if priority is None or signatures[index].priority >= priority
    ]
    return lower + leaving


def _is_room_all(unit: Unit, needs: Needs, snapshot: Snapshot, profile: Profile) -> bool:
    """Whether nothing but room and the nodes themselves decides where the unit's pods may run."""
    if unit.promised.node_names or unit.earlier.stayed:
        return False
    if not all(unit.excluded_nodes.keys().isdisjoint(leaf.pods.ids) for leaf in leaves(unit.root)):
        return False
    return not any(item.concerns(each, snapshot) for item in profile.pod_filters for each in needs.shapes)


def _is_constrained(group: GroupTree) -> bool:
    return group.topology_key is not None or any(map(_is_constrained, group.children))
