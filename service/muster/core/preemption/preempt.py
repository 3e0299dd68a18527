"""Preemption (KEP-5710, semantics 5.6): make room once, at the root, for all of a unit, and never evict in vain.

1. Take leaving pods as gone.  2. Remove all potential victims and place the tree: N pods.  3. Lower the set to the
lowest priorities that suffice.  4. Put back whoever need not go.  5. Again from all where a budget is broken, and for
other root domains; the cheapest wins.  6. Improve on it where the case is small.  7. Check it by all filters.

When preemption may run at all is for `core.decide`; who is a potential victim is for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.core.decision import Preemption, PreemptionEnd, Search, SearchEnd, Status
from muster.core.domains import CLUSTER
from muster.core.preemption.beside import holds
from muster.core.preemption.eligible import tried_pods
from muster.core.preemption.exchange import exchanged
from muster.core.preemption.ground import Ground
from muster.core.preemption.hitting_sets import CheapestSet
from muster.core.preemption.oracle import Oracle, is_small, oracle_of
from muster.core.preemption.placement import NOWHERE, Placement
from muster.core.preemption.placers import CountingPlacer, Placer, TreePlacer, placer_in
from muster.core.preemption.record import preemption_of
from muster.core.preemption.reprieve import lowest_threshold, reprieved
from muster.core.preemption.root_domains import cheapest_domains
from muster.core.preemption.solution import Solution
from muster.core.preemption.victims import victims_of
from muster.core.preemption_units import DisruptionUnits
from muster.core.promises import depart_leaving, keep_promises
from muster.core.recursion import Recursion
from muster.core.search.packing import Budget
from muster.core.trial import Trial

Minimum = Callable[[Recursion], tuple[Trial, Search]]
"""The root's minimum, by the recursion or by search."""
_ENOUGH_FOR_ANOTHER = 2
"""Another domain is looked at if this part of the budget is left."""


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """A way to place, and a solution for the most pods that it finds room for.

    lowest: the solution is that of the lowest priority threshold at which all of these pods are placed.
    """

    placer: TreePlacer
    solution: Solution
    lowest: bool = False

    @property
    def number(self) -> int:
        """How many pods it places."""
        return len(self.solution.placement)


def preempt(recursion: Recursion, units: DisruptionUnits, minimum: Minimum, without: int) -> Preemption:
    """Who must go so that more than `without` pods of the unit are placed. Leaves the snapshot as it found it.

    recursion: the cycle's, with nothing assumed but what is promised to others.
    """
    snapshot = recursion.snapshot
    before = snapshot.mark()
    depart_leaving(snapshot, recursion.unit.earlier.stayed)
    settings = recursion.profile.preemption
    ground = Ground(recursion, victims_of(snapshot, units), Budget(settings.move_budget))
    starts, none = _starts(ground, minimum)
    solution = _best(ground, starts) if _most(starts) > without else None
    snapshot.rollback(before)
    if solution is None:
        return Preemption(PreemptionEnd.NO_GAIN if starts else none, steps=ground.budget.spent)
    return preemption_of(ground, solution, _awaited(ground, solution), ground.budget.spent)


def _starts(ground: Ground, minimum: Minimum) -> tuple[list[_Start], PreemptionEnd]:
    """Ways to place as many pods as there is room for, and what it means if there are none.

    In a large cluster the domains that look cheapest for the root are asked first: if all pods fit in one of them, no
    more can.
    """
    starts: list[_Start] = []
    if not is_small(ground):
        for domain in cheapest_domains(ground, ground.recursion.profile.preemption.root_candidates):
            if not starts or ground.budget.left > ground.move_budget // _ENOUGH_FOR_ANOTHER:
                starts += _started(ground, placer_in(ground, domain))
    if _most(starts) == tried_pods(ground.unit.root):
        return starts, PreemptionEnd.NOT_FOUND
    anywhere = placer_in(ground, CLUSTER)
    if isinstance(anywhere, CountingPlacer) and not is_small(ground):
        return _started(ground, anywhere), PreemptionEnd.NO_FIT
    whole, end = _with_everybody_gone(ground, minimum)
    if whole is not None:
        starts.append(_Start(anywhere, Solution(ground.victims.everybody(), whole, {})))
    return starts, PreemptionEnd.NO_FIT if end is SearchEnd.EXHAUSTED else PreemptionEnd.NOT_FOUND


