"""Which units can be back, in their order, where pods of one kind are wanted and nodes hold so many of them each.

A unit goes back if the places for pods that it costs can be spared at its turn; what is spared then is gone for those
behind it. One unit after the other says that, and takes as long as there are units. Of many, two things are known at
once: as long as each goes back, what all of them cost, node by node; and where none that costs anything may go back,
who costs nothing, for units with pods on one node each, since then no node has to do with another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import floordiv

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots

MOST_TURNS = 64
"""How often the two take turns, before the rest is looked at unit by unit."""
FEW = 32
"""So many units are looked at one by one from the start."""


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """How many pods of a kind nodes hold: `requests` [r] of each resource that it takes of, and never more than `most`."""

    requests: tuple[int, ...]
    most: int

    def counts(self, room: Iterable[IntArray]) -> IntArray:
        """[n] for each node, by [r, n] its room of each requested resource."""
        # An array is divided by a plain number several times as fast as by an array.
        counts: IntArray = reduce(np.minimum, map(floordiv, room, self.requests))
        return np.maximum(np.minimum(counts, self.most), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """E entries, one for each of U units and each node on which it has pods, in the order of the units.

    units: [E] ascending, none of them left out. slots: [E]. amounts: [r, E] of each resource that is asked for.
    """

    units: IntArray
    slots: Slots
    amounts: IntArray

    def __len__(self) -> int:
        return len(self.units)

    def after(self, unit: int) -> Entries:
        """Those of the units from this one on."""
        start = int(np.searchsorted(self.units, unit))
        return Entries(self.units[start:], self.slots[start:], self.amounts[:, start:])

    def some(self, wanted: BoolArray) -> Entries:
        """Those that are wanted [E]."""
        return Entries(self.units[wanted], self.slots[wanted], self.amounts[:, wanted])


class Returning:
    """Units that go back one after the other. `back`: [U] which did, once `run` is over.

    room: [r, size] of each node with all of them away; it is used up. hosts: [size] which nodes may have the pods.
    spare: how many places for pods all nodes together can lose.
    """

    def __init__(
        self, entries: Entries, count: int, room: IntArray, holding: Holding, hosts: BoolArray, spare: int
    ) -> None:
        self.back = np.zeros(count, dtype=np.bool_)
        self._entries = entries
        self._room = room
        self._holding = holding
        self._hosts = hosts
        self._spare = spare
        self._are_apart = len(entries) == count

    def run(self) -> BoolArray:
        """All of the units."""
        if self._spare < 0:
            return self.back
        count, unit, turns = len(self.back), 0, 0
        while unit < count and count - unit > FEW and turns < MOST_TURNS:
            unit = self._all(unit)
            if unit == count or not self._are_apart:
                break
            unit = self._free_of_cost(unit)
            turns += 1
        self._one_by_one(unit)
        return self.back

    def _all(self, first: int) -> int:
        """Put units back from the first one on, as long as there is enough to spare; the one that costs too much."""
        entries = self._entries.after(first)
        order, starts, sizes = _node_by_node(entries.slots)
        slots, amounts = entries.slots[order], entries.amounts[:, order]
        before = np.cumsum(amounts, axis=1) - amounts
        before -= np.repeat(before[:, starts], sizes, axis=1)
        costs = np.zeros(len(entries), dtype=np.int64)
        costs[order] = self._costs(slots, self._room[:, slots] - before, amounts)
        sums = np.cumsum(costs)
        too_many = int(np.searchsorted(sums, self._spare, side="right"))
        unit = int(entries.units[too_many]) if too_many < len(entries) else len(self.back)
        end = int(np.searchsorted(entries.units, unit))
        self._put_back(entries.some(np.arange(len(entries)) < end))
        self._spare -= int(sums[end - 1]) if end else 0
        return unit

    def _free_of_cost(self, first: int) -> int:
        """Put units back that cost nothing, from one on that costs too much; the next one whose cost can be spared.

        Each has pods on one node: what is decided on the others does not matter to it.
        """
        entries, spare = self._entries.after(first), self._spare
        room, free = self._room.copy(), np.zeros(len(entries), dtype=np.bool_)
        event = len(entries)
        for turn in _turns(entries.slots):
            places = turn[turn < event]
            slots, amounts = entries.slots[places], entries.amounts[:, places]
            costs = self._costs(slots, room[:, slots], amounts)
            goes = costs == 0
            free[places] = goes
            room[:, slots[goes]] -= amounts[:, goes]
            affordable = places[~goes & (costs <= spare)]
            event = min(event, int(affordable.min(initial=event)))
        free[event:] = False
        self._put_back(entries.some(free))
        return first + event

    def _one_by_one(self, first: int) -> None:
        entries, room = self._entries.after(first), self._room
        bounds = np.searchsorted(entries.units, np.arange(first, len(self.back) + 1)).tolist()
        for unit, (start, end) in enumerate(pairwise(bounds), start=first):
            slots, amounts = entries.slots[start:end], entries.amounts[:, start:end]
            cost = int(self._costs(slots, room[:, slots], amounts).sum())
            if cost <= self._spare:
                self._spare -= cost
                room[:, slots] -= amounts
                self.back[unit] = True

    def _put_back(self, entries: Entries) -> None:
        for row, amounts in zip(self._room, entries.amounts, strict=True):
            np.subtract.at(row, entries.slots, amounts)
        self.back[entries.units] = True

    def _costs(self, slots: Slots, room: IntArray, amounts: IntArray) -> IntArray:
        """[n] how many places are lost where these amounts [r, n] are taken of this room [r, n] of these nodes [n]."""
        lost = self._holding.counts(room) - self._holding.counts(room - amounts)
        return np.where(self._hosts[slots], lost, 0)


def _node_by_node(slots: Slots) -> tuple[IntArray, IntArray, IntArray]:
    """Places of entries in the order of their nodes, and for each node where its own begin there, and how many they are."""
    order = np.argsort(slots, kind="stable")
    starts = np.flatnonzero(np.diff(slots[order], prepend=-1))
    return order, starts, np.diff(starts, append=len(slots))


def _turns(slots: Slots) -> Iterable[IntArray]:
    """Places of entries in turns: of every node its first, then of every node its second, and so on."""
    order, starts, sizes = _node_by_node(slots)
    turns = np.arange(len(slots)) - np.repeat(starts, sizes)
    by_turn = np.argsort(turns, kind="stable")
    ends = np.cumsum(np.bincount(turns))
    return np.split(order[by_turn], ends[:-1])
