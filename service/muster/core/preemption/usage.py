"""What potential victims take of each node, in columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.preemption.victims import Victims
from muster.core.snapshot import Snapshot

_MOST_KNOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class UnitEntries:
    """E entries, one for each unit and node on which it has pods, unit by unit.

    firsts: [U + 1] where each unit's entries begin. owners, slots: [E]. amounts: [R, E], one row a resource of the
    snapshot.
    """

    firsts: IntArray
    owners: IntArray
    slots: Slots
    amounts: IntArray


@dataclass(frozen=True, eq=False)
class Usage:
    """P pods of U units, unit by unit, on a snapshot with R resources and so many (size) slots.

    firsts: [U + 1] where each unit's pods begin. owners, slots: [P]. rows: [r] resources that some pod takes of.
    amounts: [r, P].
    """

    firsts: IntArray
    owners: IntArray
    slots: Slots
    rows: IntArray
    amounts: IntArray
    height: int
    size: int
    _known: dict[bytes, IntArray] = field(default_factory=dict)
    """What was asked for last, the latest at the end."""

    def freed(self, evicted: BoolArray) -> IntArray:
        """[R, size] what these units [U] leave behind; read-only, since it is kept for who asks next."""
        key = evicted.tobytes()
        known = self._known.pop(key, None)
        if known is None:
            known = self._sums(evicted)
            known.setflags(write=False)
        self._known[key] = known
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return known

    @cached_property
    def by_unit(self) -> UnitEntries:
        """The same with the pods that a unit has on one node taken together."""
        places = self.owners * self.size + self.slots
        order = np.argsort(places, kind="stable")
        places = places[order]
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        owners, slots = np.divmod(places[starts], self.size)
        amounts = np.zeros((self.height, len(starts)), dtype=np.int64)
        if len(starts):
            amounts[self.rows] = np.add.reduceat(self.amounts.take(order, axis=1), starts, axis=1)
        firsts = np.searchsorted(owners, np.arange(len(self.firsts)))
        return UnitEntries(firsts, owners, slots, amounts)

    def _sums(self, evicted: BoolArray) -> IntArray:
        freed = np.zeros((self.height, self.size), dtype=np.int64)
        gone = self._pods_of(evicted)
        slots = self.slots[gone]
        for row, amounts in zip(self.rows.tolist(), self.amounts, strict=True):
            np.add.at(freed[row], slots, amounts[gone])
        return freed

    def _pods_of(self, units: BoolArray) -> IntArray | slice:
        """The pods of these units: nothing need be gathered where all of them follow one another."""
        number = int(np.count_nonzero(units))
        first = int(units.argmax()) if number else 0
        if units[first : first + number].all():
            return slice(int(self.firsts[first]), int(self.firsts[first + number]))
        return np.flatnonzero(units[self.owners])


def usage_of(snapshot: Snapshot, victims: Victims) -> Usage:
    """What each unit takes where."""
    height, size = len(snapshot.nodes.rows), snapshot.nodes.size
    indexes = np.flatnonzero(np.bincount(victims.signatures))
    place_of = np.zeros(len(snapshot.signatures), dtype=np.int64)
    place_of[indexes] = np.arange(len(indexes))
    requests = np.zeros((height, len(indexes)), dtype=np.int64)
    for place, index in enumerate(indexes.tolist()):
        requests[:, place] = snapshot.requests(index)
    rows = np.flatnonzero(requests.any(axis=1))
    amounts = requests[rows].take(place_of[victims.signatures], axis=1)
    return Usage(victims.firsts, victims.owners, victims.slots, rows, amounts, height, size)
