"""Upper bounds on what domains can hold, so that hopeless candidates are not simulated (semantics 5.4).

Per shape of pod, the sum over a domain's nodes of the pods that each could hold by itself: exact for one shape, never
too low for several. From free amounts it says whether to try, from allocatable ones whether removing pods could
help. All candidates are judged in one pass; rooms of nodes are kept and renewed where nodes changed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.cuts import Level
from muster.core.decision import Status
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree
from muster.core.trial import already_holds

MANY = 2**31
"""More pods than a node ever holds; a sum of it over all nodes stays far below 2^63."""
_MOST_SHAPES = 64
Amounts = Literal["free", "allocatable"]


@dataclass(slots=True)
class _Room:
    """Pods of a shape that each slot holds by its free amounts. version, position: of nodes, and of the changes seen."""

    free: IntArray
    version: int
    position: int


@dataclass(slots=True)
class Rooms:
    """How many pods of a shape nodes and domains hold, by node filters and amounts alone."""

    snapshot: Snapshot
    placer: PodPlacer
    _known: dict[int, _Room] = field(default_factory=dict)

    def per_slot(self, signature: Signature) -> IntArray:
        """By free amounts, at most MANY. Not to be changed."""
        nodes, changes = self.snapshot.nodes, self.snapshot.changes
        known = self._known.get(signature.shape)
        changed = None
        if known is not None and known.version == nodes.version and len(known.free) == nodes.size:
            changed = changes.since(known.position)
        if known is None or changed is None:
            if len(self._known) >= _MOST_SHAPES:
                del self._known[next(iter(self._known))]
            known = _Room(self._counted(signature, "free", None), nodes.version, changes.position)
            self._known[signature.shape] = known
        elif changed:
            slots = np.array(changed, dtype=np.intp)
            known.free[slots] = self._counted(signature, "free", slots)
            known.position = changes.position
        return known.free

    def sums(self, signature: Signature, level: Level, amounts: Amounts) -> IntArray:
        """[D] pods that the domains of a level hold."""
        if amounts == "free":
            return level.sums(self.per_slot(signature))
        return level.static_sums(
            (self.placer, signature.shape), lambda: self._counted(signature, "allocatable", None)
        )

    def _counted(self, signature: Signature, amounts: Amounts, slots: Slots | None) -> IntArray:
        row = self.placer.keys.admission(signature)
        nodes = self.snapshot.nodes
        offered = nodes.free if amounts == "free" else nodes.allocatable
        admitted = row.admitted if slots is None else row.admitted[slots]
        room = np.where(admitted, 1 if row.exclusive else MANY, 0)
        for resource, amount in row.amounts:
            of_it = offered[resource] if slots is None else offered[resource][slots]
            np.minimum(room, np.maximum(of_it, 0) // amount, out=room)
        return room


@dataclass(slots=True)
class CapacityBound:
    """Bounds for all domains of a level, on the snapshot as it is."""

    rooms: Rooms
    level: Level
    _sums: dict[tuple[int, Amounts], IntArray] = field(default_factory=dict)

    def failures(self, group: GroupTree) -> IntArray:
        """[D] the status that the group certainly has in each domain, 0 where it may hold its minimum."""
        may_hold = self._holds(group, "free")
        if may_hold.all():
            return np.zeros(len(may_hold), dtype=np.int64)
        could_hold = self._holds(group, "allocatable")
        failed = np.where(could_hold, Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE)
        failures: IntArray = np.where(may_hold, 0, failed)
        return failures

    def _holds(self, group: GroupTree, amounts: Amounts) -> BoolArray:
        if group.is_leaf:
            leaf: BoolArray = group.satisfied + self._pods(group, amounts) >= group.minimum
            return leaf
        able = np.zeros(len(self.level), dtype=np.int64)
        for child in group.children:
            if already_holds(child):
                able += 1
            elif child.admissible:
                able += self._holds(child, amounts)
        holds: BoolArray = able >= group.minimum
        return holds

    def _pods(self, leaf: GroupTree, amounts: Amounts) -> IntArray:
        """[D] pods of a leaf that each domain holds, shape by shape."""
        held = np.zeros(len(self.level), dtype=np.int64)
        for shape, number in pods_by_shape(self.rooms.snapshot, leaf).items():
            held += np.minimum(self._room_of(shape, amounts), number)
        return held

    def _room_of(self, signature: Signature, amounts: Amounts) -> IntArray:
        known = self._sums.get((signature.shape, amounts))
        if known is None:
            known = self._sums[signature.shape, amounts] = self.rooms.sums(signature, self.level, amounts)
        return known


def rooms_of(snapshot: Snapshot, placer: PodPlacer) -> Rooms:
    """The snapshot's rooms as a placer sees them, made on first use."""
    rooms = snapshot.derived.get((Rooms, placer))
    if not isinstance(rooms, Rooms):
        rooms = snapshot.derived[Rooms, placer] = Rooms(snapshot, placer)
    return rooms


def pods_by_shape(snapshot: Snapshot, leaf: GroupTree) -> dict[Signature, int]:
    """How many pending pods of each shape a leaf has, by the shape's first signature."""
    indexes = leaf.pods.signatures
    counts = {indexes[0]: len(indexes)} if len(set(indexes)) == 1 else Counter(indexes)
    by_shape: dict[int, int] = {}
    first: dict[int, Signature] = {}
    for index, number in counts.items():
        signature = snapshot.signatures[index]
        first.setdefault(signature.shape, signature)
        by_shape[signature.shape] = by_shape.get(signature.shape, 0) + number
    return {first[shape]: number for shape, number in by_shape.items()}
