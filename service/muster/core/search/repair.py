"""Repair by ejection: a pod without a node drives out the pods that are cheapest to move, which then look for a node.

Types that failed often become dear, so that the same pods do not drive each other out for ever. Nothing is proved
here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search.chance import Chance
from muster.core.search.greedy import Selection
from muster.core.search.question import Question

_MOST_NODES = 24
"""So many nodes are looked at for an ejection."""
_CHECKS_A_STEP = 10
_NODES_A_CHECK = 60
_OUT_OF_REACH = 2**31
"""More pods than leave a node."""
_Ejection = tuple[float, int, tuple[tuple[int, int], ...]]
"""Cost, node, and how many pods of which types leave it."""
_Value = TypeVar("_Value")


class _Lazily(dict[int, _Value]):
    """What is known by number, made when it is asked for: most nodes of a large question never are."""

    def __init__(self, make: Callable[[int], _Value]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: int) -> _Value:
        made = self[key] = self._make(key)
        return made


class Repair:
    """A packing under repair: `counts` [K, n] and the selection's homeless pods [K], which stay as they are."""

    def __init__(
        self, question: Question, selection: Selection, counts: IntArray, homeless: IntArray, chance: Chance
    ) -> None:
        self._question = question
        self._chance = chance
        self._counts = counts
        self._rest = question.room - counts.T @ question.demand
        self._demand: list[list[int]] = question.demand.tolist()
        self._asked = [
            [(r, amount) for r, amount in enumerate(amounts) if amount] for amounts in self._demand
        ]
        self._room = _Lazily[list[int]](lambda node: self._rest[node].tolist())
        self._fits = _Lazily[list[int]](lambda node: question.fits[:, node].tolist())
        self._held = _Lazily[dict[int, int]](self._held_before)
        self._hosts = _Lazily[list[int]](lambda kind: np.flatnonzero(question.fits[kind]).tolist())
        self._open = _Lazily[dict[int, None]](self._open_nodes)
        self._homeless = {kind: int(homeless[kind]) for kind in np.flatnonzero(homeless).tolist()}
        self._size: list[float] = ((question.demand / question.total).sum(axis=1) + 1e-9).tolist()
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
        return sorted(self._homeless)

    @property
    def steps(self) -> int:
        """Steps of the budget that the repair has cost so far."""
        return self._checks // _CHECKS_A_STEP

    def run(self, moves: int, most: int) -> bool:
        """Move up to so many homeless pods, at the cost of no more than `most` steps; whether all have a node now."""
        for _ in range(moves):
            if not self._homeless or self.steps > most:
                break
            kind = max(self._homeless, key=lambda item: (self._failures[item], self._size[item], -item))
            self._checks += 2 * _CHECKS_A_STEP + len(self._homeless)
            if not (self._settle(kind) or self._exchange(kind)):
                self._failures[kind] += 1
                if not self._eject_for(kind):
                    break
        return not self._homeless

    def result(self) -> tuple[Selection, IntArray]:
        """The selection as it is now, and where its pods are: [K, n]."""
        selection = [
            (leaf, kind, number)
            for leaf, chosen in self._chosen.items()
            for kind, number in chosen.items()
            if number
        ]
        counts = self._counts.copy()
        for node, held in self._held.items():
            counts[:, node] = 0
            for kind, number in held.items():
                counts[kind, node] = number
        return selection, counts

    def _held_before(self, node: int) -> dict[int, int]:
        self._checks += _CHECKS_A_STEP
        here = self._counts[:, node]
        return {kind: int(here[kind]) for kind in np.flatnonzero(here).tolist()}

    def _open_nodes(self, kind: int) -> dict[int, None]:
        """Nodes that may have room for one more: those that had when the repair began, and those that changed."""
        question = self._question
        self._checks += 4 * _CHECKS_A_STEP + question.fits.shape[1] // _NODES_A_CHECK
        able = self._counts[kind] < question.fits[kind]
        able &= np.logical_and.reduce(self._rest >= question.demand[kind], axis=1)
        changed = [node for node in self._held if question.fits[kind, node]]
        return dict.fromkeys([*np.flatnonzero(able).tolist(), *changed])

    def _settle(self, kind: int) -> bool:
        """Put a homeless pod where it leaves the least."""
        best, least = -1, inf
        open_, asked, room = self._open[kind], self._asked[kind], self._room
        held, fits = self._held, self._fits
        self._checks += len(open_)
        for node in list(open_):
            here = room[node]
            if held[node].get(kind, 0) >= fits[node][kind] or any(here[r] < amount for r, amount in asked):
                del open_[node]
                continue
            rest = sum(here)
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
            self._checks += len(leaf.supply)
            for other, number in leaf.supply:
                if other != kind and chosen[other] < number:
                    self._become_homeless(other, 1)
                    if self._settle(other):
                        chosen[kind] -= 1
                        chosen[other] += 1
                        self._become_homeless(kind, -1)
                        return True
                    self._become_homeless(other, -1)
        return False

    def _eject_for(self, kind: int) -> bool:
        around = self._chance.around_one
        costs = _Lazily[float](lambda other: self._failures[other] * self._size[other] * around(0.1))
        best: _Ejection = (inf, -1, ())
        for node in self._nearby(kind):
            if self._held[node].get(kind, 0) < self._fits[node][kind]:
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

    def _cheaper_ejection(self, kind: int, node: int, costs: _Lazily[float], best: _Ejection) -> _Ejection:
        """The pods of one or two other types whose leaving lets one of the type in, if they cost less than the best."""
        room, here, demand = self._room[node], self._held[node], self._demand
        lacking = [(r, amount - room[r]) for r, amount in self._asked[kind] if amount > room[r]]
        self._checks += 2 + len(here)
        pairing: list[int] = []
        least = best[0]
        for other, held in here.items():
            cost = costs[other]
            if other == kind or cost >= least:
                continue
            number = 1
            for r, short in lacking:
                given = demand[other][r]
                if number * given < short:
                    number = -(-short // given) if given else _OUT_OF_REACH
            if number <= held and number * cost < least:
                least = number * cost
                best = least, node, ((other, number),)
            if number > 1:
                pairing.append(other)
        if len(pairing) > 1:
            return self._cheaper_pair(node, pairing, lacking, costs, best)
        return best

    def _cheaper_pair(
        self,
        node: int,
        pairing: list[int],
        lacking: list[tuple[int, int]],
        costs: _Lazily[float],
        best: _Ejection,
    ) -> _Ejection:
        """One pod each of two types, none of which is enough by itself."""
        demand, least = self._demand, best[0]
        self._checks += len(pairing) * (len(pairing) - 1) // 3
        for place, other in enumerate(pairing):
            cost, gives = costs[other], demand[other]
            for second in pairing[place + 1 :]:
                if cost + costs[second] >= least:
                    continue
                more = demand[second]
                if all(gives[r] + more[r] >= short for r, short in lacking):
                    least = cost + costs[second]
                    best = least, node, ((other, 1), (second, 1))
        return best

    def _put(self, kind: int, node: int, number: int) -> None:
        """Homeless pods of a type find a node, or (negative number) lose it."""
        self._become_homeless(kind, -number)
        held = self._held[node]
        held[kind] = held.get(kind, 0) + number
        if not held[kind]:
            del held[kind]
        room = self._room[node]
        for resource, amount in self._asked[kind]:
            room[resource] -= number * amount
        if number < 0:
            self._checks += 1 + len(self._open) // 4
            for other, hosts in self._open.items():
                if self._fits[node][other]:
                    hosts[node] = None

    def _become_homeless(self, kind: int, number: int) -> None:
        """So many more pods of the type, or less, are without a node."""
        homeless = self._homeless.get(kind, 0) + number
        if homeless:
            self._homeless[kind] = homeless
        else:
            self._homeless.pop(kind, None)
