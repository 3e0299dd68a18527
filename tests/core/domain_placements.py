"""The domain search as a test asks it, with the checks of its packing that no test must forget."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from muster.core.cuts import cut
from muster.core.domains import CLUSTER, Domain
from muster.core.node_table import NodeTable
from muster.core.pod_placement import placer_of
from muster.core.search.domain_search import DomainPacking, place_in_domains
from muster.core.search.packing import Budget, Verdict
from muster.core.search.problem import Problem, SearchLeaf, SearchNode, compile_problem
from muster.core.tree import leaves
from tests.dsl import Cluster
from tests.dsl.groups import GroupPlan

ENOUGH = 200_000
"""Steps for any question of a test."""


@dataclass(frozen=True)
class Found:
    """What the search said. domains: by group name; pods: by leaf name, how many each node got."""

    verdict: Verdict
    steps: int
    domains: dict[str, str]
    pods: dict[str, dict[str, int]]


def find(cluster: Cluster, plan: GroupPlan, steps: int = ENOUGH) -> Found:
    """Search, and check that what is found holds and would be found again."""
    problem = problem_of(cluster, plan)
    nodes = cluster.snapshot.nodes
    budget = Budget(steps)
    outcome = place_in_domains(problem, nodes, budget)
    again = Budget(steps)
    assert place_in_domains(problem, nodes, again).packing == outcome.packing, "another run, another packing"
    assert again.spent == budget.spent
    if outcome.packing.verdict is Verdict.FOUND:
        check(problem, nodes, outcome)
    domains = {key.name: domain.value for key, domain in outcome.domains.items()}
    return Found(outcome.packing.verdict, budget.spent, domains, _pods(problem, nodes, outcome))


def problem_of(cluster: Cluster, plan: GroupPlan) -> Problem:
    unit, _ = cluster.unit(plan)
    placer = placer_of(cluster.snapshot, cluster.profile)
    return compile_problem(cluster.snapshot, unit, cluster.profile, placer)


def check(problem: Problem, nodes: NodeTable, outcome: DomainPacking) -> None:
    """Amounts, hosts, supplies, minimums and domains."""
    free = problem.free.copy()
    taken: dict[int, Counter[int]] = {}
    places: dict[int, set[int]] = {}
    on_node: Counter[tuple[int, int]] = Counter()
    for leaf, kind, node, number in outcome.packing.placed:
        assert problem.hosts[kind, node], "a node that does not take such a pod"
        free[node] -= number * problem.demand[kind]
        on_node[kind, node] += number
        taken.setdefault(leaf, Counter())[kind] += number
        places.setdefault(leaf, set()).add(int(problem.slots[node]))
    assert (free >= 0).all(), "a node is over-committed"
    assert all(number <= problem.per_node[kind] for (kind, _), number in on_node.items())

    def holds(node: SearchNode, outer: Domain) -> bool:
        used = _used(node, places)
        key = node.group.topology_key
        if used and key is not None:
            outer = _checked_domain(nodes, node, outer, outcome)
            assert used <= set([] if outer.slots is None else outer.slots.tolist()), "outside the domain"
        if isinstance(node, SearchLeaf):
            held = taken.get(node.index, Counter())
            assert all(number <= dict(node.supply)[kind] for kind, number in held.items())
            return held.total() >= node.need
        return sum([holds(child, outer) for child in node.children]) >= node.need

    assert holds(problem.root, CLUSTER), "the minimum does not hold"


def _checked_domain(nodes: NodeTable, node: SearchNode, outer: Domain, outcome: DomainPacking) -> Domain:
    domain = outcome.domains[node.group.key]
    (same,) = [known for known in cut(nodes, domain.key, outer).domains if known.value == domain.value]
    assert domain.slots is not None
    assert same.slots is not None
    assert domain.slots.tolist() == same.slots.tolist(), "not a domain inside the parent's"
    pins = nodes.slots_of({name for leaf in leaves(node.group) for name in leaf.bound_nodes})
    assert set(pins.tolist()) <= set(domain.slots.tolist()), "bound members run elsewhere"
    return domain


def _used(node: SearchNode, places: dict[int, set[int]]) -> set[int]:
    if isinstance(node, SearchLeaf):
        return places.get(node.index, set())
    return set().union(*(_used(child, places) for child in node.children))


def _pods(problem: Problem, nodes: NodeTable, outcome: DomainPacking) -> dict[str, dict[str, int]]:
    names: dict[int, str] = {}

    def name_leaves(node: SearchNode) -> None:
        if isinstance(node, SearchLeaf):
            names[node.index] = node.group.key.name
        else:
            for child in node.children:
                name_leaves(child)

    name_leaves(problem.root)
    pods: dict[str, dict[str, int]] = {}
    for leaf, _, node, number in outcome.packing.placed:
        on = pods.setdefault(names[leaf], {})
        name = nodes.names[int(problem.slots[node])]
        on[name] = on.get(name, 0) + number
    return pods
