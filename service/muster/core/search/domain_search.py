"""The search over domains for trees with topology constraints (KEP-6012, where the recursion does not backtrack).

One question, asked on every level: do these groups fit together in this domain? Constrained groups go to sub-domains,
each checked by the same question there; what is left without constraints is packed. Three levels of effort share the
budget. "Impossible" is said only where it is proved; an answer holds for all domains and groups that are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.domains import CLUSTER, Domain
from muster.core.node_table import NodeTable
from muster.core.search import steps
from muster.core.search.domain_assignment import Assignment
from muster.core.search.domain_form import form_of
from muster.core.search.domain_joint import JointSearch
from muster.core.search.domain_measures import measures_of, with_limits_as_room
from muster.core.search.domain_memo import IMPOSSIBLE, Answer
from muster.core.search.domain_parts import Parts, PartTable
from muster.core.search.domain_questions import Questions
from muster.core.search.domain_regions import Region, regions_of
from muster.core.search.packing import Packing, Verdict
from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.core.search.steps import Budget
from muster.model.meta import ObjectKey

_SHARES = (25, 60)
"""Percent of the budget that the first levels may use; those that follow have the rest."""
_LEVELS = 8


@dataclass(frozen=True, slots=True)
class DomainPacking:
    """A packing, and the domain of every constrained group that takes part in it."""

    packing: Packing
    domains: dict[ObjectKey, Domain]


def place_in_domains(problem: Problem, nodes: NodeTable, budget: Budget) -> DomainPacking:
    """Whether the problem's root can have its minimum with every topology constraint kept. nodes: the snapshot's."""
    problem = with_limits_as_room(problem)
    types, resources = problem.demand.shape
    budget.spend(steps.preparing_domains(types, resources, len(problem.slots)))
    measures = measures_of(problem)
    root = PartTable(nodes, measures).part(problem.root)
    if root is None:
        return _outcome(problem, Verdict.IMPOSSIBLE)
    regions = regions_of(problem, nodes, root.keys, measures)
    given = budget.left
    questions = Questions(problem, regions, Budget(0), _resolve)
    whole, parts = regions.whole(), (root,)
    answer = Answer(Verdict.UNKNOWN)
    for level in range(_LEVELS):
        share = _SHARES[level] if level < len(_SHARES) else 100
        questions.level = level
        questions.budget = Budget(given * share // 100 - (given - budget.left))
        answer = questions.ask(whole, parts)
        budget.spend(questions.budget.spent)
        if answer.verdict is not Verdict.UNKNOWN or budget.left <= 0:
            break
    if answer.verdict is not Verdict.FOUND:
        return _outcome(problem, answer.verdict)
    placed = tuple(sorted(questions.placed(whole, parts, answer)))
    packing = Packing(Verdict.FOUND, placed)
    return DomainPacking(packing, chosen_domains(problem, nodes, packing))


def chosen_domains(problem: Problem, nodes: NodeTable, packing: Packing) -> dict[ObjectKey, Domain]:
    """The domains that a packing amounts to: those of constrained groups that have pods in it."""
    used: dict[int, list[int]] = {}
    for leaf, _, node, _ in packing.placed:
        used.setdefault(leaf, []).append(node)
    domains: dict[ObjectKey, Domain] = {}

    def visit(node: SearchNode, outer: Domain) -> None:
        at = _nodes_used(node, used)
        key = node.group.topology_key
        if not at:
            return
        if key is not None:
            outer = domains[node.group.key] = _domain_of(nodes, key, int(problem.slots[at[0]]), outer)
        for child in node.children if not isinstance(node, SearchLeaf) else ():
            visit(child, outer)

    visit(problem.root, CLUSTER)
    return domains


def _outcome(problem: Problem, verdict: Verdict) -> DomainPacking:
    """Without a packing. Filters that read other nodes only narrow what the problem allows, but no proof is claimed."""
    known = verdict if problem.exact else Verdict.UNKNOWN
    return DomainPacking(Packing(known), {})


def _resolve(questions: Questions, region: Region, parts: Parts) -> Answer:
    """The answer to a question that the bounds leave open."""
    form = form_of(questions.regions, region, parts)
    if form is None:
        return IMPOSSIBLE
    if not form.tops:
        return questions.flat(region, parts)
    key = questions.regions.coarsest(region, sorted({entry.part.key or "" for entry in form.tops}))
    if key is None:
        return JointSearch(questions, region, parts).solve()
    assignment = Assignment(questions, region, parts, form, key)
    answer = assignment.solve()
    if answer.verdict is Verdict.UNKNOWN and assignment.unsettled:
        return JointSearch(questions, region, parts).solve()
    return answer


def _nodes_used(node: SearchNode, used: dict[int, list[int]]) -> list[int]:
    if isinstance(node, SearchLeaf):
        return used.get(node.index, [])
    return [place for child in node.children for place in _nodes_used(child, used)]


def _domain_of(nodes: NodeTable, key: str, slot: int, outer: Domain) -> Domain:
    """The domain of a label inside an outer one that holds a node."""
    column = nodes.column(key)
    code = column.codes[slot]
    within = np.flatnonzero(nodes.present) if outer.slots is None else outer.slots
    return Domain(key, column.values[code], within[column.codes[within] == code])
