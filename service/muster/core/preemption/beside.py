"""Putting units back beside a placement where filters read more than amounts: each is asked with the units back.

Units that can be back together are found many at a time: if a whole run of them can, none is tried by itself.
"""

from __future__ import annotations

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import Fate
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.preemption.solution import Solution
from muster.core.recheck import first_conflict


def beside(ground: Ground, solution: Solution, order: IntArray) -> Solution:
    """The units of the order that can be back, most important first, with the placement as it is."""
    evicted, fates = solution.evicted.copy(), dict(solution.fates)
    runs = [order]
    while runs:
        run = runs.pop()
        evicted[run] = False
        if holds(ground, solution.placement, evicted):
            fates |= dict.fromkeys(run.tolist(), Fate.NOT_IN_THE_WAY)
            continue
        evicted[run] = True
        if len(run) > 1:
            half = len(run) // 2
            runs += [run[half:], run[:half]]
    return Solution(evicted, solution.placement, fates)


def holds(ground: Ground, placement: Placement, evicted: BoolArray) -> bool:
    """Whether all filters admit the placement, pod by pod in its order, with these units [U] gone."""
    if ground.by_amounts:
        return _has_room(ground, placement, evicted)
    snapshot, recursion = ground.snapshot, ground.recursion
    mark = snapshot.mark()
    ground.remove(evicted)
    names = [snapshot.nodes.names[slot] for slot in placement.slots.tolist()]
    nowhere: frozenset[str] = frozenset()
    excluded = (
        {place: recursion.unit.excluded_nodes.get(pod, nowhere) for place, pod in enumerate(placement.ids)}
        if recursion.unit.excluded_nodes
        else {}
    )
    conflict = first_conflict(snapshot, recursion.profile, placement.signatures, names, excluded)
    snapshot.rollback(mark)
    return conflict is None


def _has_room(ground: Ground, placement: Placement, evicted: BoolArray) -> bool:
    """The same where amounts and nodes are all that counts: no order matters, and a zero request fits anywhere."""
    nodes = ground.snapshot.nodes
    used, load = placement.loads(len(nodes.rows))
    room = nodes.free[:, used] + ground.usage.freed(evicted)[:, used]
    if ((load > room) & (load > 0)).any():
        return False
    return all(
        kind.admitted[placement.slots[placement.kinds == index]].all()
        for index, kind in enumerate(placement.kind_table)
    )
