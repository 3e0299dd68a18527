"""What groups lack for their minimum, and the least that this takes of any nodes (semantics 5.4).

A need is a group without names: groups alike have equal needs, so what bounds find out of one holds for all. How much
room there is, and whether that is enough, is for `core.capacity_bound`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.core.capacity import Rooms, pods_by_shape
from muster.core.signature import Signature
from muster.core.tree import GroupTree
from muster.core.trial import already_holds

_MOST_COMPARED = 16
"""With more shapes than this, pods are not counted against the room for smaller ones."""
_LARGEST = 2**62


class Need(NamedTuple):
    """label: of the constraint, None without one. missing: pods of a leaf, or children, that do not hold yet.

    supply: a leaf's pending pods by shape. children: those that may be placed, and how many there are of each kind.
    """

    label: str | None
    missing: int
    supply: tuple[tuple[int, int], ...] = ()
    children: tuple[tuple[Need, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """The least that a need takes: `least` pods that each take as much as one of the signature does, or more.

    With a resource row instead: that amount of it. signatures: pods that may take it, so that other nodes do not count.
    """

    least: int
    signatures: tuple[Signature, ...]
    row: int | None = None


@dataclass(slots=True)
class Demand:
    """Needs of one unit's groups, by nodes as they are labelled, tainted and sized now."""

    rooms: Rooms
    _shapes: dict[int, Signature] = field(default_factory=dict)
    _needs: dict[int, tuple[GroupTree, Need]] = field(default_factory=dict)
    _measures: dict[Need, tuple[Measure, ...]] = field(default_factory=dict)
    _of_amounts: dict[Need, tuple[Measure, ...]] = field(default_factory=dict)

    def signature(self, shape: int) -> Signature:
        """A signature of a shape that some need has."""
        return self._shapes[shape]

    def of(self, group: GroupTree) -> Need:
        """What the group lacks, nothing if `missing` is not above 0."""
        known = self._needs.get(id(group))
        if known is None:
            known = self._needs[id(group)] = group, self._made(group)
        return known[1]

    def measures(self, need: Need) -> tuple[Measure, ...]:
        """One shape of pods is measured by its number alone, which says more than amounts; of a leaf it says nothing new."""
        known = self._measures.get(need)
        if known is None:
            shapes = {shape: self._shapes[shape] for shape in sorted(_shapes(need))}
            measures = self._all_measures(need, shapes) if need.children or len(shapes) > 1 else ()
            known = tuple(measure for measure in measures if measure.least)
            self._measures[need] = known
        return known

    def amounts(self, need: Need) -> tuple[Measure, ...]:
        """The least that a need takes of each resource that its pods ask for."""
        known = self._of_amounts.get(need)
        if known is None:
            shapes = {shape: self._shapes[shape] for shape in sorted(_shapes(need))}
            known = self._of_amounts[need] = tuple(self._amounts(need, shapes)) if shapes else ()
        return known

    def _made(self, group: GroupTree) -> Need:
        if group.is_leaf:
            by_shape = pods_by_shape(self.rooms.snapshot, group)
            for signature in by_shape:
                self._shapes.setdefault(signature.shape, signature)
            supply = tuple(sorted((signature.shape, number) for signature, number in by_shape.items()))
            return Need(group.topology_key, group.minimum - group.satisfied, supply)
        open_ = [child for child in group.children if not already_holds(child)]
        missing = group.minimum - (len(group.children) - len(open_))
        alike: dict[Need, int] = {}
        for child in open_:
            if child.admissible:
                need = self.of(child)
                alike[need] = alike.get(need, 0) + 1
        return Need(group.topology_key, missing, children=tuple(alike.items()))

    def _all_measures(self, need: Need, shapes: Mapping[int, Signature]) -> list[Measure]:
        measures = []
        for one in shapes.values():
            weights = {other: int(self._takes_as_much(shapes[other], one)) for other in shapes}
            measures.append(Measure(_least(need, weights), (one,)))
        if len(shapes) > 1:
            measures += self._amounts(need, shapes)
        return measures

    def _amounts(self, need: Need, shapes: Mapping[int, Signature]) -> list[Measure]:
        requests = {shape: self.rooms.snapshot.requests(one.index) for shape, one in shapes.items()}
        measures = []
        for row in np.flatnonzero(np.any(list(requests.values()), axis=0)).tolist():
            if self.rooms.adds_up(row):
                weights = {shape: int(amounts[row]) for shape, amounts in requests.items()}
                asking = tuple(shapes[shape] for shape, amount in weights.items() if amount)
                measures.append(Measure(min(_least(need, weights), _LARGEST), asking, row))
        return measures

    def _takes_as_much(self, pod: Signature, one: Signature) -> bool:
        """Whether wherever such a pod runs, it takes the place of at least one pod of the other shape."""
        if pod.shape == one.shape:
            return True
        few = len(self._shapes) <= _MOST_COMPARED
        return few and self.rooms.outweighs(pod, one)


def _shapes(need: Need) -> set[int]:
    below = (_shapes(child) for child, _ in need.children)
    return {shape for shape, _ in need.supply}.union(*below)


def _least(need: Need, weights: Mapping[int, int]) -> int:
    """The weight of the lightest pods that meet the need."""
    if need.supply:
        parts = sorted((weights[shape], number) for shape, number in need.supply)
    else:
        parts = sorted((_least(child, weights), number) for child, number in need.children)
    left, total = max(need.missing, 0), 0
    for weight, number in parts:
        taken = min(left, number)
        total += taken * weight
        left -= taken
    return total
