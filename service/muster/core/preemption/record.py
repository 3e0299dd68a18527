"""What preemption came to, as the value that is committed and shown: who goes, who could stay, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from muster.core.arrays import IntArray
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
    breaking = victims.breaking(solution.evicted)
    slots, taken = victims.slots.tolist(), set(solution.placement.slots.tolist())
    for unit in units.tolist():
        mine = slice(victims.firsts[unit], victims.firsts[unit + 1])
        why = _room_taken(ground, taken.intersection(slots[mine]))
        yield _fate(victims, unit, Fate.EVICTED, bool(breaking[unit]), why)


def _reprieved(ground: Ground, solution: Solution) -> Iterator[UnitFate]:
    """The most important units that could stay, and whether they would break a budget if all units went."""
    victims = ground.victims
    breaking = victims.breaking(victims.everybody())
    for unit in np.flatnonzero(~solution.evicted)[:MOST_REPRIEVED].tolist():
        fate = solution.fates.get(unit, Fate.NOT_IN_THE_WAY)
        yield _fate(victims, unit, fate, bool(breaking[unit]), _WHY[fate])


def _fate(victims: Victims, unit: int, fate: Fate, breaks: bool, why: str) -> UnitFate:  # noqa: FBT001 - a column
    pods = victims.ids[victims.firsts[unit] : victims.firsts[unit + 1]].tolist()
    return UnitFate(victims.key(unit), int(victims.priorities[unit]), fate, breaks, tuple(pods), why)


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
