"""Packing problems in plain numbers: types by what they take, nodes by what is free, groups by how many they need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.core.search.packing import Budget, Effort, Packing, Verdict, pack
from muster.core.search.problem import MANY, Problem, SearchGroup, SearchLeaf, SearchNode
from muster.core.tree import GroupTree
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey


@dataclass(frozen=True)
class Some:
    """`need` of the pods (how many there are by type) or of the children."""

    need: int
    of: Mapping[int, int] | Sequence[Plan]


Plan = Mapping[int, int] | Some
"""Pods by type, all of them needed, or Some."""


@dataclass
class Packable:
    """takes: per type its amounts. free: per node its amounts. on: per type the nodes that host it; missing: all."""

    takes: Sequence[tuple[int, ...]]
    free: Sequence[tuple[int, ...]]
    plan: Plan
    on: Mapping[int, Sequence[int]] = field(default_factory=dict)
    alone: frozenset[int] = frozenset()
    """Types of which a node holds one pod."""
    exact: bool = True

    def problem(self) -> Problem:
        hosts = np.zeros((len(self.takes), len(self.free)), dtype=np.bool_)
        for kind, takes in enumerate(self.takes):
            for node in self.on.get(kind, range(len(self.free))):
                hosts[kind, node] = all(
                    free >= amount for free, amount in zip(self.free[node], takes, strict=True)
                )
        self._leaves = 0
        return Problem(
            demand=np.array(self.takes, dtype=np.int64).reshape(len(self.takes), -1),
            hosts=hosts,
            per_node=np.array([1 if kind in self.alone else MANY for kind in range(len(self.takes))]),
            free=np.array(self.free, dtype=np.int64).reshape(len(self.free), -1),
            slots=np.arange(len(self.free)),
            root=self._node(self.plan),
            types={},
            exact=self.exact,
        )

    def packed(self, steps: int = 20_000, effort: Effort = Effort.FULL) -> Packing:
        """What packing says, checked against the amounts."""
        problem = self.problem()
        free = problem.free.copy()
        nodes = np.arange(len(self.free))
        packing = pack(problem, (problem.root,), nodes, problem.free, Budget(steps), effort)
        assert (problem.free == free).all(), "the question changed what is free"
        if packing.verdict is Verdict.FOUND:
            self._check(problem, packing)
        return packing

    def _node(self, plan: Plan) -> SearchNode:
        if isinstance(plan, Some) and not isinstance(plan.of, Mapping):
            key = ObjectKey(COMPOSITE_POD_GROUP, "default", "group")
            return SearchGroup(GroupTree(key), plan.need, tuple(map(self._node, plan.of)))
        pods = plan.of if isinstance(plan, Some) else plan
        assert isinstance(pods, Mapping)
        need = plan.need if isinstance(plan, Some) else sum(pods.values())
        self._leaves += 1
        leaf = GroupTree(ObjectKey(POD_GROUP, "default", f"leaf-{self._leaves}"))
        return SearchLeaf(leaf, self._leaves - 1, need, tuple(sorted(pods.items())))

    def _check(self, problem: Problem, packing: Packing) -> None:
        free = problem.free.copy()
        by_leaf: dict[int, Counter[int]] = {}
        for leaf, kind, node, number in packing.placed:
            assert problem.hosts[kind, node], "a node that does not host the type"
            assert 0 < number <= problem.per_node[kind], "too many of a type on a node"
            free[node] -= number * problem.demand[kind]
            by_leaf.setdefault(leaf, Counter())[kind] += number
        assert (free >= 0).all(), "a node is over-committed"
        assert _holds(problem.root, by_leaf), "a minimum is missing"


def _holds(node: SearchNode, by_leaf: dict[int, Counter[int]]) -> bool:
    if isinstance(node, SearchLeaf):
        placed = by_leaf.get(node.index, Counter())
        supply = dict(node.supply)
        assert all(number <= supply.get(kind, 0) for kind, number in placed.items()), (
            "more pods than there are"
        )
        return placed.total() == node.need
    return sum(_holds(child, by_leaf) for child in node.children) >= node.need
