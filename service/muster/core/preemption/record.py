"""What preemption came to, as the value that is committed and shown: who goes, who could stay, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import BudgetBreach, Fate, Preemption, PreemptionEnd, UnitFate
from muster.core.preemption.ground import Ground
from muster.core.preemption.solution import Solution
from muster.core.preemption.victims import Victims

MOST_REPRIEVED = 500
"""So many units that could stay are told of, the most important ones."""
_MOST_NAMED = 3
_WHY = {
    Fate.ABOVE_THRESHOLD: "enough room is to be had from units of lower priority",
    Fate.NOT_IN_THE_WAY: "there is room for it beside the nominated pods",
    Fate.MADE_WAY_FOR: "the nominated pods fit elsewhere",
}


def preemption_of(ground: Ground, solution: Solution, awaited: Sequence[int], steps: int) -> Preemption:
    """The value of a solution that is carried out."""
    evicted = np.flatnonzero(solution.evicted)
    over = ground.victims.pods_over_budget(solution.evicted)
    return Preemption(
        end=PreemptionEnd.NOMINATED if awaited or len(evicted) else PreemptionEnd.NOT_NEEDED,
        nominations=solution.placement.assignments(ground.snapshot),
        victims=tuple(_evicted(ground, solution, evicted)),
        reprieved=tuple(_reprieved(ground, solution)),
        awaited=tuple(awaited),
        pods_over_budget=len(over),
        breaches=tuple(_breaches(ground, solution)),
        steps=steps,
    )


def _evicted(ground: Ground, solution: Solution, units: IntArray) -> Iterator[UnitFate]:
    victims = ground.victims
    taken = set(solution.placement.slots.tolist())
    whys = [
        _room_taken(ground, taken.intersection(slots)) for slots in _by_unit(victims, victims.slots, units)
    ]
    return _told(victims, units, victims.breaking(solution.evicted), [Fate.EVICTED] * len(units), whys)


def _reprieved(ground: Ground, solution: Solution) -> Iterator[UnitFate]:
    """The most important units that could stay, and whether they would break a budget if all units went."""
    victims = ground.victims
    units = np.flatnonzero(~solution.evicted)[:MOST_REPRIEVED]
    fates = [solution.fates.get(unit, Fate.NOT_IN_THE_WAY) for unit in units.tolist()]
    breaking = victims.breaking(victims.everybody())
    return _told(victims, units, breaking, fates, [_WHY[fate] for fate in fates])


def _told(
    victims: Victims, units: IntArray, breaking: BoolArray, fates: Sequence[Fate], whys: Sequence[str]
) -> Iterator[UnitFate]:
    """Fates of these units. breaking: of all [U]; fates, whys: of these."""
    pods = map(tuple, _by_unit(victims, victims.ids, units))
    return map(
        UnitFate,
        victims.keys(units),
        victims.priorities[units].tolist(),
        fates,
        breaking[units].tolist(),
        pods,
        whys,
    )


def _by_unit(victims: Victims, column: IntArray, units: IntArray) -> Iterator[list[int]]:
    """What a column [P] says of the pods of each of these units."""
    bounds = zip(victims.firsts[units].tolist(), victims.firsts[units + 1].tolist(), strict=True)
    return (column[first:end].tolist() for first, end in bounds)


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
