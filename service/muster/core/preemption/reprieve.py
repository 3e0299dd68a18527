"""Steps 3 and 4 of semantics 5.6: the lowest priority threshold that suffices, then units put back, dearest first.

A unit that was away goes back, whole and where it runs, if as many pods are still placed: beside the placement as it
is; with the pods that it displaces moved inside their domains; with the tree placed anew. Units that come first are
tried many at a time: if all of them can be back with the tree placed anew, none of them need be tried by itself.
"""

from __future__ import annotations

import numpy as np

from muster.core.arrays import IntArray
from muster.core.decision import Fate
from muster.core.preemption.beside import beside
from muster.core.preemption.board import Board
from muster.core.preemption.ground import Ground
from muster.core.preemption.solution import Placer, Solution


def lowest_threshold(ground: Ground, place: Placer, solution: Solution) -> Solution:
    """Units of the lowest priorities that suffice, as long as the budget lasts; those above stay."""
    priorities = ground.victims.priorities
    levels = np.unique(priorities[solution.evicted])
    low, high = 0, len(levels) - 1
    while low < high and ground.budget.left > 0:
        middle = (low + high) // 2
        evicted = solution.evicted & (priorities <= levels[middle])
        placement = place(evicted)
        if placement is None:
            low = middle + 1
            continue
        high = middle
        spared = np.flatnonzero(solution.evicted & ~evicted).tolist()
        fates = solution.fates | dict.fromkeys(spared, Fate.ABOVE_THRESHOLD)
        solution = Solution(evicted, placement, fates)
    return solution


def reprieved(ground: Ground, place: Placer, solution: Solution) -> Solution:
    """Every unit back that need not go: first those whose eviction would break a budget, by importance, then the rest."""
    breaking = ground.victims.breaking(solution.evicted)
    order = np.concatenate((np.flatnonzero(breaking), np.flatnonzero(solution.evicted & ~breaking)))
    if not ground.by_amounts:
        return beside(ground, solution, order)
    if ground.budget.left <= 0:
        return _as_it_stands(ground, solution, order)
    solution, tried = _many_back(ground, place, solution, order)
    return _stepping_aside(ground, solution, order[tried:])


def _as_it_stands(ground: Ground, solution: Solution, order: IntArray) -> Solution:
    stay = Board(ground, solution.placement, solution.evicted).beside(order)
    evicted = solution.evicted.copy()
    evicted[order[stay]] = False
    fates = solution.fates | dict.fromkeys(order[stay].tolist(), Fate.NOT_IN_THE_WAY)
    return Solution(evicted, solution.placement, fates)


def _many_back(ground: Ground, place: Placer, solution: Solution, order: IntArray) -> tuple[Solution, int]:
    """The most units of the beginning of the order that can be back together with the tree placed anew."""
    back, above = 0, len(order)
    while back < above - 1 and ground.budget.left > 0:
        middle = (back + above) // 2
        evicted = solution.evicted.copy()
        evicted[order[:middle]] = False
        placement = place(evicted)
        if placement is None:
            above = middle
            continue
        fates = solution.fates | dict.fromkeys(order[back:middle].tolist(), Fate.MADE_WAY_FOR)
        solution, back = Solution(evicted, placement, fates), middle
    return solution, back


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
