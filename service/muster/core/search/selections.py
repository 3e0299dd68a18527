"""All selections that a question leaves open, if they are few: each then is a question of its own, with fewer types.

Selections that come to the same count of every type are one. What counting rules out is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import numpy as np

from muster.core.search import steps
from muster.core.search.bounds import Cuts
from muster.core.search.count_sets import Counts
from muster.core.search.greedy import Selection
from muster.core.search.question import GroupWant, LeafWant, Question, Want
from muster.core.search.steps import Budget

_ByCounts = dict[Counts, Selection]
_MICROSECONDS_A_STEP = 75
"""In tenths."""


class _TooManyError(Exception):
    """More selections than were asked for, or more work than was allowed."""


def open_questions(question: Question, cuts: Cuts, most: int, budget: Budget) -> list[Question] | None:
    """A question for each selection that may fit, lowest cost of counts first.

    None if there are more than `most`, or if listing them would cost more than the budget. If there are none, the
    question has no packing.
    """
    listing = _Selections(question, most, budget.left)
    try:
        found = listing.below(question.root)
    except _TooManyError:
        return None
    finally:
        budget.spend(listing.steps)
    counts = np.array(list(found), dtype=np.int64).reshape(len(found), len(question.types))
    budget.spend(steps.comparing(len(found), len(question.types), len(cuts.cost)))
    left = np.flatnonzero(~cuts.exceeded(counts))
    budget.spend(len(left) * (4 + len(question.leaves) // 2))
    share = (question.demand / question.total).sum(axis=1)
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
    """Selections of a want by counts; stops as soon as there are too many, or they cost more than `allowed` steps."""

    def __init__(self, question: Question, most: int, allowed: int) -> None:
        kinds, resources = question.demand.shape
        self._kinds = kinds
        self._capacity: list[int] = question.capacity.tolist()
        self._room: list[int] = question.room.sum(axis=0).tolist()
        self._demand: list[list[int]] = question.demand.T.tolist()
        self._most = most
        self._weight = 12 + kinds * (resources + 2)
        self._allowed = allowed * _MICROSECONDS_A_STEP
        self._spent = 0

    @property
    def steps(self) -> int:
        """What it has cost so far."""
        return 1 + self._spent // _MICROSECONDS_A_STEP

    def below(self, want: Want) -> _ByCounts:
        return self._of_leaf(want) if isinstance(want, LeafWant) else self._of_group(want)

    def _of_leaf(self, leaf: LeafWant) -> _ByCounts:
        later = sum(number for _, number in leaf.supply)
        partial: list[tuple[Selection, int]] = [([], leaf.need)]
        for kind, number in leaf.supply:
            later -= number
            longer: list[tuple[Selection, int]] = []
            for chosen, missing in partial:
                numbers = range(max(0, missing - later), min(missing, number) + 1)
                self._spend(len(numbers) * (10 + len(chosen)))
                longer += [
                    ([*chosen, (leaf.leaf, kind, taken)] if taken else chosen, missing - taken)
                    for taken in numbers
                ]
            partial = longer
        return self._kept((self._counts(chosen), chosen) for chosen, _ in partial)

    def _of_group(self, group: GroupWant) -> _ByCounts:
        by_number: list[_ByCounts] = [{(0,) * self._kinds: []}]
        for child in group.children:
            parts = self.below(child)
            longer = [dict(sums) for sums in by_number] + [{}]
            for number, sums in enumerate(by_number):
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
            self._spend(self._weight + len(selection))
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

    def _spend(self, tenths: int) -> None:
        self._spent += tenths
        if self._spent > self._allowed:
            raise _TooManyError

    def _counts(self, selection: Selection) -> Counts:
        counts = [0] * self._kinds
        for _, kind, number in selection:
            counts[kind] += number
        return tuple(counts)
