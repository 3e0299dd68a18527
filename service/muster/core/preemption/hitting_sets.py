"""The cheapest set of victims of a small case, by implicit hitting sets (semantics 5.6, the improvement step).

A set of units that does not suffice is grown to a largest such set; whoever suffices must take a unit from outside it.
The cheapest set that meets all these demands costs no more than the cheapest answer, and is the answer once the tree
fits with it gone. Each round either ends the search or adds a demand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray
from muster.core.decision import Fate
from muster.core.preemption.oracle import Oracle
from muster.core.preemption.placement import Placement
from muster.core.preemption.solution import Solution
from muster.core.preemption.victims import Cost
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Verdict

MOST_UNITS = 40
_BRANCHES_A_STEP = 2
Units = int
"""A set of units, one bit each, by their places among those looked at."""


class CheapestSet:
    """The search for the cheapest set of victims; may be left off and gone on with."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        places = np.flatnonzero(oracle.helpful).tolist()
        self._search = _HittingSets(oracle, places) if len(places) <= MOST_UNITS else None

    def cheaper_than(self, known: Solution, reserve: int) -> Solution | None:
        """The known solution or a cheaper one, none being cheaper still as far as the packing can tell.

        None if that is not found out before only `reserve` steps of the budget are left, or if there are too many units.
        """
        search, budget = self._search, self._oracle.ground.budget
        if search is None:
            return None
        search.bound = self._oracle.ground.victims.cost(known.evicted)
        while budget.left > reserve:
            candidate = search.cheapest_hitting()
            if candidate is None:
                return known
            packing = search.suffices(candidate)
            if packing is not None:
                evicted = search.mask(candidate)
                return _solution(evicted, self._oracle.placement(packing, evicted), known)
            search.demand_more(candidate)
        return None


def _solution(evicted: BoolArray, placement: Placement | None, known: Solution) -> Solution | None:
    if placement is None:
        return None
    stay = dict.fromkeys(np.flatnonzero(~evicted).tolist(), Fate.MADE_WAY_FOR)
    return Solution(
        evicted, placement, stay | {unit: known.fates[unit] for unit in stay if unit in known.fates}
    )


@dataclass(slots=True)
class _HittingSets:
    """places: the units looked at, most important first. bound: what an answer must stay below.

    demands: sets of which one unit must go. enough, short: sets known to suffice, and not to.
    """

    oracle: Oracle
    places: list[int]
    bound: Cost = field(init=False)
    demands: list[Units] = field(default_factory=list)
    enough: list[tuple[Units, DomainPacking]] = field(default_factory=list)
    short: list[Units] = field(default_factory=list)
    _costs: dict[Units, Cost] = field(default_factory=dict)
    _best: tuple[Cost, Units | None] = field(init=False)
    _branches: int = 0

    def cheapest_hitting(self) -> Units | None:
        """The cheapest set below the bound that meets all demands so far; None if every such set costs more."""
        self._best, self._branches = (self.bound, None), 0
        self._branch(0, 0)
        self.oracle.ground.budget.spend(self._branches // _BRANCHES_A_STEP)
        return self._best[1]

    def _branch(self, chosen: Units, barred: Units) -> None:
        """Extend a set by units that are not barred until it meets all demands, below the best known cost."""
        self._branches += 1
        unmet = [demand & ~barred for demand in self.demands if not demand & chosen]
        if self._least(chosen, unmet) >= self._best[0]:
            return
        if not unmet:
            self._best = self._cost(chosen), chosen
            return
        options = sorted(_bits(min(unmet, key=int.bit_count)), key=lambda bit: self._cost(chosen | bit))
        for bit in options:
            self._branch(chosen | bit, barred)
            barred |= bit

    def _least(self, chosen: Units, unmet: list[Units]) -> Cost:
        """No set that extends the chosen one and meets the demands costs less: disjoint demands add up."""
        over, highest, total, units, pods = self._cost(chosen)
        seen = 0
        for demand in sorted(unmet, key=int.bit_count):
            if demand & seen or not demand:
                continue
            seen |= demand
            costs = [self._cost(bit) for bit in _bits(demand)]
            highest = max(highest, min(cost[1] for cost in costs))
            total += min(cost[2] for cost in costs)
            pods += min(cost[4] for cost in costs)
            units += 1
        return over, highest, total, units, pods

    def demand_more(self, candidate: Units) -> None:
        """Grow a set that does not suffice, cheapest units first, and demand one of the others."""
        others = sorted(
            (bit for bit in _bits((1 << len(self.places)) - 1) if not bit & candidate), key=self._cost
        )
        low, high = 0, len(others)
        while low < high:
            middle = (low + high + 1) // 2
            if self.suffices(candidate | sum(others[:middle])) is None:
                low = middle
            else:
                high = middle - 1
        candidate |= sum(others[:low])
        for bit in others[low + 1 :]:
            if self.suffices(candidate | bit) is None:
                candidate |= bit
        self.demands.append(((1 << len(self.places)) - 1) & ~candidate)

    def suffices(self, units: Units) -> DomainPacking | None:
        """A packing with these units gone, if one was found."""
        if any(units & ~short == 0 for short in self.short):
            return None
        for enough, packing in self.enough:
            if enough & ~units == 0:
                return packing
        packing = self.oracle.ask(self.mask(units))
        if packing.packing.verdict is Verdict.FOUND:
            self.enough.append((units, packing))
            return packing
        self.short.append(units)
        return None

    def _cost(self, units: Units) -> Cost:
        cost = self._costs.get(units)
        if cost is None:
            cost = self._costs[units] = self.oracle.ground.victims.cost(self.mask(units))
        return cost

    def mask(self, units: Units) -> BoolArray:
        """The set as a mask [U] over all units."""
        mask = self.oracle.ground.victims.nobody()
        width = -(-len(self.places) // 8)
        bits = np.frombuffer(units.to_bytes(width, "little"), dtype=np.uint8)
        mask[self.places] = np.unpackbits(bits, bitorder="little", count=len(self.places))
        return mask


def _bits(units: Units) -> list[Units]:
    """The set's units, each as a set."""
    bits = []
    while units:
        bit = units & -units
        bits.append(bit)
        units ^= bit
    return bits
