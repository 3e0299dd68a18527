"""Whether a tree can be placed once some units are gone, asked of the search's packing: for small cases (semantics 5.6).

Better at it than the recursion, and a "no" is often a proof; but each question costs about a millisecond. The pods asked
for are those that are placed if everybody goes: as many of each leaf, and no other children unless they are alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.found_placement import assume_found
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Placement
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Budget, Packing, Verdict
from muster.core.search.problem import Problem, SearchLeaf, SearchNode, compile_problem
from muster.core.search.scaling import scaled
from muster.core.search.search import FoundPlacement
from muster.core.search.solver import BoundedSearch
from muster.core.tree import GroupTree, Unit
from muster.model.meta import ObjectKey

_MOST_NODES = 256
_MOST_STEPS = 1_200
"""One question takes no more of the move budget."""
_ASKING = 40
"""Steps that a question costs beside what the packing spends, and one that is answered by what is known already:"""
_KNOWN = 4
_MOST_KNOWN = 64
NOT_FOUND = DomainPacking(Packing(Verdict.UNKNOWN), {})


@dataclass(frozen=True, eq=False)
class Oracle:
    """wanted: the unit with exactly the pods as minimums that are placed when everybody goes."""

    ground: Ground
    wanted: Unit
    _known: list[tuple[IntArray, DomainPacking]] = field(default_factory=list)
    """What packings take of each node [N, R]: one that was found is an answer wherever it fits."""
    _short: list[int] = field(default_factory=list)
    """Sets for which nothing was found, one bit a unit: nothing is for any part of them."""

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
        room = room - self.ground.usage.freed(~evicted)[:, problem.slots].T
        self.ground.budget.spend(_KNOWN)
        gone = int.from_bytes(np.packbits(evicted).tobytes(), "big")
        if any(gone & ~short == 0 for short in self._short) or self._is_too_little(room):
            return NOT_FOUND
        for load, packing in self._known:
            if not ((load > room) & (load > 0)).any():
                return packing
        packing = self._packed(self._on(problem, requests, room))
        if packing.packing.verdict is Verdict.FOUND and len(self._known) < _MOST_KNOWN:
            load = np.zeros_like(room)
            for _, kind, node, number in packing.packing.placed:
                load[node] += number * requests[kind]
            self._known.append((load, packing))
        elif packing.packing.verdict is not Verdict.FOUND:
            self._short.append(gone)
        return packing

    def _packed(self, problem: Problem) -> DomainPacking:
        budget = Budget(min(_MOST_STEPS, self.ground.budget.left))
        budget.spend(_ASKING)
        packing = BoundedSearch().place(problem, self.ground.snapshot.nodes, budget)
        self.ground.budget.spend(budget.spent)
        return packing

    def _is_too_little(self, room: IntArray) -> bool:
        """Whether all nodes together lack something of what the pods ask for at least."""
        least, useful = self._least
        return bool((np.maximum(room[useful], 0).sum(axis=0) < least).any())

    @cached_property
    def _least(self) -> tuple[IntArray, BoolArray]:
        """[R] no selection of the wanted pods asks for less; [N] nodes that could take one."""
        problem, requests, _ = self._problem
        useful: BoolArray = np.logical_or.reduce(problem.hosts, axis=0)
        return _least_of(problem.root, requests), useful

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


def is_small(ground: Ground) -> bool:
    """Whether the oracle can be asked: nothing but amounts counts, and there are few nodes."""
    return ground.by_amounts and len(ground.snapshot.nodes.order) <= _MOST_NODES


def oracle_of(ground: Ground, whole: Placement) -> Oracle | None:
    """The oracle for as many pods as the placement has, which is that with everybody gone; None for large clusters."""
    if not is_small(ground):
        return None
    placed = Counter(map(ground.kinds.leaf_of, whole.ids))
    return Oracle(ground, replace(ground.unit, root=_wanted(ground.unit.root, placed)))


def _least_of(node: SearchNode, requests: IntArray) -> IntArray:
    """[R] the least that a group asks for, each resource by itself."""
    if isinstance(node, SearchLeaf):
        pods = [row for kind, number in node.supply for row in [requests[kind]] * min(number, node.need)]
        parts, need = np.array(pods, dtype=np.int64).reshape(-1, requests.shape[1]), node.need
    else:
        parts = np.array([_least_of(child, requests) for child in node.children], dtype=np.int64)
        parts, need = parts.reshape(-1, requests.shape[1]), node.need
    least: IntArray = np.sort(parts, axis=0)[:need].sum(axis=0)
    return least


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
