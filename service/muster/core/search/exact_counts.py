"""Exact packing by counts: the set of all count vectors that the nodes hold, met with all that a selection may take.

Answers for every selection at once, both ways. What it costs is known beforehand, since it depends on the numbers of
vectors and of fullest patterns of the nodes alone; whether that is worth it is for `packing` to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, prod

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search import steps
from muster.core.search.count_sets import Counts, CountSet, CountSpace
from muster.core.search.greedy import Placed, Selection, assign
from muster.core.search.question import GroupWant, LeafWant, Question, Want
from muster.core.search.steps import Budget

_MOST_PATTERNS = 20_000
_MOST_TYPES = 12
NEVER = 2**62
"""The cost of what is out of reach."""


class ExactCounts:
    """The exact answer to one question, if its `cost` (steps) can be afforded; NEVER if it is sure to be above `most`.

    Finding the cost spends steps of the budget too.
    """

    def __init__(self, question: Question, most: int, budget: Budget) -> None:
        self._question = question
        self._most: list[int] = np.minimum(question.most, question.capacity).tolist()
        self._patterns: list[tuple[Counts, ...]] = []
        self.cost = self._cost(most, budget)

    def answer(self) -> Placed | None:
        """A packing; None proves that there is none."""
        space = CountSpace(self._most)
        demand = _Demand(space)
        wanted = demand.of(self._question.root)
        held: list[CountSet] = [1]
        for patterns in self._patterns:
            if held[-1] & wanted:
                break
            held.append(space.closed(space.plus_any(held[-1], patterns)))
        met = held[-1] & wanted
        if not met:
            return None
        counts = space.counts(met.bit_length() - 1)
        placed = np.zeros(self._question.fits.shape, dtype=np.int64)
        for node, share in self._shares(space, held, counts):
            placed[:, node] = share
        return assign(demand.selection(self._question.root, counts), placed)

    def _cost(self, most: int, budget: Budget) -> int:
        """Steps; finds the nodes' patterns on the way, as long as there is hope."""
        vectors = prod(count + 1 for count in self._most)
        closing = sum(count.bit_length() for count in self._most)
        nodes = self._question.fits.shape[1]
        passes = nodes * (1 + closing) + _passes(self._question.root)
        if len(self._most) > _MOST_TYPES or _steps(passes, vectors) > most:
            return NEVER
        known: dict[bytes, tuple[Counts, ...]] = {}
        columns = np.minimum(self._question.fits, np.array(self._most)[:, None])
        for node in range(nodes):
            key = columns[:, node].tobytes() + self._question.room[node].tobytes()
            patterns = known.get(key)
            if patterns is None:
                patterns = self._patterns_of(columns[:, node], self._question.room[node], budget)
                known[key] = patterns
            passes += len(patterns) - 1
            if not patterns or _steps(passes, vectors) > most or budget.left <= 0:
                return NEVER
            self._patterns.append(patterns)
        return _steps(passes, vectors)

    def _patterns_of(self, most: IntArray, room: IntArray, budget: Budget) -> tuple[Counts, ...]:
        """The node's fullest patterns; none if they are too many."""
        found = fullest_patterns(self._question.demand, most, room)
        budget.spend(
            steps.finding_patterns(int(np.count_nonzero(most)), 0 if found is None else grid_size(most))
        )
        return found or ()

    def _shares(self, space: CountSpace, held: list[CountSet], counts: Counts) -> list[tuple[int, Counts]]:
        """What each node takes of the counts, last node first."""
        shares: list[tuple[int, Counts]] = []
        left = counts
        for node in range(len(held) - 2, -1, -1):
            for pattern in self._patterns[node]:
                share = tuple(map(min, pattern, left))
                rest = tuple(whole - part for whole, part in zip(left, share, strict=True))
                if space.contains(held[node], rest):
                    shares.append((node, share))
                    left = rest
                    break
        return shares


