"""Counting bounds: the least that a question takes of some nodes against the room that they have.

For a set of nodes and a weight of resources, only pods that can run nowhere else count, and of those the cheapest
selection; if even that is more than the room, there is no packing. One pass of arrays over all sets and weights.
"""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.search import steps
from muster.core.search.question import GroupWant, Question, Want
from muster.core.search.steps import Budget

_MIXES = ((1, 1), (1, 2), (2, 1))
_MOST_SETS = 32
_SCALE_BITS = 18
"""Mixed weights give the whole room of each resource about this many bits twice, so that sums fit in 64."""
_MOST_CELLS = 2**21
"""Larger passes are made in parts."""


class Cuts:
    """What no packing of a question exceeds: `cost` [Q, K] of each pod, and the `room` [Q] for all of them.

    Cuts that even the dearest selection respects are left out.
    """

    def __init__(self, question: Question, budget: Budget) -> None:
        self._question = question
        kinds, nodes = question.fits.shape
        if not question.demand.shape[1]:
            self.cost = np.zeros((0, kinds), dtype=np.int64)
            self.room = np.zeros(0, dtype=np.int64)
            return
        sets = _node_sets(question)
        budget.spend(steps.cutting(kinds, len(sets), nodes))
        weights = _weights(question)
        inside = _inside(question.hosts, sets)
        cost = np.where(inside[:, None, :], (question.demand @ weights).T, 0).reshape(-1, kinds)
        room = ((sets.astype(np.int64) @ question.room) @ weights).reshape(-1)
        may_exceed = cost @ question.most > room
        self.cost, self.room = cost[may_exceed], room[may_exceed]

    def rule_out(self, budget: Budget) -> bool:
        """Whether the least that the question takes proves that it has no packing."""
        leaves = _Leaves(self._question)
        budget.spend(steps.counting(*leaves.numbers.shape, len(self.cost)))
        part = max(1, _MOST_CELLS // max(1, leaves.numbers.size))
        return any(
            (
                leaves.least(self._question.root, self.cost[start : start + part])
                > self.room[start : start + part]
            ).any()
            for start in range(0, len(self.cost), part)
        )

    def exceeded(self, counts: IntArray) -> BoolArray:
        """For each row of counts [V, K], whether so many pods of each type are proved not to fit."""
        exceeded: BoolArray = np.logical_or.reduce(counts @ self.cost.T > self.room, axis=1)
        return exceeded


def _node_sets(question: Question) -> BoolArray:
    """[Q, n] distinct host sets of the types, unions of two, and all nodes."""
    hosts = question.hosts
    distinct = list({row.tobytes(): row for row in hosts}.values())[:_MOST_SETS]
    unions = (first | second for first, second in combinations(distinct, 2))
    sets = [*distinct, *islice(unions, _MOST_SETS), np.ones(hosts.shape[1], dtype=np.bool_)]
    return np.array(list({row.tobytes(): row for row in sets}.values()))


def _inside(hosts: BoolArray, sets: BoolArray) -> BoolArray:
    """[Q, K] whether no node outside the set can host the type."""
    bits, outside = np.packbits(hosts, axis=1), np.packbits(~sets, axis=1)
    return np.array([~(bits & row).any(axis=1) for row in outside])


def _weights(question: Question) -> IntArray:
    """[R, W] each resource by itself, and mixes of two, weighed by what there is of them."""
    total: list[int] = np.maximum(question.room.sum(axis=0), 1).tolist()
    largest = max(total)
    # The room of the largest resource counts 2 to the power of twice the scale at most, that of others as much.
    divisor = 1 + (largest >> _SCALE_BITS)
    even = [max(1, (largest << _SCALE_BITS) // amount // divisor) for amount in total]
    columns = np.eye(len(total), dtype=np.int64).tolist()
    for first in range(len(total)):
        for second in range(first + 1, len(total)):
            for one, other in _MIXES:
                column = [0] * len(total)
                column[first], column[second] = one * even[first], other * even[second]
                columns.append(column)
    return np.array(columns, dtype=np.int64).T


class _Leaves:
    """The distinct leaves of a question: `needs` [L] and `numbers` [L, K], how many pods of each type."""

    def __init__(self, question: Question) -> None:
        wants = {(leaf.need, leaf.supply): leaf for leaf in question.leaves}
        self._row = {key: row for row, key in enumerate(wants)}
        self.needs = np.array([leaf.need for leaf in wants.values()], dtype=np.int64)
        self.numbers = np.zeros((len(wants), len(question.types)), dtype=np.int64)
        for row, leaf in enumerate(wants.values()):
            for kind, number in leaf.supply:
                self.numbers[row, kind] = number

    def least(self, root: GroupWant, cost: IntArray) -> IntArray:
        """[Q] the least cost of the root under each row of costs [Q, K]."""
        order = np.argsort(cost, axis=1)
        available = self.numbers[:, order]
        missing = self.needs[:, None, None] - np.cumsum(available, axis=2) + available
        taken = np.minimum(np.maximum(missing, 0), available)
        ordered = cost[np.arange(len(cost))[:, None], order]
        return self._below(root, (taken * ordered).sum(axis=2))

    def _below(self, want: Want, leaves: IntArray) -> IntArray:
        if not isinstance(want, GroupWant):
            least: IntArray = leaves[self._row[want.need, want.supply]]
            return least
        below = np.array([self._below(child, leaves) for child in want.children])
        if want.need < len(below):
            below = np.sort(below, axis=0)[: want.need]
        total: IntArray = below.sum(axis=0)
        return total
