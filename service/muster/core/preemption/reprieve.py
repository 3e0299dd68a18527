"""Steps 3 and 4 of semantics 5.6: the lowest priority threshold that suffices, then units put back, dearest first.

A unit that was away goes back, whole and where it runs, if as many pods are still placed: beside the placement as it
is; with the pods that it displaces moved inside their domains; with the tree placed anew. Units that come first are
tried many at a time: if all of them can be back with the tree placed anew, none of them need be tried by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import Fate
from muster.core.preemption.beside import beside
from muster.core.preemption.board import Board
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.preemption.placers import CountingPlacer, Placer
from muster.core.preemption.room_beside import fit_beside
from muster.core.preemption.solution import Solution

_KEPT_FOR_MOVES = 4
"""One part in so many of the budget is not spent on placing anew."""
_PARTS = 32
"""The beginning of the order is found to within one of so many parts; the rest is tried unit by unit."""


def lowest_threshold(ground: Ground, placer: Placer, solution: Solution) -> Solution:
    """Units of the lowest priorities that suffice; those above stay."""
    priorities = ground.victims.priorities
    levels = np.unique(priorities[solution.evicted])
    top = len(levels) - 1

    def upto(level: int) -> BoolArray:
        evicted: BoolArray = solution.evicted & (priorities <= levels[level])
        return evicted

    lowest = _first(0, top, lambda level: placer.may_fit(upto(level)))
    below, step = lowest, 1
    while lowest < top and not placer.fits(upto(lowest)):
        # Sums of amounts are seldom far off: the next levels first, then ever further ones.
        below, lowest, step = lowest + 1, min(lowest + step, top), 2 * step
    lowest = _first(below, lowest, lambda level: placer.fits(upto(level)))
    if lowest >= top:
        return solution
    above = np.flatnonzero(solution.evicted & (priorities > levels[lowest]))
    return _spared(placer, solution, above, Fate.ABOVE_THRESHOLD)


def _first(low: int, high: int, suffices: Callable[[int], bool]) -> int:
    """The first number that suffices, if all that follow it do; `high` is not asked."""
    while low < high:
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle + 1
    return low


def reprieved(ground: Ground, placer: Placer, solution: Solution) -> Solution:
    """Every unit back that need not go: first those whose eviction would break a budget, by importance, then the rest."""
    breaking = ground.victims.breaking(solution.evicted)
    order = np.concatenate((np.flatnonzero(breaking), np.flatnonzero(solution.evicted & ~breaking)))
    if ground.budget.left > 0:
        solution, tried = _many_back(ground, placer, solution, order)
        order = order[tried:]
        if isinstance(placer, CountingPlacer):
            back = order[placer.can_be_back(solution.evicted, order)]
            return _spared(placer, solution, back, Fate.MADE_WAY_FOR) if len(back) else solution
    if not ground.by_amounts:
        return beside(ground, solution, order)
    if ground.budget.left > 0:
        return _stepping_aside(ground, solution, order)
    stay = order[fit_beside(ground, solution.placement, solution.evicted, order)]
    return _without(solution, stay, Fate.NOT_IN_THE_WAY, solution.placement)


def _many_back(ground: Ground, placer: Placer, solution: Solution, order: IntArray) -> tuple[Solution, int]:
    """Units from the beginning of the order that can be back together with the tree placed anew, and how many."""

    def without(number: int) -> BoolArray:
        evicted = solution.evicted.copy()
        evicted[order[:number]] = False
        return evicted

    back, least = 0, ground.move_budget // _KEPT_FOR_MOVES
    above = _first(0, len(order) + 1, lambda number: not placer.may_fit(without(number)))
    while above - back > 1 + len(order) // _PARTS and ground.budget.left > least:
        middle = (back + above) // 2
        if placer.fits(without(middle)):
            back = middle
        else:
            above = middle
    return (_spared(placer, solution, order[:back], Fate.MADE_WAY_FOR), back) if back else (solution, 0)


def _spared(placer: Placer, solution: Solution, units: IntArray, fate: Fate) -> Solution:
    """The solution with these units back, for which the placer found room; as it was if it does not find it again."""
    evicted = solution.evicted.copy()
    evicted[units] = False
    placement = placer.place(evicted)
    return solution if placement is None else _without(solution, units, fate, placement)


def _without(solution: Solution, units: IntArray, fate: Fate, placement: Placement) -> Solution:
    evicted = solution.evicted.copy()
    evicted[units] = False
    return Solution(evicted, placement, solution.fates | dict.fromkeys(units.tolist(), fate))


def _stepping_aside(ground: Ground, solution: Solution, order: IntArray) -> Solution:
    """Unit by unit: beside the pods as they stand, or with pods that step aside while the budget lasts."""
    board = Board(ground, solution.placement, solution.evicted)
    evicted, fates = solution.evicted.copy(), dict(solution.fates)
    for unit in order.tolist():
        if board.takes(unit):
            fates[unit] = Fate.NOT_IN_THE_WAY
        elif ground.budget.left > 0 and board.put_back(unit):
            fates[unit] = Fate.MADE_WAY_FOR
        board.settle(unit)
        evicted[unit] = unit not in fates
    return Solution(evicted, board.placement, fates)