def fullest_patterns(demand: IntArray, most: IntArray, room: IntArray) -> tuple[Counts, ...] | None:
    """The count vectors that one node holds and to which nothing can be added; None if there are too many.

    demand: [K, R]. most: [K] most pods of each type. room: [R].
    """
    kinds = np.flatnonzero(most)
    last, first = int(kinds[np.argmax(most[kinds])]), kinds[kinds != kinds[np.argmax(most[kinds])]]
    if grid_size(most) > _MOST_PATTERNS:
        return None
    shape = tuple(int(count) + 1 for count in most[first])
    left = room.reshape(len(room), *(1 for _ in shape))
    for axis, kind in enumerate(first.tolist()):
        along = [1] * len(shape)
        along[axis] = shape[axis]
        left = left - np.multiply.outer(demand[kind], np.arange(shape[axis])).reshape(len(room), *along)
    more = np.full(shape, int(most[last]), dtype=np.int64)
    for resource in np.flatnonzero(demand[last]).tolist():
        np.minimum(more, left[resource] // demand[last, resource], out=more)
    more[(left < 0).any(axis=0)] = -1
    full = more >= 0
    for axis in range(len(shape)):
        # Where one more of this type takes nothing from the last type, the pattern is not full.
        before = (slice(None),) * axis
        fewer, richer = (*before, slice(None, -1)), (*before, slice(1, None))
        full[fewer] &= more[richer] < more[fewer]
    places = np.argwhere(full)
    vectors = np.zeros((len(places), len(most)), dtype=np.int64)
    vectors[:, first] = places
    vectors[:, last] = more[full]
    return tuple(sorted(map(tuple, vectors.tolist())))


def grid_size(most: IntArray) -> int:
    """How many count vectors are looked at: all but of the type that a node may hold most of."""
    ascending = sorted(most[most > 0].tolist())
    return prod(count + 1 for count in ascending[:-1])


def _steps(passes: int, vectors: int) -> int:
    return 1 + int(passes * (0.65 + vectors / 75_000))


def _passes(want: Want) -> int:
    """About how many set operations the selections cost."""
    if isinstance(want, LeafWant):
        return 0
    optional = max(1, want.need if want.need < len(want.children) else 1)
    return sum((_vectors(child) * optional) + _passes(child) for child in want.children)


def _vectors(want: Want) -> int:
    """No fewer count vectors than a want may come to."""
    if isinstance(want, GroupWant):
        below = prod(_vectors(child) for child in want.children)
        return min(NEVER, below * comb(len(want.children), want.need))
    spare = sum(number for _, number in want.supply) - want.need
    return min(NEVER, prod(sorted(min(number, spare) + 1 for _, number in want.supply)[:-1]))


@dataclass(slots=True)
class _Stage:
    """Sums of the first children of a group, by how many of them were taken."""

    by_number: list[CountSet]


class _Demand:
    """The sets of count vectors that wants may come to, and the way back to a selection."""

    def __init__(self, space: CountSpace) -> None:
        self._space = space
        self._sets: dict[Want, CountSet] = {}
        self._stages: dict[Want, list[_Stage]] = {}

    def of(self, want: Want) -> CountSet:
        known = self._sets.get(want)
        if known is None:
            known = self._leaf(want) if isinstance(want, LeafWant) else self._group(want)
            self._sets[want] = known
        return known

    def selection(self, want: Want, counts: Counts) -> Selection:
        """Pods of leaves that come to the counts, which the want's set has."""
        if isinstance(want, LeafWant):
            return [(want.leaf, kind, counts[kind]) for kind, _ in want.supply if counts[kind]]
        chosen: Selection = []
        stages, taken, left = self._stages[want], want.need, counts
        for place in range(len(want.children) - 1, -1, -1):
            before = stages[place].by_number
            if self._space.contains(before[taken], left):
                continue
            child = want.children[place]
            part, left = self._part(child, before[taken - 1], left)
            taken -= 1
            chosen = self.selection(child, part) + chosen
        return chosen

    def _part(self, child: Want, before: CountSet, whole: Counts) -> tuple[Counts, Counts]:
        for part in self._space.members(self.of(child)):
            rest = tuple(all_ - one for all_, one in zip(whole, part, strict=True))
            if min(rest, default=0) >= 0 and self._space.contains(before, rest):
                return part, rest
        raise AssertionError("a sum without its parts")

    def _leaf(self, leaf: LeafWant) -> CountSet:
        supply = [(kind, min(number, self._space.most[kind])) for kind, number in leaf.supply]
        later = sum(number for _, number in supply)
        partial = [([0] * len(self._space.most), leaf.need)]
        for kind, number in supply:
            later -= number
            longer = []
            for counts, missing in partial:
                for taken in range(max(0, missing - later), min(missing, number) + 1):
                    more = counts.copy()
                    more[kind] = taken
                    longer.append((more, missing - taken))
            partial = longer
        return sum(1 << self._space.index(counts) for counts, _ in partial)

    def _group(self, group: GroupWant) -> CountSet:
        stage = _Stage([1, *(0 for _ in range(group.need))])
        stages = self._stages[group] = [stage]
        for child in group.children:
            parts = list(self._space.members(self.of(child)))
            sums = list(stage.by_number)
            for number, before in enumerate(stage.by_number[:-1]):
                for part in parts if before else ():
                    sums[number + 1] |= self._space.plus(before, part)
            stage = _Stage(sums)
            stages.append(stage)
        return stage.by_number[group.need]
