"""The door Protocol: whatever answers a problem within a budget of steps, and the bounded search that does by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from muster.core.node_table import NodeTable
from muster.core.search.domain_search import DomainPacking, place_in_domains
from muster.core.search.packing import Effort, pack
from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.core.search.steps import Budget


class Solver(Protocol):
    """Finds room for the minimum of a problem's root, every topology constraint kept, or proves that there is none.

    Called once for a unit that greedy placement failed. Steps, not time, are what it may spend, so that the same
    problem always gets the same answer. A frozen dataclass, as every plugin.
    """

    def place(self, problem: Problem, nodes: NodeTable, budget: Budget) -> DomainPacking:
        """nodes: the snapshot's, to read labels from."""
        ...


@dataclass(frozen=True)
class BoundedSearch:
    """The search of this package: over domains where a group is constrained, else packing alone."""

    def place(self, problem: Problem, nodes: NodeTable, budget: Budget) -> DomainPacking:
        if _is_constrained(problem.root):
            return place_in_domains(problem, nodes, budget)
        everywhere = np.arange(len(problem.slots))
        packing = pack(problem, (problem.root,), everywhere, problem.free, budget, Effort.FULL)
        return DomainPacking(packing, {})


def _is_constrained(node: SearchNode) -> bool:
    if node.group.topology_key is not None:
        return True
    return not isinstance(node, SearchLeaf) and any(map(_is_constrained, node.children))
