"""What preemption came to, as the value that is committed and shown: every potential victim with its fate and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    evicted: list[bool] = solution.evicted.tolist()
    breaking: list[bool] = np.where(
        solution.evicted, victims.breaking(solution.evicted), victims.breaking(victims.everybody())
    ).tolist()
    ids, firsts = victims.ids.tolist(), victims.firsts.tolist()
    priorities = victims.priorities.tolist()
    for unit, key in enumerate(victims.keys):
        fate = Fate.EVICTED if evicted[unit] else solution.fates.get(unit, Fate.NOT_IN_THE_WAY)
        why = _room_taken(ground, solution, unit) if evicted[unit] else _WHY[fate]
        pods = tuple(ids[firsts[unit] : firsts[unit + 1]])
        yield UnitFate(key, priorities[unit], fate, breaking[unit], pods, why)


def _room_taken(ground: Ground, solution: Solution, unit: int) -> str:
    victims, nodes = ground.victims, ground.snapshot.nodes
    ran_on = victims.slots[victims.firsts[unit] : victims.firsts[unit + 1]]
    taken = np.intersect1d(ran_on, solution.placement.slots)
    if not len(taken):
        return "the nominated pods do not fit while it runs"
    names = sorted(nodes.names[slot] for slot in taken.tolist())
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"its room on {', '.join(names[:_MOST_NAMED])}{more} is needed"


def _breaches(ground: Ground, solution: Solution) -> Iterator[BudgetBreach]:
    victims = ground.victims
    for key, allowed, members in zip(victims.budgets, victims.allowed, victims.members, strict=True):
        number = int(np.count_nonzero(solution.evicted[victims.owners[members]]))
        if number > max(allowed, 0):
            yield BudgetBreach(key, number, max(allowed, 0))
