"""Counting bounds: the least that a question takes of some nodes against the room that they have.

For a set of nodes and a weight of resources, only pods that can run nowhere else count, and of those the cheapest
selection; if even that is more than the room, there is no packing. One pass of arrays over all sets and weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.search.question import GroupWant, LeafWant, Question, Want

_MIXES = ((1, 1), (1, 2), (2, 1))
_MOST_SETS = 64
_SCALE = 2**20
"""Weights give the whole room of each resource about this size, so that sums stay exact in 64 bits."""


def ruled_out(question: Question) -> bool:
    """Whether counting alone proves that the question has no packing."""
    sets = _node_sets(question)
    inside = ~(question.hosts[None, :, :] & ~sets[:, None, :]).any(axis=2)
    room = sets.astype(np.int64) @ question.room
    for weights in _weights(question):
        cost = np.where(inside, question.demand @ weights, 0)
        if (_Least(cost).of(question.root) > room @ weights).any():
            return True
    return False


def _node_sets(question: Question) -> BoolArray:
    """[Q, n] distinct host sets of the types, and all nodes."""
    hosts = question.hosts
    distinct = list({row.tobytes(): row for row in hosts}.values())[:_MOST_SETS]
    unions = [first | second for place, first in enumerate(distinct) for second in distinct[place + 1 :]]
    sets = [*distinct, *unions[:_MOST_SETS], np.ones(hosts.shape[1], dtype=np.bool_)]
    return np.array(list({row.tobytes(): row for row in sets}.values()))


def _weights(question: Question) -> Iterator[IntArray]:
    """Each resource by itself, and mixes of two, weighed by what there is of them."""
    resources = question.demand.shape[1]
    if not resources:
        return
    total = np.maximum(question.room.sum(axis=0), 1)
    unit = np.eye(resources, dtype=np.int64)
    yield from unit
    even = np.maximum(_SCALE * int(total.max()) // total // int(total.max() // _SCALE + 1), 1)
    for first in range(resources):
        for second in range(first + 1, resources):
            for one, other in _MIXES:
                yield (one * unit[first] + other * unit[second]) * even


class _Least:
    """The least cost of a want under [Q, K] costs of types, for all Q at once; equal leaves are asked once."""

    def __init__(self, cost: IntArray) -> None:
        self._cost = cost
        self._known: dict[tuple[int, tuple[tuple[int, int], ...]], IntArray] = {}

    def of(self, want: Want) -> IntArray:
        if isinstance(want, GroupWant):
            below = np.array([self.of(child) for child in want.children])
            if want.need < len(below):
                below = np.sort(below, axis=0)[: want.need]
            least: IntArray = below.sum(axis=0)
            return least
        key = want.need, want.supply
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._of_leaf(want)
        return known

    def _of_leaf(self, want: LeafWant) -> IntArray:
        kinds = [kind for kind, _ in want.supply]
        cost = self._cost[:, kinds]
        if len(kinds) == 1:
            single: IntArray = cost[:, 0] * want.need
            return single
        numbers = np.array([number for _, number in want.supply])
        order = np.argsort(cost, axis=1, kind="stable")
        available = numbers[order]
        taken = np.clip(want.need - (np.cumsum(available, axis=1) - available), 0, available)
        least: IntArray = (np.take_along_axis(cost, order, axis=1) * taken).sum(axis=1)
        return least
