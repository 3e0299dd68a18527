"""Upper bounds on what domains can hold, so that hopeless candidates are not simulated (semantics 5.4).

A domain is asked whether it might hold enough children, each by itself; children that want domains of their own must
find them inside. Together they must not take more than there is: of room for pods of a shape, of any resource, and of
domains large enough for one. What filters say that read other pods is ignored, so a "no" is a proof and a "yes" is
not. From free amounts it says whether to try, from allocatable ones whether removing pods could help.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muster.core.arrays import BoolArray, IntArray
from muster.core.capacity import AMOUNTS, Amounts, Rooms
from muster.core.cuts import Level, levels_of
from muster.core.decision import Status
from muster.core.demand import Demand, Measure, Need
from muster.core.domains import CLUSTER, Domain
from muster.core.signature import Signature
from muster.core.tree import GroupTree

Path = tuple[str, ...]
"""Labels that cut the domains in question further, one inside the other; none for these domains themselves."""


class DomainRooms(Protocol):
    """Room in domains. D: how many a path makes."""

    def size(self, path: Path) -> int: ...

    def parents(self, path: Path) -> IntArray:
        """[D] places in the path without its last label."""
        ...

    def pods(self, signature: Signature, path: Path) -> IntArray:
        """[D] pods of a shape, none of another beside them."""
        ...

    def amounts(self, row: int, signatures: tuple[Signature, ...], path: Path) -> IntArray:
        """[D] at most so much of a resource row is there for pods of these shapes."""
        ...


@dataclass(slots=True)
class SnapshotRooms:
    """Room in an outer domain cut by labels, on the snapshot as it is; without labels in the whole of it, D = 1."""

    rooms: Rooms
    outer: Domain
    keys: Path
    by: Amounts

    def size(self, path: Path) -> int:
        level = self._level(path)
        return 1 if level is None else len(level)

    def parents(self, path: Path) -> IntArray:
        level = self._level(path)
        return np.zeros(1, dtype=np.int64) if level is None else level.parents

    def pods(self, signature: Signature, path: Path) -> IntArray:
        level = self._level(path)
        if level is None:
            return self._whole(self.rooms.per_slot(signature, self.by))
        return self.rooms.sums(signature, level, self.by)

    def amounts(self, row: int, signatures: tuple[Signature, ...], path: Path) -> IntArray:
        level = self._level(path)
        offered = self.rooms.offered(row, signatures, self.by)
        return self._whole(offered) if level is None else level.sums(offered)

    def _level(self, path: Path) -> Level | None:
        keys = (*self.keys, *path)
        return levels_of(self.rooms.snapshot, self.outer, keys)[-1] if keys else None

    def _whole(self, per_slot: IntArray) -> IntArray:
        inside = per_slot if self.outer.slots is None else per_slot[self.outer.slots]
        return np.array([inside.sum()])


@dataclass(slots=True)
class TreeBound:
    """Which domains might hold what, by rooms that do not change meanwhile. What it answers is not to be changed."""

    demand: Demand
    rooms: DomainRooms
    _holds: dict[tuple[Need, Path], BoolArray] = field(default_factory=dict)
    _most: dict[tuple[Need, Path], IntArray] = field(default_factory=dict)
    _pods: dict[tuple[int, Path], IntArray] = field(default_factory=dict)
    _amounts: dict[tuple[Measure, Path], IntArray] = field(default_factory=dict)

    def holds(self, need: Need, path: Path = ()) -> BoolArray:
        """[D] whether a domain might hold the need, its own label being what made the domains."""
        if len(need.supply) == 1:
            # Of equal pods their number says all, which is counted sooner than a need is looked up.
            ((shape, number),) = need.supply
            enough: BoolArray = (
                np.minimum(self._pods_of(self.demand.signature(shape), path), number) >= need.missing
            )
            return enough
        known = self._holds.get((need, path))
        if known is None:
            known = self._holds[need, path] = self._judged(need, path)
        return known

    def holds_inside(self, need: Need, path: Path = ()) -> BoolArray:
        """[D] whether a domain, or some domain of the need's label inside it, might hold the need."""
        if need.label is None:
            return self.holds(need, path)
        inner = (*path, need.label)
        return self._sums_inside(self.holds(need, inner), inner) > 0

    def most(self, need: Need, path: Path = ()) -> IntArray:
        """[D] how many of a leaf's pods, or of the children, a domain might hold, regardless of other shapes of pods."""
        known = self._most.get((need, path))
        if known is None:
            most = self._most_pods if need.supply else self._most_children
            known = self._most[need, path] = most(need, path)
        return known

    def room(self, measure: Measure, path: Path = ()) -> IntArray:
        """[D] what domains have of what a measure counts."""
        if measure.row is None:
            return self._pods_of(measure.signatures[0], path)
        known = self._amounts.get((measure, path))
        if known is None:
            known = self.rooms.amounts(measure.row, measure.signatures, path)
            self._amounts[measure, path] = known
        return known

    def share(self, need: Need, path: Path = ()) -> NDArray[np.float64]:
        """[D] how much of what the need asks for a domain has at least, 1 where it might hold it."""
        if need.missing <= 0:
            return np.ones(self.rooms.size(path))
        share = self.most(need, path) / need.missing
        for measure in self.demand.measures(need):
            np.minimum(share, self.room(measure, path) / measure.least, out=share)
        return np.minimum(share, 1.0)

    def _judged(self, need: Need, path: Path) -> BoolArray:
        if need.missing <= 0:
            return np.ones(self.rooms.size(path), dtype=np.bool_)
        enough: BoolArray = self.most(need, path) >= need.missing
        if enough.any():
            for measure in self.demand.measures(need):
                enough &= self.room(measure, path) >= measure.least
        return enough

    def _most_pods(self, leaf: Need, path: Path) -> IntArray:
        held = np.zeros(self.rooms.size(path), dtype=np.int64)
        for shape, number in leaf.supply:
            held += np.minimum(self._pods_of(self.demand.signature(shape), path), number)
        return held

    def _most_children(self, need: Need, path: Path) -> IntArray:
        """Each by itself, and leaves of one shape that want domains of one label together."""
        able = np.zeros(self.rooms.size(path), dtype=np.int64)
        alike: dict[tuple[str, int], list[tuple[Need, int]]] = {}
        for child, number in need.children:
            if child.label is not None and child.missing > 0 and len(child.supply) == 1:
                alike.setdefault((child.label, child.supply[0][0]), []).append((child, number))
            else:
                able += number * self.holds_inside(child, path)
        for (label, shape), children in alike.items():
            each = sum((number * self.holds_inside(child, path) for child, number in children), 0 * able)
            able += np.minimum(each, self._together(children, shape, (*path, label)))
        return able

    def _together(self, children: list[tuple[Need, int]], shape: int, inner: Path) -> IntArray:
        smallest = min(child.missing for child, _ in children)
        return self._sums_inside(self._pods_of(self.demand.signature(shape), inner) // smallest, inner)

    def _pods_of(self, signature: Signature, path: Path) -> IntArray:
        known = self._pods.get((signature.shape, path))
        if known is None:
            known = self._pods[signature.shape, path] = self.rooms.pods(signature, path)
        return known

    def _sums_inside(self, per_domain: IntArray | BoolArray, path: Path) -> IntArray:
        """Sums over the domains of a path inside each domain of the path without its last label."""
        size = self.rooms.size(path[:-1])
        return np.bincount(self.rooms.parents(path), weights=per_domain, minlength=size).astype(np.int64)


@dataclass(slots=True)
class CapacityBound:
    """Bounds for all domains of a level at once."""

    by_free: TreeBound
    by_allocatable: TreeBound

    @property
    def demand(self) -> Demand:
        """Of the unit that it is asked about."""
        return self.by_free.demand

    def failures(self, group: GroupTree) -> IntArray:
        """[D] the status that the group certainly has in each domain, 0 where it may hold its minimum."""
        need = self.demand.of(group)
        may_hold = self.by_free.holds(need)
        if may_hold.all():
            return np.zeros(len(may_hold), dtype=np.int64)
        could_hold = self.by_allocatable.holds(need)
        failed = np.where(could_hold, Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE)
        failures: IntArray = np.where(may_hold, 0, failed)
        return failures


def bound_inside(demand: Demand, outer: Domain, key: str) -> CapacityBound:
    """The bound for the domains of a label inside an outer one, on the snapshot as it is."""
    free, if_empty = (SnapshotRooms(demand.rooms, outer, (key,), by) for by in AMOUNTS)
    return CapacityBound(TreeBound(demand, free), TreeBound(demand, if_empty))


def is_hopeless(demand: Demand, root: GroupTree) -> bool:
    """True only if no placement of the root's minimum exists on the snapshot as it is."""
    rooms = SnapshotRooms(demand.rooms, CLUSTER, (), "free")
    return not TreeBound(demand, rooms).holds_inside(demand.of(root)).any()
