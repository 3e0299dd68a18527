"""The potential victims of one unit in columns, in their order of importance, and what evicting a set of them costs.

Decides the two orders of semantics 5.6: importance, by which units are spared, and cost, by which sets of victims are
compared. Budgets are part of the cost only: nothing here forbids an eviction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.preemption_units import DisruptionUnits
from muster.core.snapshot import Snapshot
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey

_KIND_RANKS = {COMPOSITE_POD_GROUP: 0, POD_GROUP: 1}
_SINGLE_POD = 2
_NOBODY = -(2**63)

Cost = tuple[int, int, int, int, int]
"""Pods over budget, highest priority, sum of priorities, units, pods: the lower the better, the first differing decides.

Each part grows with the set or stays, so a set costs no less than any part of it.
"""


@dataclass(frozen=True, eq=False)
class Victims:
    """U units, most important first, with P pods, unit by unit.

    units, order: what they were made of, and the place there of each. firsts: [U + 1] where each unit's pods begin. ids: [P] ordinals, ascending in each unit. signatures, slots: [P].
    allowed, members: per budget, what it allows, and places in `ids` of the pods that it selects, ascending.
    """

    units: DisruptionUnits
    order: IntArray
    priorities: IntArray
    starts: IntArray
    firsts: IntArray
    ids: IntArray
    signatures: IntArray
    slots: Slots
    budgets: tuple[ObjectKey, ...] = ()
    allowed: tuple[int, ...] = ()
    members: tuple[IntArray, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.order)

    def keys(self, units: IntArray) -> Iterator[ObjectKey]:
        """Of these units: the group that is taken whole, or the pod."""
        keys, places = self.units.keys, self.order[units].tolist()
        columns = (keys.kinds, keys.namespaces, keys.names)
        return map(ObjectKey, *(map(column.__getitem__, places) for column in columns))

    @cached_property
    def sizes(self) -> IntArray:
        """[U] pods of each unit."""
        sizes: IntArray = np.diff(self.firsts)
        return sizes

    @cached_property
    def owners(self) -> IntArray:
        """[P] the unit of each pod."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def pods_of(self, units: IntArray) -> IntArray:
        """Places of the pods of these units, unit by unit."""
        return runs(self.firsts[units], self.sizes[units])

    @cached_property
    def weights(self) -> IntArray:
        """[U] what each adds to the sum of priorities, which counts from the lowest one if that is negative."""
        lowest = min(0, int(self.priorities.min(initial=0)))
        weights: IntArray = self.priorities - lowest
        return weights

    def nobody(self) -> BoolArray:
        """[U] an empty set."""
        return np.zeros(len(self), dtype=np.bool_)

    def everybody(self) -> BoolArray:
        """[U] all of them."""
        return np.ones(len(self), dtype=np.bool_)

    def pods_over_budget(self, evicted: BoolArray) -> IntArray:
        """Places of pods past zero in a budget if these units [U] go: the most important ones use budgets up first."""
        over = [members[evicted[owners]][allowed:] for allowed, members, owners in self._strictest]
        return np.unique(np.concatenate(over)) if over else np.zeros(0, dtype=np.int64)

    @cached_property
    def _strictest(self) -> list[tuple[int, IntArray, IntArray]]:
        """Of budgets that select the same pods the one that allows least, since no other finds more of them past zero.

        How many it allows, at least none; the pods that it selects, and the unit of each.
        """
        found: dict[bytes, tuple[int, IntArray]] = {}
        for number, members in zip(self.allowed, self.members, strict=True):
            allowed, content = max(number, 0), members.tobytes()
            if content not in found or allowed < found[content][0]:
                found[content] = (allowed, members)
        return [(allowed, members, self.owners[members]) for allowed, members in found.values()]

    @cached_property
    def _share_pods(self) -> bool:
        """Whether two budgets select the same pod, but not the same pods throughout."""
        every = [members for _, members, _ in self._strictest]
        return len(np.unique(np.concatenate((*every, [])))) < sum(map(len, every))

    def number_over_budget(self, evicted: BoolArray) -> int:
        """How many pods are past zero in a budget if these units [U] go."""
        if self._share_pods:
            return len(self.pods_over_budget(evicted))
        gone = ((int(np.count_nonzero(evicted[owners])), allowed) for allowed, _, owners in self._strictest)
        return sum(max(0, number - allowed) for number, allowed in gone)

    def breaking(self, evicted: BoolArray) -> BoolArray:
        """[U] which of the evicted units have a pod over budget."""
        breaking = self.nobody()
        breaking[self.owners[self.pods_over_budget(evicted)]] = True
        return breaking

    def cost(self, evicted: BoolArray) -> Cost:
        """What evicting these units [U] costs."""
        number = int(np.count_nonzero(evicted))
        if not number:
            return (0, _NOBODY, 0, 0, 0)
        return (
            self.number_over_budget(evicted),
            int(self.priorities[evicted].max()),
            sum(self.weights[evicted].tolist()),
            number,
            int(self.sizes[evicted].sum()),
        )

    def rank(self, evicted: BoolArray) -> tuple[Cost, int, bytes]:
        """A key to sort sets by: their cost, then the youngest, by the earliest start in a set, then the less important.

        Importance ends with the name, so that no two sets are equal.
        """
        oldest = int(self.starts[evicted].min(initial=2**62))
        # Where two sets differ first, that without the unit, the most important one, comes first.
        return self.cost(evicted), -oldest, evicted.tobytes()


