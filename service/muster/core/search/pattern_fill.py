"""Fills node after node with the dearest pods that still want one: each node gets one of its fullest patterns.

Where next to nothing may be spared, placing pod by pod leaves every node with a rest that nothing uses. A node's
fullest patterns are few, so the one worth most under prices is found at once; the pods that stay over at the end are
for repair, and their types are dearer in the next try.
"""

from __future__ import annotations

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.search import steps
from muster.core.search.chance import Chance
from muster.core.search.exact_counts import fullest_patterns, grid_size
from muster.core.search.greedy import Selection, Tuning
from muster.core.search.question import FloatArray, Question
from muster.core.search.steps import Budget

_MOST_VECTORS = 1_500
_MOST_KINDS = 9
"""Where a node has more count vectors or types, fewer pods of a type and some of the types are considered."""
_MOST_PATTERNS = 400
_LARGE_FIRST = 1.15
"""The power of a pod's size that its price goes by: small pods find room at the end too."""
_SHARE = 3
"""The part of a budget that finding patterns may take: one in so many."""
_TIGHT = 4
"""The power of how much of a resource is wanted that its weight goes by."""


_Patterns = tuple[Slots, IntArray]
"""Types, and how many pods of each a pattern has: [P, those types]."""


class PatternFill:
    """The fullest patterns of a question's nodes, found if the budget pays for it.

    steps: what one filling costs; None if it cannot be done.
    """

    def __init__(self, question: Question, budget: Budget) -> None:
        self._question = question
        self._patterns: list[_Patterns] = []
        self.steps: int | None = None
        most = np.minimum(question.fits, question.most[:, None])
        keys = [fits.tobytes() + room.tobytes() for fits, room in zip(most.T, question.room, strict=True)]
        budget.spend(steps.telling_apart(len(keys)))
        if len(set(keys)) * steps.finding_patterns(_MOST_KINDS, 0) > budget.left // _SHARE:
            return
        known: dict[bytes, _Patterns] = {}
        for node, key in enumerate(keys):
            if key not in known:
                considered = _considered(most[:, node], node)
                kinds = np.flatnonzero(considered)
                budget.spend(steps.finding_patterns(len(kinds), grid_size(considered)))
                found = fullest_patterns(question.demand, considered, question.room[node])
                if found is None or len(found) > _MOST_PATTERNS or budget.left <= 0:
                    return
                known[key] = kinds, np.array(found, dtype=np.int64)[:, kinds]
            self._patterns.append(known[key])
        self.steps = steps.filling(len(keys), sum(counts.size for _, counts in self._patterns))

    def spread(self, selection: Selection, tuning: Tuning, chance: Chance) -> tuple[IntArray, IntArray]:
        """[K, n] where the selected pods go, and [K] how many found no node."""
        question = self._question
        counts = np.zeros_like(question.fits)
        left = np.zeros(len(counts), dtype=np.int64)
        for _, kind, number in selection:
            left[kind] += number
        price = self._prices(left, tuning)
        for node in self._least_choice_first(chance):
            kinds, patterns = self._patterns[node]
            pods = np.minimum(patterns, left[kinds])
            chosen = pods[(pods * price[kinds]).sum(axis=1).argmax()]
            counts[kinds, node] = chosen
            left[kinds] -= chosen
        return counts, left

    def _prices(self, wanted: IntArray, tuning: Tuning) -> FloatArray:
        """[K] what a pod takes, the more so of what there is least to spare."""
        question = self._question
        tightness = np.minimum(wanted @ question.demand / question.total, 1.0) ** _TIGHT
        size = question.demand @ (tightness * tuning.resources / question.total) + 1e-9
        price: FloatArray = size**_LARGE_FIRST * tuning.types
        return price

    def _least_choice_first(self, chance: Chance) -> list[int]:
        choice = [len(patterns) * chance.around_one(0.5) for _, patterns in self._patterns]
        return sorted(range(len(choice)), key=choice.__getitem__)


def _considered(most: IntArray, node: int) -> IntArray:
    """[K] no more than `most`, and few enough for the patterns to be found in a moment; other types on other nodes."""
    kinds = np.flatnonzero(most)
    stride = -(-len(kinds) // _MOST_KINDS)
    considered = np.zeros_like(most)
    considered[np.roll(kinds, -node)[::stride]] = most[np.roll(kinds, -node)[::stride]]
    limit = int(considered.max())
    while grid_size(considered) > _MOST_VECTORS:
        limit = min(limit - 1, 8)
        np.minimum(considered, limit, out=considered)
    return considered
