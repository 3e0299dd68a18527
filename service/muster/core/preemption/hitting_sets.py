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
from muster.core.preemption.solution import Solution
from muster.core.preemption.victims import Cost, Victims
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Verdict

MOST_UNITS = 40
_BRANCHES_A_STEP = 2
Units = int
"""A set of units, one bit each, by their places among those looked at."""


def cheapest(oracle: Oracle, known: Solution) -> Solution:
    """A solution that costs less than the known one, if there is one and the budget lasts; else the known one."""
    victims = oracle.ground.victims
    places = np.flatnonzero(oracle.helpful).tolist()
    if len(places) > MOST_UNITS or not known.evicted.any():
        return known
    search = _HittingSets(oracle, victims, places, victims.cost(known.evicted))
    found = search.run()
    if found is None:
        return known
    evicted, packing = found
    placement = oracle.placement(packing, evicted)
    if placement is None:
        return known
    stay = [unit for unit in range(len(victims)) if not evicted[unit]]
    fates = dict.fromkeys(stay, Fate.MADE_WAY_FOR) | {
        unit: fate for unit, fate in known.fates.items() if not evicted[unit]
    }
    return Solution(evicted, placement, fates)


@dataclass(slots=True)
class _HittingSets:
    """places: the units looked at, most important first. bound: what an answer must stay below.

    demands: sets of which one unit must go. enough, short: sets known to suffice, and not to.
    """

    oracle: Oracle
    victims: Victims
    places: list[int]
    bound: Cost
    demands: list[Units] = field(default_factory=list)
    enough: list[tuple[Units, DomainPacking]] = field(default_factory=list)
    short: list[Units] = field(default_factory=list)
    _costs: dict[Units, Cost] = field(default_factory=dict)
    _best: tuple[Cost, Units | None] = field(init=False)
    _branches: int = 0

    def run(self) -> tuple[BoolArray, DomainPacking] | None:
        """The cheapest sufficient set below the bound, with a packing; None if there is none or steps run out."""
        budget = self.oracle.ground.budget
        while budget.left > 0:
            candidate = self._cheapest_hitting()
            if candidate is None:
                return None
            packing = self._suffices(candidate)
            if packing is not None:
                return self._mask(candidate), packing
            self._demand(candidate)
        return None

    def _cheapest_hitting(self) -> Units | None:
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

    def _demand(self, candidate: Units) -> None:
        """Grow a set that does not suffice, cheapest units first, and demand one of the others."""
        others = sorted(
            (bit for bit in _bits((1 << len(self.places)) - 1) if not bit & candidate), key=self._cost
        )
        low, high = 0, len(others)
        while low < high:
            middle = (low + high + 1) // 2
            if self._suffices(candidate | sum(others[:middle])) is None:
                low = middle
            else:
                high = middle - 1
        candidate |= sum(others[:low])
        for bit in others[low + 1 :]:
            if self._suffices(candidate | bit) is None:
                candidate |= bit
        self.demands.append(((1 << len(self.places)) - 1) & ~candidate)

    def _suffices(self, units: Units) -> DomainPacking | None:
        if any(units & ~short == 0 for short in self.short):
            return None
        for enough, packing in self.enough:
            if enough & ~units == 0:
                return packing
        packing = self.oracle.ask(self._mask(units))
        if packing.packing.verdict is Verdict.FOUND:
            self.enough.append((units, packing))
            return packing
        self.short.append(units)
        return None

    def _cost(self, units: Units) -> Cost:
        cost = self._costs.get(units)
        if cost is None:
            cost = self._costs[units] = self.victims.cost(self._mask(units))
        return cost

    def _mask(self, units: Units) -> BoolArray:
        mask = self.victims.nobody()
        mask[[self.places[bit.bit_length() - 1] for bit in _bits(units)]] = True
        return mask


def _bits(units: Units) -> list[Units]:
    """The set's units, each as a set."""
    bits = []
    while units:
        bit = units & -units
        bits.append(bit)
        units ^= bit
    return bits
