"""All selections that a question leaves open, if they are few: each then is a question of its own, with fewer types.

Selections that come to the same count of every type are one. What counting rules out is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import numpy as np

from muster.core.search.bounds import Cuts
from muster.core.search.count_sets import Counts
from muster.core.search.greedy import Selection
from muster.core.search.question import GroupWant, LeafWant, Question, Want

_ByCounts = dict[Counts, Selection]


class _TooManyError(Exception):
    """More selections than were asked for."""


def open_questions(question: Question, cuts: Cuts, most: int) -> list[Question] | None:
    """A question for each selection that may fit, lowest cost of counts first; None if there are more than `most`.

    If there are none, the question has no packing.
    """
    try:
        found = _Selections(question, most).below(question.root)
    except _TooManyError:
        return None
    counts = np.array(list(found), dtype=np.int64).reshape(len(found), len(question.types))
    left = np.flatnonzero(~cuts.exceeded(counts))
    share = (question.demand / np.maximum(question.room.sum(axis=0), 1)).sum(axis=1)
    order = left[np.argsort(counts[left] @ share, kind="stable")]
    selections = list(found.values())
    return [settled(question, selections[place]) for place in order.tolist()]


def settled(question: Question, selection: Selection) -> Question:
    """The question whether exactly the selection fits."""
    kinds = sorted({kind for _, kind, _ in selection})
    local = {kind: place for place, kind in enumerate(kinds)}
    supply: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for leaf, kind, number in selection:
        supply[leaf].append((local[kind], number))
    leaves = tuple(
        LeafWant(leaf, sum(number for _, number in items), tuple(items)) for leaf, items in supply.items()
    )
    most = np.zeros(len(kinds), dtype=np.int64)
    for _, kind, number in selection:
        most[local[kind]] += number
    return Question(
        root=GroupWant(len(leaves), leaves),
        leaves=leaves,
        demand=question.demand[kinds],
        fits=question.fits[kinds],
        room=question.room,
        most=most,
        types=tuple(question.types[kind] for kind in kinds),
        nodes=question.nodes,
    )


class _Selections:
    """Selections of a want by counts; stops as soon as there are too many."""

    def __init__(self, question: Question, most: int) -> None:
        self._kinds = len(question.types)
        self._capacity: list[int] = question.fits.sum(axis=1).tolist()
        self._room: list[int] = question.room.sum(axis=0).tolist()
        self._demand: list[list[int]] = question.demand.T.tolist()
        self._most = most
        self._visits = 0

    def below(self, want: Want) -> _ByCounts:
        return self._of_leaf(want) if isinstance(want, LeafWant) else self._of_group(want)

    def _of_leaf(self, leaf: LeafWant) -> _ByCounts:
        later = sum(number for _, number in leaf.supply)
        partial: list[tuple[Selection, int]] = [([], leaf.need)]
        for kind, number in leaf.supply:
            later -= number
            partial = [
                ([*chosen, (leaf.leaf, kind, taken)] if taken else chosen, missing - taken)
                for chosen, missing in partial
                for taken in range(max(0, missing - later), min(missing, number) + 1)
            ]
            self._visit(len(partial))
        return self._kept((self._counts(chosen), chosen) for chosen, _ in partial)

    def _of_group(self, group: GroupWant) -> _ByCounts:
        by_number: list[_ByCounts] = [{(0,) * self._kinds: []}]
        for child in group.children:
            parts = self.below(child)
            longer = [dict(sums) for sums in by_number] + [{}]
            for number, sums in enumerate(by_number):
                self._visit(len(sums) * len(parts))
                joined = (
                    (tuple(map(sum, zip(before, part, strict=True))), chosen + more)
                    for (before, chosen), (part, more) in product(sums.items(), parts.items())
                )
                for counts, selection in self._kept(joined).items():
                    longer[number + 1].setdefault(counts, selection)
            by_number = longer[: group.need + 1]
        return by_number[group.need] if group.need < len(by_number) else {}

    def _kept(self, selections: Iterable[tuple[Counts, Selection]]) -> _ByCounts:
        kept: _ByCounts = {}
        for counts, selection in selections:
            if counts not in kept and self._may_fit(counts):
                kept[counts] = selection
                if len(kept) > self._most:
                    raise _TooManyError
        return kept

    def _may_fit(self, counts: Counts) -> bool:
        if any(count > most for count, most in zip(counts, self._capacity, strict=True)):
            return False
        return all(
            sum(map(int.__mul__, counts, demand)) <= room
            for demand, room in zip(self._demand, self._room, strict=True)
        )

    def _visit(self, number: int) -> None:
        self._visits += number
        if self._visits > 8 * self._most:
            raise _TooManyError

    def _counts(self, selection: Selection) -> Counts:
        counts = [0] * self._kinds
        for _, kind, number in selection:
            counts[kind] += number
        return tuple(counts)
