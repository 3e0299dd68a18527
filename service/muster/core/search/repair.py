"""Repair by ejection: a pod without a node drives out the pods that are cheapest to move, which then look for a node.

Types that failed often become dear, so that the same pods do not drive each other out for ever. Nothing is proved
here.
"""

from __future__ import annotations

from math import inf

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search.chance import Chance
from muster.core.search.greedy import Selection
from muster.core.search.question import Question

_MOST_NODES = 24
"""So many nodes are looked at for an ejection."""
_CHECKS_A_STEP = 5
_Ejection = tuple[float, int, tuple[tuple[int, int], ...]]
"""Cost, node, and how many pods of which types leave it."""


class Repair:
    """A packing under repair: `counts` [K, n] and the selection's homeless pods [K]; both given arrays are copied."""

    def __init__(
        self, question: Question, selection: Selection, counts: IntArray, homeless: IntArray, chance: Chance
    ) -> None:
        self._question = question
        self._chance = chance
        self._demand: list[list[int]] = question.demand.tolist()
        self._asked = [[r for r, amount in enumerate(amounts) if amount] for amounts in self._demand]
        self._room: list[list[int]] = (question.room - counts.T @ question.demand).tolist()
        self._held: list[list[int]] = counts.T.tolist()
        self._fits: list[list[int]] = question.fits.T.tolist()
        self._hosts = [np.flatnonzero(row).tolist() for row in question.fits]
        self._open = [dict.fromkeys(hosts) for hosts in self._hosts]
        self._homeless: list[int] = homeless.tolist()
        total = np.maximum(question.room.sum(axis=0), 1)
        self._size: list[float] = ((question.demand / total).sum(axis=1) + 1e-9).tolist()
        self._failures = [1.0] * len(self._size)
        self._chosen = {
            leaf.leaf: dict.fromkeys((kind for kind, _ in leaf.supply), 0) for leaf in question.leaves
        }
        for leaf, kind, number in selection:
            self._chosen[leaf][kind] += number
        self._checks = 0

    @property
    def stuck(self) -> list[int]:
        """Types that have homeless pods."""
        return [kind for kind, number in enumerate(self._homeless) if number]

    @property
    def steps(self) -> int:
        """Steps of the budget that the repair has cost so far."""
        return self._checks // _CHECKS_A_STEP

    def run(self, moves: int) -> bool:
        """Move up to so many homeless pods; whether all have a node now."""
        for _ in range(moves):
            if not any(self._homeless):
                return True
            kind = max(self.stuck, key=lambda item: (self._failures[item], self._size[item]))
            self._checks += 2 * _CHECKS_A_STEP
            if not (self._settle(kind) or self._exchange(kind)):
                self._failures[kind] += 1
                if not self._eject_for(kind):
                    return False
        return not any(self._homeless)

    def result(self) -> tuple[Selection, IntArray]:
        """The selection as it is now, and where its pods are: [K, n]."""
        selection = [
            (leaf, kind, number)
            for leaf, chosen in self._chosen.items()
            for kind, number in chosen.items()
            if number
        ]
        return selection, np.array(self._held, dtype=np.int64).T

    def _settle(self, kind: int) -> bool:
        """Put a homeless pod where it leaves the least."""
        best, least = -1, inf
        for node in list(self._open[kind]):
            if not self._has_room(kind, node):
                del self._open[kind][node]
                continue
            rest = sum(self._room[node])
            if rest < least:
                best, least = node, rest
        if best < 0:
            return False
        self._put(kind, best, 1)
        return True

    def _exchange(self, kind: int) -> bool:
        """Let a leaf take a pod of another type that has a node instead."""
        for leaf in self._question.leaves:
            chosen = self._chosen[leaf.leaf]
            if not chosen.get(kind):
                continue
            for other, number in leaf.supply:
                if other != kind and chosen[other] < number:
                    self._homeless[other] += 1
                    if self._settle(other):
                        chosen[kind] -= 1
                        chosen[other] += 1
                        self._homeless[kind] -= 1
                        return True
                    self._homeless[other] -= 1
        return False

    def _eject_for(self, kind: int) -> bool:
        around = self._chance.around_one
        costs = [
            failures * size * around(0.1) for failures, size in zip(self._failures, self._size, strict=True)
        ]
        best: _Ejection = (inf, -1, ())
        for node in self._nearby(kind):
            if self._held[node][kind] < self._fits[node][kind]:
                best = self._cheaper_ejection(kind, node, costs, best)
        _, node, leaving = best
        if node < 0:
            return False
        for other, number in leaving:
            self._put(other, node, -number)
        self._put(kind, node, 1)
        return True

    def _nearby(self, kind: int) -> list[int]:
        """Some nodes that host the type, from a place that changes, since the first of equal ones is taken."""
        hosts = self._hosts[kind]
        start = self._chance.below(len(hosts))
        return (hosts[start : start + _MOST_NODES] + hosts[:start])[:_MOST_NODES]

    def _cheaper_ejection(self, kind: int, node: int, costs: list[float], best: _Ejection) -> _Ejection:
        """The pods of one or two other types whose leaving lets one of the type in, if they cost less than the best."""
        room, demand = self._room[node], self._demand[kind]
        lacking = [(r, demand[r] - room[r]) for r in self._asked[kind] if demand[r] > room[r]]
        pairing: list[int] = []
        for other, held in enumerate(self._held[node]):
            if not held or other == kind or costs[other] >= best[0]:
                continue
            number = self._leaving(other, lacking)
            if 0 < number <= held and number * costs[other] < best[0]:
                best = number * costs[other], node, ((other, number),)
            if number != 1:
                pairing.append(other)
        for place, other in enumerate(pairing):
            for second in pairing[place + 1 :]:
                self._checks += 1
                cost = costs[other] + costs[second]
                if cost < best[0] and self._give(other, second, lacking):
                    best = cost, node, ((other, 1), (second, 1))
        self._checks += 2 + len(pairing)
        return best

    def _leaving(self, other: int, lacking: list[tuple[int, int]]) -> int:
        """How many of the other type must leave by themselves; 0 if that does not help."""
        number = 1
        demand = self._demand[other]
        for resource, amount in lacking:
            if not demand[resource]:
                return 0
            number = max(number, -(-amount // demand[resource]))
        return number

    def _give(self, first: int, second: int, lacking: list[tuple[int, int]]) -> bool:
        """Whether one pod of each gives what is lacking."""
        one, other = self._demand[first], self._demand[second]
        return all(one[resource] + other[resource] >= amount for resource, amount in lacking)

    def _has_room(self, kind: int, node: int) -> bool:
        self._checks += 1
        room, demand = self._room[node], self._demand[kind]
        if self._held[node][kind] >= self._fits[node][kind]:
            return False
        return all(room[resource] >= demand[resource] for resource in self._asked[kind])

    def _put(self, kind: int, node: int, number: int) -> None:
        """Homeless pods of a type find a node, or (negative number) lose it."""
        self._homeless[kind] -= number
        self._held[node][kind] += number
        room, demand = self._room[node], self._demand[kind]
        for resource in self._asked[kind]:
            room[resource] -= number * demand[resource]
        if number < 0:
            for other, hosts in enumerate(self._open):
                if self._fits[node][other]:
                    hosts[node] = None
