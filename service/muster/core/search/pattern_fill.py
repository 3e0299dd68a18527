"""Fills node after node with the dearest pods that still want one: each node gets one of its fullest patterns.

Where next to nothing may be spared, placing pod by pod leaves every node with a rest that nothing uses. A node's
fullest patterns are few, so the one worth most under prices is found at once; the pods that stay over at the end are
for repair, and their types are dearer in the next try.
"""

from __future__ import annotations

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search import steps
from muster.core.search.chance import Chance
from muster.core.search.exact_counts import fullest_patterns, grid_size
from muster.core.search.greedy import Selection, Tuning
from muster.core.search.question import FloatArray, Question
from muster.core.search.steps import Budget

_MOST_VECTORS = 1_500
"""Count vectors of one node; where there are more, only fewer pods of a type are considered, then fewer types."""
_MOST_PATTERNS = 400
_LARGE_FIRST = 1.15
"""The power of a pod's size that its price goes by: small pods find room at the end too."""
_TIGHT = 4
"""The power of how much of a resource is wanted that its weight goes by."""


class PatternFill:
    """The fullest patterns of a question's nodes. `steps` is what one filling costs; None if patterns are too many."""

    def __init__(self, question: Question, budget: Budget) -> None:
        self._question = question
        self._patterns: list[IntArray] = []
        self.steps: int | None = None
        most = np.minimum(question.fits, question.most[:, None])
        known: dict[bytes, IntArray] = {}
        for node in range(question.fits.shape[1]):
            key = most[:, node].tobytes() + question.room[node].tobytes()
            patterns = known.get(key)
            if patterns is None:
                patterns = self._patterns_of(most[:, node], question.room[node], budget)
                if patterns is None or budget.left <= 0:
                    return
                known[key] = patterns
            self._patterns.append(patterns)
        self.steps = steps.filling(len(self._patterns), sum(pattern.size for pattern in self._patterns))

    def spread(self, selection: Selection, tuning: Tuning, chance: Chance) -> tuple[IntArray, IntArray]:
        """[K, n] where the selected pods go, and [K] how many found no node."""
        question = self._question
        counts = np.zeros_like(question.fits)
        left = np.zeros(len(counts), dtype=np.int64)
        for _, kind, number in selection:
            left[kind] += number
        price = self._prices(left, tuning)
        for node in self._least_choice_first(chance):
            pods = np.minimum(self._patterns[node], left)
            chosen = pods[(pods * price).sum(axis=1).argmax()]
            counts[:, node] = chosen
            left -= chosen
        return counts, left

    def _patterns_of(self, most: IntArray, room: IntArray, budget: Budget) -> IntArray | None:
        considered = _limited(most)
        kinds = int(np.count_nonzero(considered))
        budget.spend(steps.finding_patterns(kinds, grid_size(considered)))
        found = fullest_patterns(self._question.demand, considered, room)
        return None if found is None or len(found) > _MOST_PATTERNS else np.array(found, dtype=np.int64)

    def _prices(self, wanted: IntArray, tuning: Tuning) -> FloatArray:
        """[K] what a pod takes, the more so of what there is least to spare."""
        question = self._question
        tightness = np.minimum(wanted @ question.demand / question.total, 1.0) ** _TIGHT
        size = question.demand @ (tightness * tuning.resources / question.total) + 1e-9
        price: FloatArray = size**_LARGE_FIRST * tuning.types
        return price

    def _least_choice_first(self, chance: Chance) -> list[int]:
        choice = [len(patterns) * chance.around_one(0.5) for patterns in self._patterns]
        return sorted(range(len(choice)), key=choice.__getitem__)


def _limited(most: IntArray) -> IntArray:
    """[K] no more than `most`, and few enough for the patterns to be found in a moment."""
    limited = most.copy()
    while grid_size(limited) > _MOST_VECTORS:
        limited[int(limited.argmax())] -= 1
    return limited
