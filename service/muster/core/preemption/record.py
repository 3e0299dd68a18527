"""What preemption came to, as the value that is committed and shown: who goes, who could stay, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import BudgetBreach, Fate, Preemption, PreemptionEnd, UnitFate
from muster.core.preemption.ground import Ground
from muster.core.preemption.solution import Solution
from muster.core.preemption.victims import Victims

MOST_REPRIEVED = 500
"""So many units that could stay are told of, the most important ones."""
_MOST_NAMED = 3
_Item = TypeVar("_Item")
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
    fates, whys = [Fate.EVICTED] * len(units), map(_room_taken, _nodes_taken(ground, solution, units))
    return _told(victims, units, victims.breaking(solution.evicted), fates, whys)


def _reprieved(ground: Ground, solution: Solution) -> Iterator[UnitFate]:
    """The most important units that could stay, and whether they would break a budget if all units went."""
    victims = ground.victims
    units = np.flatnonzero(~solution.evicted)[:MOST_REPRIEVED]
    fates = [solution.fates.get(unit, Fate.NOT_IN_THE_WAY) for unit in units.tolist()]
    breaking = victims.breaking(victims.everybody())
    return _told(victims, units, breaking, fates, [_WHY[fate] for fate in fates])


def _told(
    victims: Victims, units: IntArray, breaking: BoolArray, fates: Iterable[Fate], whys: Iterable[str]
) -> Iterator[UnitFate]:
    """Fates of these units. breaking: of all [U]; fates, whys: of these."""
    pods = tuple(victims.ids[victims.pods_of(units)].tolist())
    return map(
        UnitFate,
        victims.keys(units),
        victims.priorities[units].tolist(),
        fates,
        breaking[units].tolist(),
        _slices(pods, victims.sizes[units]),
        whys,
    )


def _slices(column: tuple[_Item, ...], sizes: IntArray) -> Iterator[tuple[_Item, ...]]:
    """The column in pieces of these sizes."""
    ends = np.cumsum(sizes)
    return map(column.__getitem__, map(slice, (ends - sizes).tolist(), ends.tolist()))


def _nodes_taken(ground: Ground, solution: Solution, units: IntArray) -> Iterator[tuple[str, ...]]:
    """For each of these units the nodes of the placement on which it ran, by name."""
    victims, nodes = ground.victims, ground.snapshot.nodes
    taken = np.zeros(nodes.size, dtype=np.bool_)
    taken[solution.placement.slots] = True
    pods = victims.pods_of(units)
    pods = pods[taken[victims.slots[pods]]]
    # Sorted by unit and name, each node once.
    owners, ranks = np.divmod(
        np.unique(victims.owners[pods] * nodes.size + nodes.ranks[victims.slots[pods]]), nodes.size
    )
    names = tuple(map(nodes.names.__getitem__, nodes.order[ranks].tolist()))
    return _slices(names, np.bincount(owners, minlength=len(victims))[units])


def _room_taken(names: Sequence[str]) -> str:
    """Why a unit goes that ran on these nodes of the placement."""
    if not names:
        return "the nominated pods do not fit while it runs"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"its room on {', '.join(names[:_MOST_NAMED])}{more} is needed"


def _breaches(ground: Ground, solution: Solution) -> Iterator[BudgetBreach]:
    victims = ground.victims
    for key, allowed, members in zip(victims.budgets, victims.allowed, victims.members, strict=True):
        number = int(np.count_nonzero(solution.evicted[victims.owners[members]]))
        if number > max(allowed, 0):
            yield BudgetBreach(key, number, max(allowed, 0))
