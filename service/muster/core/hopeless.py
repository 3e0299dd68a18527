"""Whether the capacity of single domains proves already that a tree's minimum fits nowhere, so that none need search.

Each constrained group is asked for one domain that could hold it alone, and groups of one shape for enough domains
together. That is what any placement needs, whatever filters say further; it ignores that groups of different kinds
take room from each other. Semantics 5.5: the bounds that rule a unit out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.capacity import Rooms, pods_by_shape, rooms_of
from muster.core.cuts import levels_of
from muster.core.domains import CLUSTER
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree

Path = tuple[str, ...]
_Leaf = tuple[str | None, int, int, tuple[int, ...]]


def is_hopeless(snapshot: Snapshot, placer: PodPlacer, root: GroupTree) -> bool:
    """True only if no placement of the root's minimum exists on the snapshot as it is."""
    bounds = _Bounds(snapshot, rooms_of(snapshot, placer))
    return not bounds.holds_inside(root, ()).any()


@dataclass(slots=True)
class _Kind:
    """Children that each need a domain of one label for pods of one shape, the smallest of them so many pods.

    able: [D] how many of them might be held, each by itself.
    """

    shape: Signature
    smallest: int
    able: IntArray


@dataclass(slots=True)
class _Bounds:
    """Answers per domain: a path of labels cuts the cluster into D domains; the empty path leaves it whole, D = 1."""

    snapshot: Snapshot
    rooms: Rooms
    _leaves: dict[tuple[_Leaf, Path], BoolArray] = field(default_factory=dict)
    _rooms: dict[tuple[int, Path], IntArray] = field(default_factory=dict)

    def holds_inside(self, group: GroupTree, outer: Path) -> BoolArray:
        """[D of outer] whether some domain inside, or the whole if it is not constrained, might hold the group."""
        if group.topology_key is None:
            return self._holds(group, outer)
        inner = (*outer, group.topology_key)
        return self._sums_inside(self._holds(group, inner).astype(np.int64), inner) > 0

    def _holds(self, group: GroupTree, path: Path) -> BoolArray:
        if not group.is_leaf:
            return self._holds_children(group, path)
        content = (group.topology_key, group.minimum, group.satisfied, group.pods.signatures)
        known = self._leaves.get((content, path))
        if known is None:
            shapes = pods_by_shape(self.snapshot, group).items()
            nothing = np.full(self._size(path), group.satisfied)
            held = sum((np.minimum(self._room(shape, path), number) for shape, number in shapes), nothing)
            known = self._leaves[content, path] = held >= group.minimum
        return known

    def _holds_children(self, group: GroupTree, path: Path) -> BoolArray:
        """Whether enough children might be held, each by itself and those that need domains of their own together."""
        able = np.zeros(self._size(path), dtype=np.int64)
        alike: dict[tuple[str, int], _Kind] = {}
        for child in group.children:
            if not child.admissible:
                continue
            holds = self.holds_inside(child, path)
            able += holds
            key, missing = child.topology_key, child.minimum - child.satisfied
            shapes = list(pods_by_shape(self.snapshot, child))
            if key is not None and missing > 0 and len(shapes) == 1:
                kind = alike.setdefault(
                    (key, shapes[0].shape), _Kind(shapes[0], missing, np.zeros_like(able))
                )
                kind.smallest = min(kind.smallest, missing)
                kind.able += holds
        enough: BoolArray = able >= group.minimum
        for (key, _), kind in alike.items():
            inner = (*path, key)
            together = self._sums_inside(self._room(kind.shape, inner) // kind.smallest, inner)
            enough &= able - kind.able + together >= group.minimum
        return enough

    def _size(self, path: Path) -> int:
        return len(levels_of(self.snapshot, CLUSTER, path)[-1]) if path else 1

    def _room(self, shape: Signature, path: Path) -> IntArray:
        known = self._rooms.get((shape.shape, path))
        if known is None:
            if path:
                known = self.rooms.sums(shape, levels_of(self.snapshot, CLUSTER, path)[-1], "free")
            else:
                known = np.array([self.rooms.per_slot(shape).sum()])
            self._rooms[shape.shape, path] = known
        return known

    def _sums_inside(self, per_domain: IntArray, path: Path) -> IntArray:
        """Sums over the domains of a path inside each domain of the path without its last label."""
        parents = levels_of(self.snapshot, CLUSTER, path)[-1].parents
        sums = np.zeros(self._size(path[:-1]), dtype=np.int64)
        np.add.at(sums, parents, per_domain)
        return sums
