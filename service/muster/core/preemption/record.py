"""What preemption came to, as the value that is committed and shown: every potential victim with its fate and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from muster.core.decision import BudgetBreach, Fate, Preemption, PreemptionEnd, UnitFate
from muster.core.preemption.ground import Ground
from muster.core.preemption.solution import Solution

_MOST_NAMED = 3
_WHY = {
    Fate.ABOVE_THRESHOLD: "enough room is to be had from units of lower priority",
    Fate.NOT_IN_THE_WAY: "there is room for it beside the nominated pods",
    Fate.MADE_WAY_FOR: "the nominated pods fit elsewhere",
}


def preemption_of(ground: Ground, solution: Solution, awaited: Sequence[int], steps: int) -> Preemption:
    """The value of a solution that is carried out."""
    victims = ground.victims
    over = victims.pods_over_budget(solution.evicted)
    end = PreemptionEnd.NOMINATED if awaited or solution.evicted.any() else PreemptionEnd.NOT_NEEDED
    fates = list(_fates(ground, solution))
    return Preemption(
        end=end,
        nominations=solution.placement.assignments(ground.snapshot),
        victims=tuple(item for item in fates if item.fate is Fate.EVICTED),
        reprieved=tuple(item for item in fates if item.fate is not Fate.EVICTED),
        awaited=tuple(awaited),
        pods_over_budget=len(over),
        breaches=tuple(_breaches(ground, solution)),
        steps=steps,
    )


def _fates(ground: Ground, solution: Solution) -> Iterator[UnitFate]:
    victims = ground.victims
    breaking = victims.breaking(victims.everybody())
    breaking[solution.evicted] = victims.breaking(solution.evicted)[solution.evicted]
    ids, bounds = victims.ids.tolist(), victims.firsts.tolist()
    fates = [solution.fates.get(unit, Fate.NOT_IN_THE_WAY) for unit in range(len(victims))]
    whys = [_WHY[fate] for fate in fates]
    slots, taken = victims.slots.tolist(), set(solution.placement.slots.tolist())
    for unit in np.flatnonzero(solution.evicted).tolist():
        fates[unit] = Fate.EVICTED
        whys[unit] = _room_taken(ground, taken.intersection(slots[bounds[unit] : bounds[unit + 1]]))
    pods = [tuple(ids[first:end]) for first, end in pairwise(bounds)]
    return map(UnitFate, victims.keys, victims.priorities.tolist(), fates, breaking.tolist(), pods, whys)


def _room_taken(ground: Ground, slots: set[int]) -> str:
    """Why a unit goes that ran on these nodes of the placement."""
    if not slots:
        return "the nominated pods do not fit while it runs"
    names = sorted(map(ground.snapshot.nodes.names.__getitem__, slots))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"its room on {', '.join(names[:_MOST_NAMED])}{more} is needed"


def _breaches(ground: Ground, solution: Solution) -> Iterator[BudgetBreach]:
    victims = ground.victims
    for key, allowed, members in zip(victims.budgets, victims.allowed, victims.members, strict=True):
        number = int(np.count_nonzero(solution.evicted[victims.owners[members]]))
        if number > max(allowed, 0):
            yield BudgetBreach(key, number, max(allowed, 0))
