"""Preemption (KEP-5710, semantics 5.6): make room once, at the root, for all of a unit, and never evict in vain.

1. Take leaving pods as gone.  2. Remove all potential victims and place the tree: N pods.  3. Lower the set to the
lowest priorities that suffice.  4. Put back whoever need not go.  5. Again from all where a budget is broken, and for
other root domains; the cheapest wins.  6. Improve on it where the case is small.  7. Check it by all filters.

When preemption may run at all is for `core.decide`; who is a potential victim is for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from muster.core.arrays import BoolArray
from muster.core.decision import Preemption, PreemptionEnd, Search, Status
from muster.core.domains import CLUSTER, Domain
from muster.core.preemption.beside import holds
from muster.core.preemption.ground import Ground
from muster.core.preemption.hitting_sets import cheapest
from muster.core.preemption.oracle import Oracle, oracle_of
from muster.core.preemption.placement import Placement
from muster.core.preemption.record import preemption_of
from muster.core.preemption.reprieve import lowest_threshold, reprieved
from muster.core.preemption.root_domains import cheapest_domains
from muster.core.preemption.solution import Placer, Solution
from muster.core.preemption.victims import victims_of
from muster.core.preemption_units import DisruptionUnits
from muster.core.promises import depart_leaving, keep_promises
from muster.core.recursion import Recursion
from muster.core.search.packing import Budget
from muster.core.trial import Trial

Minimum = Callable[[Recursion], tuple[Trial, Search]]
"""The root's minimum, by the recursion or by search."""


def preempt(recursion: Recursion, units: DisruptionUnits, minimum: Minimum, without: int) -> Preemption:
    """Who must go so that more than `without` pods of the unit are placed. Leaves the snapshot as it found it.

    recursion: the cycle's, with nothing assumed but what is promised to others.
    """
    snapshot = recursion.snapshot
    before = snapshot.mark()
    depart_leaving(snapshot, recursion.unit.earlier.stayed)
    settings = recursion.profile.preemption
    ground = Ground(recursion, victims_of(snapshot, units), Budget(settings.move_budget))
    whole = _with_everybody_gone(ground, minimum)
    solution = None
    if whole is not None and len(whole) > without:
        solution = _Choice(ground, whole).best()
    snapshot.rollback(before)
    if solution is None:
        end = PreemptionEnd.NO_FIT if whole is None else PreemptionEnd.NO_GAIN
        return Preemption(end, steps=ground.budget.spent)
    return preemption_of(ground, solution, _awaited(ground, solution), ground.budget.spent)


def _with_everybody_gone(ground: Ground, minimum: Minimum) -> Placement | None:
    """All that can be placed of the tree then; a search may help, once."""
    mark = ground.snapshot.mark()
    ground.remove(ground.victims.everybody())
    recursion = ground.fresh_recursion()
    trial, _ = minimum(recursion)
    placement = None
    if trial.status is Status.SUCCESS:
        recursion.fill(trial, CLUSTER)
        placement = ground.kinds.placement(trial, recursion.ledger)
    ground.snapshot.rollback(mark)
    return placement


@dataclass(slots=True)
class _Choice:
    """The cheapest solution among those that different ways lead to. whole: the placement with everybody gone."""

    ground: Ground
    whole: Placement

    def best(self) -> Solution | None:
        """The cheapest that all filters admit; None if none is, which only inexact amounts can bring about."""
        victims = self.ground.victims
        found = sorted(self._found(), key=lambda item: victims.rank(item.evicted))
        return next((item for item in found if holds(self.ground, item.placement, item.evicted)), None)

    def _found(self) -> Iterator[Solution]:
        everybody = Solution(self.ground.victims.everybody(), self.whole, {})
        oracle = oracle_of(self.ground, self.whole)
        known = list(self._by_thresholds(everybody, self._placer(oracle)))
        if oracle is not None:
            known.append(cheapest(oracle, min(known, key=self._rank)))
        else:
            for place, start in self._root_candidates():
                known += self._by_thresholds(start, place)
        yield from known
        yield everybody

    def _by_thresholds(self, everybody: Solution, place: Placer) -> Iterator[Solution]:
        victims = self.ground.victims
        solution = reprieved(self.ground, place, lowest_threshold(self.ground, place, everybody))
        yield solution
        if len(victims.pods_over_budget(solution.evicted)):
            yield reprieved(self.ground, place, everybody)

    def _root_candidates(self) -> Iterator[tuple[Placer, Solution]]:
        """Other domains for the root, each with a way to place in it and the placement there with everybody gone."""
        ground = self.ground
        number = ground.recursion.profile.preemption.root_candidates
        everybody = ground.victims.everybody()
        for domain in cheapest_domains(ground, self.whole, number):
            if ground.budget.left <= 0:
                return
            place = partial(self._placed, domain=domain)
            placement = place(everybody)
            if placement is not None:
                yield place, Solution(everybody, placement, {})

    def _placer(self, oracle: Oracle | None) -> Placer:
        return self._placed if oracle is None else oracle.place

    def _placed(self, evicted: BoolArray, domain: Domain = CLUSTER) -> Placement | None:
        """As many pods as are wanted, by the recursion."""
        root = self.ground.unit.root
        if domain is not CLUSTER:
            root = replace(root, topology_key=None)
        placement = self.ground.place(evicted, root, domain)
        return placement if placement is not None and len(placement) >= len(self.whole) else None

    def _rank(self, solution: Solution) -> tuple[object, ...]:
        return self.ground.victims.rank(solution.evicted)


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
