"""Whether a tree can be placed once some units are gone, asked of the search's packing: for small cases (semantics 5.6).

Better at it than the recursion, and a "no" is often a proof; but each question costs about a millisecond. So answers
are kept: what was found holds wherever it fits or can be made to fit, what was not found is not for where there is less.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.found_placement import assume_found
from muster.core.preemption.answers import Answers
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.preemption.wanted import wanted_tree
from muster.core.preemption.wanted_room import WantedRoom, wanted_room
from muster.core.search.backtracking import Backtracking, backtracking_of
from muster.core.search.domain_search import DomainPacking, chosen_domains
from muster.core.search.packing import Budget, Packing, Verdict
from muster.core.search.problem import Problem, compile_problem
from muster.core.search.scaling import scaled
from muster.core.search.search import FoundPlacement
from muster.core.search.solver import BoundedSearch
from muster.core.tree import Unit, leaves

_MOST_NODES = 256
_MOST_STEPS = 1_200
"""One question takes no more of the move budget."""
_ASKING = 40
"""Steps that packing anew costs beside what it spends, and a question that is answered by what is known already:"""
_KNOWN = 4
_MOST_TRIED, _BACKTRACKING = 250, 20
"""Pods that may be placed in trying everything, for about a step each, and what that costs besides."""
NOT_FOUND = DomainPacking(Packing(Verdict.UNKNOWN), {})


@dataclass(frozen=True, eq=False)
class Oracle:
    """wanted: the unit with exactly the pods as minimums that are placed when everybody goes."""

    ground: Ground
    wanted: Unit

    @cached_property
    def _problem(self) -> Problem:
        """The problem with everybody gone; its amounts are not used."""
        return self._compiled[0]

    @cached_property
    def _room(self) -> WantedRoom:
        problem, free = self._compiled
        snapshot = self.ground.snapshot
        requests = np.zeros((len(problem.hosts), len(free)), dtype=np.int64)
        for (signature, _), place in problem.types.items():
            row = snapshot.requests(signature)
            requests[place, : len(row)] = row
        return wanted_room(problem, requests, free, self.ground.usage, self._supply)

    @cached_property
    def _compiled(self) -> tuple[Problem, IntArray]:
        """The problem, and what is free [R, slots], with everybody gone."""
        ground, snapshot = self.ground, self.ground.snapshot
        mark = snapshot.mark()
        ground.remove(ground.victims.everybody())
        recursion = ground.recursion
        problem = compile_problem(snapshot, self.wanted, recursion.profile, recursion.placer)
        free = snapshot.nodes.free.copy()
        snapshot.rollback(mark)
        return problem, free

    @property
    def helpful(self) -> BoolArray:
        """[U] units that run on a node that could take a pod of the preemptor; others never need to go."""
        helpful = self.ground.victims.nobody()
        helpful[self._room.owners] = True
        return helpful

    def ask(self, evicted: BoolArray) -> DomainPacking:
        """Whether all wanted pods fit with these units [U] gone."""
        left = self._room.left(evicted)
        self.ground.budget.spend(_KNOWN)
        if (left.sum(axis=0) < self._room.least).any() or self._answers.is_short(left):
            return NOT_FOUND
        known = self._answers.fitting(left)
        if known is not None:
            return known
        packing = self._answers.adjusted(left) or self._packed(left)
        self._answers.keep(left, packing)
        return packing

    def _packed(self, left: IntArray) -> DomainPacking:
        """The packing for a room that nothing is known of."""
        if self._backtracking is not None:
            packing, tried = self._backtracking.place(left.tolist(), _MOST_TRIED)
            self.ground.budget.spend(_BACKTRACKING + tried)
            if packing.verdict is not Verdict.UNKNOWN:
                domains = chosen_domains(self._problem, self.ground.snapshot.nodes, packing)
                return DomainPacking(packing, domains)
        return self._anew(self._room.of_problem(left))

    def _anew(self, room: IntArray) -> DomainPacking:
        amounts = scaled(self._room.demand, room, self._problem.hosts, self._supply)
        exact = self._problem.exact and amounts.exact
        problem = replace(self._problem, demand=amounts.demand, free=amounts.free, exact=exact)
        budget = Budget(min(_MOST_STEPS, self.ground.budget.left))
        budget.spend(_ASKING)
        packing = BoundedSearch().place(problem, self.ground.snapshot.nodes, budget)
        self.ground.budget.spend(budget.spent)
        return packing

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self._problem, self._room)

    @cached_property
    def _backtracking(self) -> Backtracking | None:
        room = self._room
        return backtracking_of(
            self._problem, self.ground.snapshot.nodes, room.nodes.tolist(), room.demand.tolist()
        )

    def may_fit(self, evicted: BoolArray) -> bool:
        """Whether it is worth asking: it costs too little to rule anything out beforehand."""
        return bool(evicted.any())

    def fits(self, evicted: BoolArray) -> bool:
        """Whether they were found to fit."""
        return self.ask(evicted).packing.verdict is Verdict.FOUND

    def place(self, evicted: BoolArray) -> Placement | None:
        """Where they fit; None if they do not, or if that was not found out."""
        packing = self.ask(evicted)
        return self.placement(packing, evicted) if packing.packing.verdict is Verdict.FOUND else None

    def placement(self, packing: DomainPacking, evicted: BoolArray) -> Placement | None:
        """A packing that was found with these units [U] gone, in pods."""
        ground, snapshot = self.ground, self.ground.snapshot
        mark = snapshot.mark()
        ground.remove(evicted)
        recursion = ground.fresh_recursion()
        found = FoundPlacement(self._problem, packing.packing.placed, packing.domains)
        trial = assume_found(snapshot, self.wanted, recursion.placer, recursion.ledger, found)
        placement = None if trial is None else ground.kinds.placement(trial, recursion.ledger)
        snapshot.rollback(mark)
        return placement

    @cached_property
    def _supply(self) -> IntArray:
        """[T] how many pods there are of each type."""
        problem = self._problem
        nowhere: frozenset[str] = frozenset()
        supply = np.zeros(len(problem.hosts), dtype=np.int64)
        for leaf in leaves(self.wanted.root):
            for pod, signature in zip(leaf.pods.ids, leaf.pods.signatures, strict=True):
                kind = problem.types.get((signature, self.wanted.excluded_nodes.get(pod, nowhere)))
                if kind is not None:
                    supply[kind] += 1
        return supply


def is_small(ground: Ground) -> bool:
    """Whether the oracle can be asked: nothing but amounts counts, and there are few nodes."""
    return ground.by_amounts and len(ground.snapshot.nodes.order) <= _MOST_NODES


def oracle_of(ground: Ground, whole: Placement) -> Oracle | None:
    """The oracle for as many pods as the placement has, which is that with everybody gone; None for large clusters."""
    if not is_small(ground):
        return None
    placed = Counter(map(ground.kinds.leaf_of, whole.ids))
    return Oracle(ground, replace(ground.unit, root=wanted_tree(ground.unit.root, placed)))
