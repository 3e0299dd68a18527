"""Asks whether parts fit together in a region, and keeps what it was told (search by domains).

How a question without an answer is resolved is given by `domain_search`; what one question may cost goes by the
level of effort, so that no single question eats what all of them have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search.domain_memo import IMPOSSIBLE, UNKNOWN, Answer, Memo, Place
from muster.core.search.domain_parts import Part, Parts, kinds_of, leaves_of
from muster.core.search.domain_regions import Region, Regions
from muster.core.search.packing import Effort, Packing, Verdict, pack
from muster.core.search.problem import Problem, SearchNode
from muster.core.search.steps import Budget

Placed = list[tuple[int, int, int, int]]
"""Leaf index, type, node index, number of pods."""
_PACKING_STEPS = 1_000
_TRIES = 4
_FINAL_PACKINGS = 4
"""What one question may do at the first level; four times as much at each that follows."""
_ADDING_STEPS = 200
_ASKING = 16
_NODES_PER_STEP = 50
"""What looking at a region costs besides what it leads to."""


@dataclass(slots=True)
class Questions:
    """`level` 0 is the least effort. resolve: answers a question that neither memo nor bounds do."""

    problem: Problem
    regions: Regions
    budget: Budget
    resolve: Callable[[Questions, Region, Parts], Answer]
    level: int = 0
    memo: Memo = field(default_factory=Memo)

    @property
    def tries(self) -> int:
        """How many assignments one question may try at first, for each part that it assigns."""
        return _TRIES * self._growth

    @property
    def final_packings(self) -> int:
        """How many complete assignments one question may pack at last."""
        return _FINAL_PACKINGS * self._growth

    @property
    def _growth(self) -> int:
        return 1 << 2 * self.level

    def ask(self, region: Region, parts: Parts) -> Answer:
        """Whether all parts can have their minimums together in the region. parts: in order."""
        kinds = kinds_of(parts)
        place = self.place_of(region, parts)
        answer = self.memo.get(place, kinds, self.level)
        if answer is None:
            if self.budget.left <= 0:
                return UNKNOWN
            self.budget.spend(_ASKING + len(region.nodes) // _NODES_PER_STEP)
            answer = IMPOSSIBLE if _ruled_out(region, parts) else self.resolve(self, region, parts)
            self.budget.spend(self.regions.paid())
            self.memo.put(place, kinds, self.level, answer)
        return answer

    def place_of(self, region: Region, parts: Parts) -> Place:
        """What the region is known by; pinned parts tell alike regions apart."""
        if not region.number or any(len(part.all_pins) for part in parts):
            return "region", region.number
        return "shape", self.regions.shape(region).shape

    def found(self, region: Region, parts: Parts) -> Placed | None:
        """A packing that is known already."""
        answer = self.memo.found(self.place_of(region, parts), kinds_of(parts))
        return None if answer is None else self.placed(region, parts, answer)

    def placed(self, region: Region, parts: Parts, answer: Answer) -> Placed:
        """What an answer for alike regions and parts means for these."""
        leaves = leaves_of(parts)
        order = self._order(region, parts)
        return [(leaves[leaf], kind, int(order[node]), number) for leaf, kind, node, number in answer.placed]

    def answer(self, region: Region, parts: Parts, placed: Placed) -> Answer:
        """A packing found for these parts, as an answer for all alike ones."""
        leaf_places = {leaf: place for place, leaf in enumerate(leaves_of(parts))}
        order = self._order(region, parts)
        by_node = np.argsort(order)
        nodes = by_node[np.searchsorted(order, [node for _, _, node, _ in placed], sorter=by_node)].tolist()
        return Answer(
            Verdict.FOUND,
            tuple(
                (leaf_places[leaf], kind, node, number)
                for (leaf, kind, _, number), node in zip(placed, nodes, strict=True)
            ),
        )

    def _order(self, region: Region, parts: Parts) -> IntArray:
        """The region's nodes as answers count them."""
        kind, _ = self.place_of(region, parts)
        return region.nodes if kind == "region" else self.regions.shape(region).order

    def flat(self, region: Region, parts: Parts) -> Answer:
        """Parts that no constraint cuts in the region: a known packing extended, or all packed anew."""
        placed = self._extended(region, parts)
        if placed is not None:
            return self.answer(region, parts, placed)
        packing = self.pack(self.problem, [part.node for part in parts], region.nodes, self.problem.free)
        if packing.verdict is Verdict.FOUND:
            return self.answer(region, parts, list(packing.placed))
        return IMPOSSIBLE if packing.verdict is Verdict.IMPOSSIBLE else UNKNOWN

    def pack(
        self, problem: Problem, groups: Sequence[SearchNode], nodes: IntArray, free: IntArray
    ) -> Packing:
        """A packing without regard to constraints, within what one question may cost."""
        effort = (Effort.LOW, Effort.MIDDLE, Effort.FULL)[min(self.level, 2)]
        return self._limited(problem, groups, (nodes, free), (_PACKING_STEPS * self._growth, effort))

    def room_left(self, placed: Placed) -> IntArray:
        """[N, R] what is free once the pods are placed."""
        free = self.problem.free.copy()
        for _, kind, node, number in placed:
            free[node] -= number * self.problem.demand[kind]
        return free

    def add(self, parts: Sequence[Part], region: Region, placed: Placed) -> Placed | None:
        """Nodes of the region for more parts, beside what is placed, if that is easy."""
        groups = [part.node for part in parts]
        limits = (_ADDING_STEPS, Effort.LOW)
        packing = self._limited(self.problem, groups, (region.nodes, self.room_left(placed)), limits)
        return list(packing.placed) if packing.verdict is Verdict.FOUND else None

    def _extended(self, region: Region, parts: Parts) -> Placed | None:
        """A packing of all but one, known from before, with that one added to what it leaves."""
        for index in range(len(parts) if len(parts) > 1 else 0):
            known = self.found(region, parts[:index] + parts[index + 1 :])
            if known is not None:
                added = self.add(parts[index : index + 1], region, known)
                return None if added is None else [*known, *added]
        return None

    def _limited(
        self,
        problem: Problem,
        groups: Sequence[SearchNode],
        where: tuple[IntArray, IntArray],
        limits: tuple[int, Effort],
    ) -> Packing:
        most, effort = limits
        budget = Budget(min(most, self.budget.left))
        packing = pack(problem, groups, *where, budget, effort)
        self.budget.spend(budget.spent)
        return packing


def _ruled_out(region: Region, parts: Parts) -> bool:
    least = sum((part.least for part in parts), np.zeros_like(region.room))
    if (least > region.room).any():
        return True
    return not all(part.may_fit(region.fits[None, :])[0] for part in parts)
