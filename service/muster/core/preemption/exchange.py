"""Exchanging victims of a small case: one unit that could stay goes, and others may stay for it (semantics 5.6).

The step that a reprieve in one fixed order cannot take.
"""

from __future__ import annotations

import numpy as np

from muster.core.arrays import BoolArray
from muster.core.decision import Fate
from muster.core.preemption.oracle import Oracle
from muster.core.preemption.solution import Solution


def exchanged(oracle: Oracle, solution: Solution, reserve: int) -> Solution:
    """The solution after every exchange that makes it cheaper, until only `reserve` steps of the budget are left."""
    ground, victims = oracle.ground, oracle.ground.victims
    evicted = solution.evicted
    improved = True
    while improved:
        improved = False
        for unit in np.flatnonzero(oracle.helpful & ~evicted)[::-1].tolist():
            if ground.budget.left <= reserve:
                break
            other = _without(oracle, evicted, unit)
            if victims.rank(other) < victims.rank(evicted):
                evicted, improved = other, True
                break
    placement = oracle.place(evicted) if evicted is not solution.evicted else None
    if placement is None:
        return solution
    stay = dict.fromkeys(np.flatnonzero(~evicted).tolist(), Fate.MADE_WAY_FOR)
    fates = stay | {unit: fate for unit, fate in solution.fates.items() if unit in stay}
    return Solution(evicted, placement, fates)


def _without(oracle: Oracle, evicted: BoolArray, unit: int) -> BoolArray:
    """With the unit gone too, all others back that can be, most important first."""
    victims = oracle.ground.victims
    evicted = evicted.copy()
    evicted[unit] = True
    breaking = victims.breaking(evicted)
    order = [*np.flatnonzero(breaking).tolist(), *np.flatnonzero(evicted & ~breaking).tolist()]
    for other in order:
        if other != unit:
            evicted[other] = False
            evicted[other] = not oracle.fits(evicted)
    return evicted
