"""Whether a tree can be placed once some units are gone, asked of the search's packing: for small cases (semantics 5.6).

Better at it than the recursion, and a "no" is often a proof; but each question costs about a millisecond. The pods asked
for are those that are placed if everybody goes: as many of each leaf, and no other children unless they are alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.found_placement import assume_found
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Budget, Verdict
from muster.core.search.problem import Problem, compile_problem
from muster.core.search.scaling import scaled
from muster.core.search.search import FoundPlacement
from muster.core.search.solver import BoundedSearch
from muster.core.tree import GroupTree, Unit
from muster.model.meta import ObjectKey

_MOST_NODES = 256
_MOST_STEPS = 600
"""One question takes no more of the move budget."""
_ASKING = 20


@dataclass(frozen=True, eq=False)
class Oracle:
    """wanted: the unit with exactly the pods as minimums that are placed when everybody goes."""

    ground: Ground
    wanted: Unit

    @cached_property
    def _problem(self) -> tuple[Problem, IntArray, IntArray]:
        """The problem with everybody gone, requests [T, R] and room [N, R] not scaled."""
        ground, snapshot = self.ground, self.ground.snapshot
        mark = snapshot.mark()
        ground.remove(ground.victims.everybody())
        recursion = ground.recursion
        problem = compile_problem(snapshot, self.wanted, recursion.profile, recursion.placer)
        room = snapshot.nodes.free[:, problem.slots].T.copy()
        snapshot.rollback(mark)
        requests = np.zeros((len(problem.hosts), room.shape[1]), dtype=np.int64)
        for (signature, _), place in problem.types.items():
            row = snapshot.requests(signature)
            requests[place, : len(row)] = row
        return problem, requests, room

    @property
    def helpful(self) -> BoolArray:
        """[U] units that run on a node that could take a pod of the preemptor; others never need to go."""
        problem, _, _ = self._problem
        useful = np.zeros(self.ground.snapshot.nodes.size, dtype=np.bool_)
        useful[problem.slots[problem.hosts.any(axis=0)]] = True
        helpful = self.ground.victims.nobody()
        helpful[self.ground.usage.owners[useful[self.ground.usage.slots]]] = True
        return helpful

    def ask(self, evicted: BoolArray) -> DomainPacking:
        """Whether all wanted pods fit with these units [U] gone."""
        problem, requests, room = self._problem
        kept = self.ground.usage.freed(~evicted)[:, problem.slots].T
        problem = self._on(problem, requests, room - kept)
        budget = Budget(min(_MOST_STEPS, self.ground.budget.left))
        budget.spend(_ASKING)
        packing = BoundedSearch().place(problem, self.ground.snapshot.nodes, budget)
        self.ground.budget.spend(budget.spent)
        return packing

    def place(self, evicted: BoolArray) -> Placement | None:
        """Where they fit; None if they do not, or if that was not found out."""
        packing = self.ask(evicted)
        return self.placement(packing, evicted) if packing.packing.verdict is Verdict.FOUND else None

    def placement(self, packing: DomainPacking, evicted: BoolArray) -> Placement | None:
        """A packing that was found with these units [U] gone, in pods."""
        ground, snapshot = self.ground, self.ground.snapshot
        problem, _, _ = self._problem
        mark = snapshot.mark()
        ground.remove(evicted)
        recursion = ground.fresh_recursion()
        found = FoundPlacement(problem, packing.packing.placed, packing.domains)
        trial = assume_found(snapshot, self.wanted, recursion.placer, recursion.ledger, found)
        placement = None if trial is None else ground.kinds.placement(trial, recursion.ledger)
        snapshot.rollback(mark)
        return placement

    def _on(self, problem: Problem, requests: IntArray, room: IntArray) -> Problem:
        most = np.zeros(len(requests), dtype=np.int64)
        for kind, number in self._supply.items():
            most[problem.types[kind]] += number
        amounts = scaled(requests, room, problem.hosts, most)
        return replace(
            problem, demand=amounts.demand, free=amounts.free, exact=problem.exact and amounts.exact
        )

    @cached_property
    def _supply(self) -> Counter[tuple[int, frozenset[str]]]:
        """How many pods there are of each kind that some node takes."""
        problem, _, _ = self._problem
        nowhere: frozenset[str] = frozenset()
        supply: Counter[tuple[int, frozenset[str]]] = Counter()
        pending = [self.wanted.root]
        while pending:
            group = pending.pop()
            pending += group.children
            for pod, signature in zip(group.pods.ids, group.pods.signatures, strict=True):
                kind = signature, self.wanted.excluded_nodes.get(pod, nowhere)
                if kind in problem.types:
                    supply[kind] += 1
        return supply


def oracle_of(ground: Ground, whole: Placement) -> Oracle | None:
    """The oracle for as many pods as the placement has, which is that with everybody gone; None for large clusters."""
    if not ground.by_amounts or len(ground.snapshot.nodes.order) > _MOST_NODES:
        return None
    placed = Counter(map(ground.kinds.leaf_of, whole.ids))
    return Oracle(ground, replace(ground.unit, root=_wanted(ground.unit.root, placed)))


def _wanted(group: GroupTree, placed: Counter[ObjectKey]) -> GroupTree:
    """The group with what was placed of it as its minimum, less what was not placed."""
    if group.is_leaf:
        return replace(group, satisfied=0, minimum=placed[group.key])
    chosen = [child for child in group.children if _pods(child, placed)]
    sizes = {_rigid_size(child) for child in group.children}
    if len(sizes) == 1 and None not in sizes:
        return replace(group, minimum=len(chosen))
    children = tuple(_wanted(child, placed) for child in chosen)
    return replace(group, minimum=len(children), children=children, admissible=True)


def _pods(group: GroupTree, placed: Counter[ObjectKey]) -> int:
    return placed[group.key] + sum(_pods(child, placed) for child in group.children)


def _rigid_size(group: GroupTree) -> int | None:
    """How many pods a group has that takes part whole or not at all; None of any other."""
    if group.is_leaf:
        rigid = group.admissible and not group.satisfied and group.minimum == len(group.pods.ids)
        return group.minimum if rigid else None
    if group.minimum != len(group.children):
        return None
    sizes = [_rigid_size(child) for child in group.children]
    return None if None in sizes else sum(size for size in sizes if size is not None)