def victims_of(snapshot: Snapshot, units: DisruptionUnits) -> Victims:
    """The units whose pods run in the snapshot, in their order of importance."""
    owners = np.repeat(np.arange(len(units.sizes)), units.sizes)
    signatures, slots, leaving = snapshot.pods.places(units.ordinals)
    stays = (slots >= 0) & ~leaving
    sizes = np.bincount(owners[stays], minlength=len(units.sizes))
    order = _by_importance(units, sizes)
    # Pods of a unit follow one another before and after.
    kept = runs((np.cumsum(sizes) - sizes)[order], sizes[order])
    if not stays.all():
        kept = np.flatnonzero(stays)[kept]
    ids = units.ordinals[kept]
    budgets = _members(units, ids)
    return Victims(
        units=units,
        order=order,
        priorities=units.priorities[order],
        starts=units.starts[order],
        firsts=np.concatenate(([0], np.cumsum(sizes[order]))),
        ids=ids,
        signatures=signatures[kept],
        slots=slots[kept],
        budgets=tuple(units.budgets.keys[place] for place in budgets),
        allowed=tuple(units.budgets.allowed[place] for place in budgets),
        members=tuple(budgets.values()),
    )


def runs(firsts: IntArray, sizes: IntArray) -> IntArray:
    """Numbers that follow each of the first ones, it included, so many of each."""
    ends = np.cumsum(sizes)
    numbers: IntArray = np.repeat(firsts - ends + sizes, sizes) + np.arange(sizes.sum())
    return numbers


def _by_importance(units: DisruptionUnits, sizes: IntArray) -> IntArray:
    """Priority, then kind, then more pods, then earlier start, then name; units without pods are left out."""
    running = np.flatnonzero(sizes)
    kinds = np.array(list(map(_KIND_RANKS.get, units.keys.kinds, repeat(_SINGLE_POD))), dtype=np.int64)
    columns = (units.starts, -sizes, kinds, -units.priorities)
    order = running[np.lexsort(tuple(column[running] for column in columns))]
    tied = np.logical_and.reduce([column[order[1:]] == column[order[:-1]] for column in columns])
    if tied.any():
        _sort_by_name(units, order, tied)
    return order


def _sort_by_name(units: DisruptionUnits, order: IntArray, tied: BoolArray) -> None:
    """Put runs of units of which each is tied with the one that follows in the order of their names."""
    runs = np.concatenate(([0], np.cumsum(~tied)))
    places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    names, namespaces = units.keys.names, units.keys.namespaces
    in_runs = zip(runs[places].tolist(), order[places].tolist(), strict=True)
    named = sorted((run, namespaces[unit], names[unit], unit) for run, unit in in_runs)
    order[places] = [unit for _, _, _, unit in named]


def _members(units: DisruptionUnits, ids: IntArray) -> dict[int, IntArray]:
    """Per budget that selects any of the pods, by its place among the budgets in the order of their keys."""
    if not units.budgets.keys:
        return {}
    ascending = np.argsort(ids)
    found: dict[int, IntArray] = {}
    for budget in sorted(range(len(units.budgets.keys)), key=units.budgets.keys.__getitem__):
        pods = np.array(units.budgets.pods[budget], dtype=np.int64)
        at = np.searchsorted(ids, pods, sorter=ascending)
        at, pods = at[at < len(ids)], pods[at < len(ids)]
        selected = np.sort(ascending[at[ids[ascending[at]] == pods]])
        if len(selected):
            found[budget] = selected
    return found