def _most(starts: Sequence[_Start]) -> int:
    return max((start.number for start in starts), default=0)


def _started(ground: Ground, placer: TreePlacer) -> list[_Start]:
    """The start with this placer, if it places anything: at the lowest threshold, or with everybody gone."""
    everybody = Solution(ground.victims.everybody(), NOWHERE, {})
    if isinstance(placer, CountingPlacer):
        placer.wanted = placer.number(everybody.evicted)
    lowest = lowest_threshold(ground, placer, everybody)
    if lowest is not everybody:
        return [_Start(placer, lowest, lowest=True)]
    whole = placer.most(everybody.evicted)
    return [] if whole is None else [_Start(placer, replace(everybody, placement=whole))]


def _with_everybody_gone(ground: Ground, minimum: Minimum) -> tuple[Placement | None, SearchEnd]:
    """All that can be placed of the tree then; a search may help, once, and may prove that nothing can."""
    mark = ground.snapshot.mark()
    ground.remove(ground.victims.everybody())
    recursion = ground.fresh_recursion()
    trial, searched = minimum(recursion)
    placement = None
    if trial.status is Status.SUCCESS:
        recursion.fill(trial, CLUSTER)
        placement = ground.kinds.placement(trial, recursion.ledger)
    ground.snapshot.rollback(mark)
    return placement, searched.end


def _best(ground: Ground, starts: Sequence[_Start]) -> Solution | None:
    """The cheapest solution that all filters admit; None if none is, which only inexact amounts can bring about."""
    found = sorted(_found(ground, starts), key=lambda item: ground.victims.rank(item.evicted))
    return next((item for item in found if holds(ground, item.placement, item.evicted)), None)


def _found(ground: Ground, starts: Sequence[_Start]) -> Iterator[Solution]:
    """Solutions for as many pods as can be placed."""
    most = _most(starts)
    oracle = oracle_of(ground, max(starts, key=lambda start: start.number).solution.placement)
    for start in starts:
        if start.number < most:
            continue
        everybody = replace(start.solution, evicted=ground.victims.everybody(), fates={})
        yield everybody
        if oracle is None:
            start.placer.wanted = most
            lowest = start.solution if start.lowest else lowest_threshold(ground, start.placer, everybody)
            yield from _spared(ground, start.placer, lowest, everybody)
            continue
        known = list(_spared(ground, oracle, lowest_threshold(ground, oracle, everybody), everybody))
        yield from known
        yield _improved(oracle, min(known, key=lambda item: ground.victims.rank(item.evicted)))


def _improved(oracle: Oracle, known: Solution) -> Solution:
    """The cheapest solution if it is found, else one that exchanges do not make cheaper; each has its share of the budget."""
    left = oracle.ground.budget.left
    search = CheapestSet(oracle)
    first = search.cheaper_than(known, left * 3 // 5)
    if first is not None:
        return first
    better = exchanged(oracle, known, left // 5)
    return search.cheaper_than(better, 0) or better


def _spared(ground: Ground, placer: Placer, lowest: Solution, everybody: Solution) -> Iterator[Solution]:
    """Step 4 from the lowest threshold, and again from all if a victim breaks a budget."""
    solution = reprieved(ground, placer, lowest)
    yield solution
    if len(ground.victims.pods_over_budget(solution.evicted)):
        yield reprieved(ground, placer, everybody)


def _awaited(ground: Ground, solution: Solution) -> list[int]:
    """Leaving pods whose room the placement uses: it does not hold as long as they are there."""
    snapshot, unit = ground.snapshot, ground.unit
    if not snapshot.pods.leaving:
        return []
    mark = snapshot.mark()
    keep_promises(snapshot, unit.promised, -1)
    stands = holds(ground, solution.placement, solution.evicted)
    load = solution.placement.load(*snapshot.nodes.free.shape)
    short = (snapshot.nodes.free + ground.usage.freed(solution.evicted) < load) & (load > 0)
    snapshot.rollback(mark)
    if stands:
        return []
    slots = np.flatnonzero(short.any(axis=0)).tolist() or list(range(snapshot.nodes.size))
    return [pod for pod in snapshot.pods.leaving_on(slots) if pod not in unit.earlier.stayed]
