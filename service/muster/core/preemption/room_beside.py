"""Putting units back beside a placement that stays, where amounts are all that counts (semantics 5.6, 4).

Units are asked one after the other, and one that went back takes room from those that follow. Most answers need not
wait for their turn: there is room for a unit even if all before it go back, or none even if of them only those do of
which that is known. So they come for all units at once, in a few rounds; what is open then is asked in turn.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import sub

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement

_ROUNDS = 8
_PLENTY = 2**62


def fit_beside(ground: Ground, placement: Placement, evicted: BoolArray, order: IntArray) -> BoolArray:
    """For each unit of the order, whether there is room for it with those before it, if all evicted ones [U] are away."""
    usage, free = ground.usage, ground.snapshot.nodes.free
    used, load = placement.loads(len(free))
    room = free[:, used] + usage.freed(evicted)[:, used] - load
    # A resource that no pod of the preemptor on a node asks for is never short there.
    left = np.where(load > 0, room, _PLENTY)[usage.rows]
    turns = np.full(len(evicted), -1, dtype=np.int64)
    turns[order] = np.arange(len(order))
    places = np.full(usage.size, -1, dtype=np.int64)
    places[used] = np.arange(len(used))
    pods = np.flatnonzero((places[usage.slots] >= 0) & (turns[usage.owners] >= 0))
    turn, place = turns[usage.owners[pods]], places[usage.slots[pods]]
    by_place = np.argsort(place * len(order) + turn)
    turn, place = turn[by_place], place[by_place]
    return _Crowd(turn, place, usage.amounts[:, pods[by_place]], left[:, place]).fit(len(order))


@dataclass(slots=True, eq=False)
class _Crowd:
    """n pods of units that are to go back, place by place, in each in the order of their turns.

    turns: [n] of their units. places: [n]. amounts: [r, n] what each takes. left: [r, n] the room of its place.
    """

    turns: IntArray
    places: IntArray
    amounts: IntArray
    left: IntArray

    def fit(self, units: int) -> BoolArray:
        """[units] by turn, whether the unit fits with those before it."""
        goes, stays = np.zeros(units, dtype=np.bool_), np.zeros(units, dtype=np.bool_)
        for _ in range(_ROUNDS):
            short = np.zeros(units, dtype=np.bool_)
            short[self.turns[(self._up_to(self.amounts) > self.left).any(axis=0)]] = True
            goes |= ~short & ~stays
            if not short.any():
                return goes
            known = goes[self.turns]
            least = self._up_to(self.amounts * known) + self.amounts * ~known
            stays[self.turns[(least > self.left).any(axis=0)]] = True
            self._leave_out(stays[self.turns])
        return self._in_turn(goes)

    def _up_to(self, amounts: IntArray) -> IntArray:
        """[r, n] what the pods of a place take up to and with each one."""
        sums = np.cumsum(amounts, axis=1)
        firsts = np.searchsorted(self.places, self.places)
        taken: IntArray = sums - (sums - amounts)[:, firsts]
        return taken

    def _leave_out(self, pods: BoolArray) -> None:
        kept = np.flatnonzero(~pods)
        self.turns, self.places = self.turns[kept], self.places[kept]
        self.amounts, self.left = self.amounts[:, kept], self.left[:, kept]

    def _in_turn(self, goes: BoolArray) -> BoolArray:
        """The same for units of which some are known to go back, one by one."""
        pods_of: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        places, pods = self.places.tolist(), self.amounts.T.tolist()
        for turn, place, amounts in zip(self.turns.tolist(), places, pods, strict=True):
            pods_of[turn].append((place, amounts))
        left: dict[int, list[int]] = dict(zip(places, self.left.T.tolist(), strict=True))
        for turn, takes in sorted(pods_of.items()):
            after: dict[int, list[int]] = {}
            for place, amounts in takes:
                after[place] = list(map(sub, after.get(place, left[place]), amounts))
            goes[turn] = all(min(rest, default=0) >= 0 for rest in after.values())
            if goes[turn]:
                left |= after
        return goes
