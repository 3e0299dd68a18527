"""How many pods of a shape nodes and domains hold, by node filters and amounts alone (semantics 5.4).

Per shape of pod, the sum over a domain's nodes of the pods that each could hold by itself: exact for one shape, never
too low for several. Rooms of nodes are kept and renewed where nodes changed. What follows for groups is for
`core.capacity_bound`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.cuts import Level
from muster.core.local_keys import Admission
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree

MANY = 2**31
"""More pods than a node ever holds; a sum of it over all nodes stays far below 2^63."""
_MOST_SHAPES = 64
_LARGEST_SUM = 2**61
Amounts = Literal["free", "allocatable"]
AMOUNTS: tuple[Amounts, Amounts] = ("free", "allocatable")


@dataclass(slots=True)
class _Static:
    """What node filters and allocatable amounts say of shapes; of no use any more when a node has changed.

    per_slot: pods of a shape on each slot if nothing ran there. outweighs: by two shapes.
    """

    version: int = -1
    admissions: dict[int, Admission] = field(default_factory=dict)
    per_slot: dict[int, IntArray] = field(default_factory=dict)
    outweighs: dict[tuple[int, int], bool] = field(default_factory=dict)


@dataclass(slots=True)
class _Room:
    """Pods of a shape that each slot holds by its free amounts. version, position: of nodes, and of the changes seen."""

    free: IntArray
    version: int
    position: int


@dataclass(slots=True)
class Rooms:
    """Pods of a shape that nodes and domains hold, and amounts that they have for pods of some shapes."""

    snapshot: Snapshot
    placer: PodPlacer
    _known: dict[int, _Room] = field(default_factory=dict)
    _static: _Static = field(default_factory=_Static)

    def per_slot(self, signature: Signature, by: Amounts = "free") -> IntArray:
        """At most MANY. Not to be changed."""
        return self._free(signature) if by == "free" else self._if_empty(signature)

    def sums(self, signature: Signature, level: Level, by: Amounts) -> IntArray:
        """[D] pods that the domains of a level hold."""
        if by == "free":
            return level.sums(self._free(signature))
        return level.static_sums((self.placer, signature.shape), lambda: self._if_empty(signature))

    def offered(self, row: int, signatures: tuple[Signature, ...], by: Amounts) -> IntArray:
        """Per slot the amount of a resource, 0 where no pod of these shapes fits. A copy."""
        nodes = self.snapshot.nodes
        offered: IntArray = np.maximum(nodes.free[row] if by == "free" else nodes.allocatable[row], 0)
        fits = np.logical_or.reduce([self.per_slot(signature, by) > 0 for signature in signatures])
        return np.where(fits, offered, 0)

    def adds_up(self, row: int) -> bool:
        """Whether no sum of a resource over nodes overflows."""
        nodes = self.snapshot.nodes
        return bool(nodes.size) and int(nodes.allocatable[row].max()) < _LARGEST_SUM // nodes.size

    def outweighs(self, pod: Signature, one: Signature) -> bool:
        """Whether wherever a pod runs, one of the other shape could run in its place, and beside others like it."""
        known = self._current().outweighs.get((pod.shape, one.shape))
        if known is None:
            as_large = all(pod.requests.get(name, 0) >= amount for name, amount in one.requests.items())
            small = self.admission(one)
            known = as_large and not (
                small.exclusive or (self.admission(pod).admitted & ~small.admitted).any()
            )
            self._current().outweighs[pod.shape, one.shape] = known
        return known

    def admission(self, signature: Signature) -> Admission:
        """What nodes admit the pods, and what those take: kept while no node changes."""
        known = self._current().admissions.get(signature.shape)
        if known is None or len(known.admitted) != self.snapshot.nodes.size:
            known = self._current().admissions[signature.shape] = self.placer.keys.admission(signature)
        return known

    def _free(self, signature: Signature) -> IntArray:
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

    def _if_empty(self, signature: Signature) -> IntArray:
        known = self._current().per_slot.get(signature.shape)
        if known is None or len(known) != self.snapshot.nodes.size:
            known = self._current().per_slot[signature.shape] = self._counted(signature, "allocatable", None)
        return known

    def _current(self) -> _Static:
        version = self.snapshot.nodes.version
        if self._static.version != version or len(self._static.admissions) > _MOST_SHAPES:
            self._static = _Static(version)
        return self._static

    def _counted(self, signature: Signature, by: Amounts, slots: Slots | None) -> IntArray:
        row = self.admission(signature)
        nodes = self.snapshot.nodes
        offered = nodes.free if by == "free" else nodes.allocatable
        admitted = row.admitted if slots is None else row.admitted[slots]
        room = np.where(admitted, 1 if row.exclusive else MANY, 0)
        for resource, amount in row.amounts:
            of_it = offered[resource] if slots is None else offered[resource][slots]
            np.minimum(room, np.maximum(of_it, 0) // amount, out=room)
        return room


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
