"""The door to the bounded search (KEP-4671 leaves out backtracking): one unit that greedy placement failed.

Says where the unit's minimum fits, that it fits nowhere (proved), or that the budget was spent. What to do with a
placement is for `core.found_placement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.core.decision import SearchEnd
from muster.core.domains import Domain
from muster.core.framework import Profile
from muster.core.pod_placement import PodPlacer
from muster.core.search import steps
from muster.core.search.packing import Verdict
from muster.core.search.problem import Problem, compile_problem
from muster.core.search.solver import BoundedSearch
from muster.core.search.steps import Budget
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.model.meta import ObjectKey


@dataclass(frozen=True, slots=True)
class FoundPlacement:
    """Nodes for the minimum of the problem's root, and the domain of each constrained group that takes part.

    counts: (leaf index, type, node index, number of pods).
    """

    problem: Problem
    counts: tuple[tuple[int, int, int, int], ...]
    domains: Mapping[ObjectKey, Domain]


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """How the search ended, what it spent of its budget, and what it found if it found something."""

    end: SearchEnd
    steps: int
    budget: int
    placement: FoundPlacement | None = None


def search(snapshot: Snapshot, unit: Unit, profile: Profile, placer: PodPlacer) -> SearchOutcome:
    """Look for a placement of the unit's minimum, which does not hold. Leaves the snapshot as it found it.

    Not worth asking where `greedy_is_exact`.
    """
    allowed = budget_of(unit, profile)
    budget = Budget(allowed)
    problem = compile_problem(snapshot, unit, profile, placer)
    types, resources = problem.demand.shape
    budget.spend(steps.compiling(types, resources, len(problem.slots)))
    solver = profile.search.solver or BoundedSearch()
    placed = solver.place(problem, snapshot.nodes, budget)
    packing = placed.packing
    placement = None
    if packing.verdict is Verdict.FOUND:
        placement = FoundPlacement(problem, packing.placed, placed.domains)
        end = SearchEnd.FOUND
    elif packing.verdict is Verdict.IMPOSSIBLE and problem.exact:
        end = SearchEnd.EXHAUSTED
    else:
        end = SearchEnd.BUDGET_SPENT
    return SearchOutcome(end, budget.spent, allowed, placement)


def budget_of(unit: Unit, profile: Profile) -> int:
    """The steps that the unit's search may take; 0 for none."""
    return int(profile.search.node_budget * unit.search_budget_share)


def greedy_is_exact(unit: Unit, snapshot: Snapshot, placer: PodPlacer) -> bool:
    """Whether no choice is left but how many equal pods each node holds, so that greedy placement cannot err."""
    root = unit.root
    kinds = set(root.pods.signatures)
    if not root.is_leaf or len(kinds) != 1 or unit.excluded_nodes:
        return False
    return all(placer.filters_locally(snapshot.signatures[kind]) for kind in kinds)
