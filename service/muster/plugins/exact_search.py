"""Solver: an exact one, by the constraint solver CP-SAT of OR-tools. Off by default, and an extra to install.

Answers every problem in the end, both ways, but takes far more time than the bounded search where that succeeds. Its
time limit is deterministic, one worker searches, and the seed is fixed: the same problem gets the same answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from muster.core.arrays import CodeArray
from muster.core.node_table import NodeTable
from muster.core.search.domain_search import DomainPacking, chosen_domains
from muster.core.search.packing import IMPOSSIBLE, UNKNOWN, Budget, Packing, Verdict
from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.core.tree import leaves

_SECONDS_A_STEP = 7.5e-6
"""Of the solver's deterministic time, which is about that of a clock."""


def exact_search_is_installed() -> bool:
    """Whether the extra `exact` is there."""
    return find_spec("ortools") is not None


@dataclass(frozen=True)
class ExactSearch:
    """Variables: how many pods of a type each leaf has on each node, which groups hold, and which domains they take."""

    def place(self, problem: Problem, nodes: NodeTable, budget: Budget) -> DomainPacking:
        """The solver's answer. It counts steps only as a whole, so all of the budget counts as spent without one."""
        cp_model: Any = import_module("ortools.sat.python.cp_model")
        model = _Model(problem, nodes, cp_model.CpModel())
        model.build()
        solver = cp_model.CpSolver()
        solver.parameters.max_deterministic_time = budget.left * _SECONDS_A_STEP
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        status = solver.solve(model.model)
        spent = int(solver.response_proto.deterministic_time / _SECONDS_A_STEP)
        budget.spend(max(1, budget.left if status == cp_model.UNKNOWN else min(spent, budget.left)))
        if status == cp_model.INFEASIBLE:
            return DomainPacking(IMPOSSIBLE if problem.exact else UNKNOWN, {})
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return DomainPacking(UNKNOWN, {})
        placed = tuple(
            (*place, int(solver.value(count))) for place, count in model.counts.items() if solver.value(count)
        )
        packing = Packing(Verdict.FOUND, tuple(sorted(placed)))
        return DomainPacking(packing, chosen_domains(problem, nodes, packing))


@dataclass(slots=True)
class _Model:
    """The problem as constraints. counts: by (leaf index, type, node index)."""

    problem: Problem
    nodes: NodeTable
    model: Any
    counts: dict[tuple[int, int, int], Any] = field(default_factory=dict)

    def build(self) -> None:
        self.model.add(self._group(self.problem.root, ()) == 1)
        self._limit_nodes()

    def _group(self, node: SearchNode, choices: tuple[dict[int, Any], ...]) -> Any:  # noqa: ANN401
        """The variable that says whether a group holds. choices: per constrained ancestor, by node its domain's."""
        holds = self.model.new_bool_var("")
        if node.group.topology_key is not None:
            choices = (*choices, self._domains(node, node.group.topology_key, holds))
        if isinstance(node, SearchLeaf):
            placed = self._leaf(node, choices)
            self.model.add(sum(placed) == node.need * holds)
        else:
            children = [self._group(child, choices) for child in node.children]
            self.model.add(sum(children) >= node.need * holds)
            for child in children:
                self.model.add_implication(child, holds)
        return holds

    def _domains(self, node: SearchNode, key: str, holds: Any) -> dict[int, Any]:  # noqa: ANN401
        """By node index, the variable of the label's value there; one of them is chosen if the group holds."""
        codes = self.nodes.column(key).codes
        allowed = self._allowed(node, codes)
        chosen = {code: self.model.new_bool_var("") for code in allowed}
        self.model.add(sum(chosen.values()) == holds)
        return {
            place: chosen[code]
            for place, code in enumerate(codes[self.problem.slots].tolist())
            if code in chosen
        }

    def _allowed(self, node: SearchNode, codes: CodeArray) -> list[int]:
        """Values that the group may choose: those that nodes have, or the only one that bound members leave."""
        bound = {name for leaf in leaves(node.group) for name in leaf.bound_nodes}
        pinned = set(codes[self.nodes.slots_of(sorted(bound))].tolist())
        values = np.unique(codes[self.problem.slots]).tolist() if not pinned else sorted(pinned)
        return [code for code in values if code >= 0] if len(pinned) <= 1 else []

    def _leaf(self, leaf: SearchLeaf, choices: tuple[dict[int, Any], ...]) -> list[Any]:
        """The leaf's counts; above zero only on nodes of all chosen domains."""
        placed: list[Any] = []
        for kind, number in leaf.supply:
            of_kind: list[Any] = []
            for place in np.flatnonzero(self.problem.hosts[kind]).tolist():
                if all(place in choice for choice in choices):
                    most = min(number, leaf.need, int(self.problem.per_node[kind]))
                    count = self.counts[leaf.index, kind, place] = self.model.new_int_var(0, most, "")
                    for choice in choices:
                        self.model.add(count <= most * choice[place])
                    of_kind.append(count)
            self.model.add(sum(of_kind) <= number)
            placed += of_kind
        return placed

    def _limit_nodes(self) -> None:
        by_node: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for (_, kind, place), count in self.counts.items():
            by_node[place].append((kind, count))
        for place, counts in by_node.items():
            for resource, free in enumerate(self.problem.free[place].tolist()):
                taken = sum(int(self.problem.demand[kind, resource]) * count for kind, count in counts)
                self.model.add(taken <= free)
            for kind in {kind for kind, _ in counts}:
                of_kind = [count for other, count in counts if other == kind]
                self.model.add(sum(of_kind) <= int(self.problem.per_node[kind]))
