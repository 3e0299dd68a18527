"""Putting units back beside a placement whose pods may step aside, where amounts are all that counts (semantics 5.6, 4).

A unit goes back where it ran. If that leaves a node of the preemptor short, pods of that node look for another node
of their domain, with room that nobody needs if there is any; if they find none, all is as before.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.search.packing import Budget

_HOSTS_A_STEP = 400


class Board:
    """A placement among the units that are still there; `evicted` units are away until put back."""

    def __init__(self, ground: Ground, placement: Placement, evicted: BoolArray) -> None:
        self._usage = ground.usage
        self._kinds = placement.kind_table
        self._ids = placement.ids
        self._kind_of: list[int] = placement.kinds.tolist()
        self._where: list[int] = placement.slots.tolist()
        self._column = placement.kinds
        self._load = placement.load(*ground.snapshot.nodes.free.shape)
        self._undecided = self._usage.freed(evicted).copy()
        self._free = ground.snapshot.nodes.free + self._undecided - self._load
        self._budget: Budget = ground.budget
        self._pods_on: dict[int, list[int]] = defaultdict(list)
        for pod, slot in enumerate(self._where):
            self._pods_on[slot].append(pod)

    @property
    def placement(self) -> Placement:
        """Where the pods are now."""
        return Placement(self._ids, self._column, np.array(self._where, dtype=np.intp), self._kinds)

    def settle(self, unit: int) -> None:
        """The unit's fate is sealed: from now on its room is free for good, or taken."""
        slots, amounts = self._entries(unit)
        self._undecided[:, slots] -= amounts

    def put_back(self, unit: int) -> bool:
        """Put a unit back though pods of the preemptor must step aside; False, and nothing changed, if they cannot."""
        slots, amounts = self._entries(unit)
        self._free[:, slots] -= amounts
        moved: list[tuple[int, int]] = []
        for slot in slots[self._short(slots).any(axis=0)].tolist():
            if not self._relieve(slot, moved):
                for pod, source in reversed(moved):
                    self._move(pod, source)
                self._free[:, slots] += amounts
                return False
        return True

    def takes(self, unit: int) -> bool:
        """Put a unit back if there is room for it as pods stand."""
        slots, amounts = self._entries(unit)
        self._free[:, slots] -= amounts
        if not self._short(slots).any():
            return True
        self._free[:, slots] += amounts
        return False

    def _entries(self, unit: int) -> tuple[Slots, IntArray]:
        taken = self._usage.by_unit
        first, end = int(taken.firsts[unit]), int(taken.firsts[unit + 1])
        return taken.slots[first:end], taken.amounts[:, first:end]

    def _short(self, slots: Slots) -> BoolArray:
        """[R, n] what is lacking on nodes of the preemptor; a resource that none of its pods there asks for is not."""
        short: BoolArray = (self._free[:, slots] < 0) & (self._load[:, slots] > 0)
        return short

    def _relieve(self, slot: int, moved: list[tuple[int, int]]) -> bool:
        """Move pods away from a slot until nothing is lacking; moves are noted as pod and former slot."""
        at = np.array([slot], dtype=np.intp)
        while True:
            short = self._short(at)[:, 0]
            if not short.any():
                return True
            pod = self._to_move(slot, short)
            target = self._target(pod, slot)
            if target is None:
                return False
            self._move(pod, target)
            moved.append((pod, slot))

    def _to_move(self, slot: int, short: BoolArray) -> int:
        """The smallest pod that gives all that is lacking, else the one that gives most."""
        lacking = -self._free[short, slot]

        def rank(pod: int) -> tuple[bool, float, int]:
            gives = self._kinds[self._kind_of[pod]].requests[short]
            share = float((np.minimum(gives, lacking) / lacking).sum())
            enough = bool((gives >= lacking).all())
            return not enough, float((gives / lacking).sum()) if enough else -share, pod

        return min(self._pods_on[slot], key=rank)

    def _target(self, pod: int, source: int) -> int | None:
        """Another slot for the pod: the one where it takes least of the room of units that may still come back."""
        kind = self._kinds[self._kind_of[pod]]
        rows = np.flatnonzero(kind.requests)
        self._budget.spend(1 + len(kind.hosts) // _HOSTS_A_STEP)
        asked = kind.requests[rows][:, None]
        fits = kind.hosts[(self._free[np.ix_(rows, kind.hosts)] >= asked).all(axis=0)]
        fits = fits[fits != source]
        if not len(fits):
            return None
        where = np.ix_(rows, fits)
        taken = np.maximum(asked - np.maximum(self._free[where] - self._undecided[where], 0), 0) / asked
        return int(fits[taken.sum(axis=0).argmin()])

    def _move(self, pod: int, target: int) -> None:
        source = self._where[pod]
        requests = self._kinds[self._kind_of[pod]].requests
        self._free[:, source] += requests
        self._load[:, source] -= requests
        self._free[:, target] -= requests
        self._load[:, target] += requests
        self._pods_on[source].remove(pod)
        self._pods_on[target].append(pod)
        self._where[pod] = target
