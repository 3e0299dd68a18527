"""Whether groups hold their minimums together on some nodes: bounds, smart greedy, exact counts, repair, in turns.

Topology constraints inside the groups are for the domain search. "Impossible" is only said where it is proved;
budgets count steps, so the same question gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np

from muster.core.arrays import IntArray
from muster.core.search import steps
from muster.core.search.bounds import Cuts
from muster.core.search.chance import Chance
from muster.core.search.exact_counts import ExactCounts
from muster.core.search.greedy import Placed, Selection, Tuning, assign, plain, prices, select, spread
from muster.core.search.pattern_fill import PatternFill
from muster.core.search.problem import Problem, SearchNode
from muster.core.search.question import Question, ask
from muster.core.search.repair import Repair
from muster.core.search.selections import open_questions
from muster.core.search.steps import Budget

__all__ = ["IMPOSSIBLE", "UNKNOWN", "Budget", "Effort", "Packing", "Verdict", "pack"]


class Verdict(Enum):
    FOUND = "FOUND"
    IMPOSSIBLE = "IMPOSSIBLE"
    """Proved."""
    UNKNOWN = "UNKNOWN"


class Effort(IntEnum):
    """How far one question may go: greedy and cheap proofs; some repair; all that the budget allows."""

    LOW = 1
    MIDDLE = 2
    FULL = 3


@dataclass(frozen=True, slots=True)
class Packing:
    """placed: (leaf index, type, node index, number of pods), all of the problem."""

    verdict: Verdict
    placed: tuple[tuple[int, int, int, int], ...] = ()


Way = Callable[[Question, Selection, Tuning], tuple[IntArray, IntArray]]
"""Where selected pods go: [K, n], and [K] how many found no node."""
_SEED = 4671
_CHEAP = 130
"""Steps that the exact answer may cost before anything is tried in its place: about 1 ms."""
_FIRST_MOVES = {Effort.LOW: 60, Effort.MIDDLE: 300, Effort.FULL: 300}
_TURNS = {Effort.LOW: 0, Effort.MIDDLE: 1, Effort.FULL: 64}
_VARIATIONS = 6
_LISTING = 1_200
"""Most steps that listing the selections may cost."""
_MOST_SELECTIONS = 1_000
_SELECTIONS_A_TURN = 24
_SELECTING = 8
"""The part of the rest of the budget that selections may use up each turn: one in so many."""
_MOVES = 800
IMPOSSIBLE = Packing(Verdict.IMPOSSIBLE)
UNKNOWN = Packing(Verdict.UNKNOWN)


def pack(
    problem: Problem,
    groups: Sequence[SearchNode],
    nodes: IntArray,
    free: IntArray,
    budget: Budget,
    effort: Effort,
) -> Packing:
    """Whether all groups can have their minimums together on `nodes`, with room `free` [N, R], which stays as it is.

    nodes: ascending indexes among the problem's. Topology constraints inside the groups are not looked at.
    """
    question = ask(problem, groups, nodes, free, budget)
    if question is None:
        return IMPOSSIBLE
    cuts = Cuts(question, budget)
    if cuts.rule_out(budget):
        return IMPOSSIBLE
    return _Turns(question, cuts, budget, effort).packing()


@dataclass(slots=True)
class _Turns:
    """Placing and proving in turn, cheapest first, until one of them has the answer or no step is left."""

    question: Question
    cuts: Cuts
    budget: Budget
    effort: Effort
    chance: Chance = field(default_factory=lambda: Chance(_SEED))
    _dearer: dict[int, float] = field(default_factory=dict)
    _open: list[Question] | None = None
    """Selections not decided yet, each as a question; None if they are too many, or not enumerated."""
    _filling: PatternFill | None = None
    _least: int = 0
    """What another attempt costs: with less than that left, none is begun."""

    def packing(self) -> Packing:
        """The answer, UNKNOWN once no turn is left that the budget pays for."""
        started = self.budget.spent
        packing = self._attempt(self.question, plain(self.question), 0)
        if packing is not None:
            return packing
        exact = ExactCounts(self.question, self.budget.left, self.budget)
        packing = self._exactly(self.question, exact, _CHEAP)
        way = self._filled if self.effort is Effort.FULL else spread
        packing = packing or self._attempt(
            self.question, plain(self.question), _FIRST_MOVES[self.effort], way
        )
        packing = packing or self._enumerate()
        turns = _TURNS[self.effort]
        turn = 0
        while packing is None and turn < turns and self.budget.left > self._least:
            packing = self._by_selection(_CHEAP << turn)
            for place in range(_VARIATIONS << turn):
                way = spread if place % 2 else self._filled
                packing = packing or self._attempt(self.question, self._varied(), _MOVES, way)
            turn += 1
            packing = packing or self._exactly(self.question, exact, self.budget.spent - started)
        return packing or UNKNOWN

    def _enumerate(self) -> Packing | None:
        """List the selections if they are few; that none is left is a proof."""
        if self.effort is Effort.LOW or self.budget.left <= 0:
            return None
        allowed = Budget(min(_LISTING, self.budget.left // 4))
        self._open = open_questions(self.question, self.cuts, _MOST_SELECTIONS, allowed)
        self.budget.spend(allowed.spent)
        return IMPOSSIBLE if self._open == [] else None

    def _by_selection(self, most: int) -> Packing | None:
        """Decide some of the open selections, each at a cost of up to `most` steps; all impossible is a proof."""
        undecided: list[Question] = []
        enough = self.budget.left - self.budget.left // _SELECTING
        for place, question in enumerate(self._open or ()):
            if place >= _SELECTIONS_A_TURN or self.budget.left <= enough:
                undecided += (self._open or [])[place:]
                break
            packing = self._attempt(question, plain(question), 0)
            packing = packing or self._exactly(question, ExactCounts(question, most, self.budget), most)
            packing = packing or self._attempt(question, plain(question), _FIRST_MOVES[Effort.LOW])
            if packing is None:
                undecided.append(question)
            elif packing.verdict is Verdict.FOUND:
                return packing
        if self._open is None:
            return None
        self._open = undecided
        return None if undecided else IMPOSSIBLE

    def _exactly(self, question: Question, exact: ExactCounts, most: int) -> Packing | None:
        """The exact answer if it costs no more than `most` steps."""
        if exact.cost > min(most, self.budget.left):
            return None
        self.budget.spend(exact.cost)
        placed = exact.answer()
        return IMPOSSIBLE if placed is None else _found(question, placed)

    def _filled(self, question: Question, selection: Selection, tuning: Tuning) -> tuple[IntArray, IntArray]:
        """As `spread`, but node by node where that can be done."""
        if self._filling is None:
            self._filling = PatternFill(question, self.budget)
        cost = self._filling.steps
        if cost is None or cost > self.budget.left:
            return spread(question, selection, tuning)
        self.budget.spend(cost)
        return self._filling.spread(selection, tuning, self.chance)

    def _attempt(self, question: Question, tuning: Tuning, moves: int, way: Way = spread) -> Packing | None:
        """Select and place under the tuning, with up to so many moves of repair, as far as the budget goes."""
        selection = select(question.root, prices(question, tuning), tuning.leaves)
        kinds, nodes = question.fits.shape
        cost = steps.spreading(len({kind for _, kind, _ in selection}), nodes) + len(selection) // 5
        repairing = steps.preparing_repair(kinds, question.demand.shape[1], nodes) if moves else 0
        self._least = cost + repairing
        if self.budget.left < self._least:
            return None
        counts, homeless = way(question, selection, tuning)
        self.budget.spend(cost)
        if not homeless.any():
            return self._found(question, selection, counts)
        if not moves:
            return None
        repair = Repair(question, selection, counts, homeless, self.chance)
        housed = repair.run(moves, self.budget.left)
        self.budget.spend(repairing + repair.steps)
        if housed:
            return self._found(question, *repair.result())
        for kind in repair.stuck if question is self.question else ():
            self._dearer[kind] = self._dearer.get(kind, 1.0) * 1.1
        return None

    def _found(self, question: Question, selection: Selection, counts: IntArray) -> Packing:
        placed = assign(selection, counts)
        self.budget.spend(len(placed) // 3)
        return _found(question, placed)

    def _varied(self) -> Tuning:
        """Another mix of resources, reach and noise; types that stayed without a node are dearer."""
        kinds, resources = self.question.demand.shape
        around = self.chance.around_one
        return Tuning(
            resources=np.array([around(0.9) for _ in range(resources)]),
            types=np.array([around(0.3) * self._dearer.get(kind, 1.0) for kind in range(kinds)]),
            reach=4 * self.chance.between_zero_and_one(),
            leaves={leaf.leaf: around(0.2) for leaf in self.question.leaves},
        )


def _found(question: Question, placed: Placed) -> Packing:
    entries = [
        (leaf, question.types[kind], int(question.nodes[node]), number) for leaf, kind, node, number in placed
    ]
    return Packing(Verdict.FOUND, tuple(sorted(entries)))
