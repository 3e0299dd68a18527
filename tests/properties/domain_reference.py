"""Whether a tree fits, found by trying every choice of children, pods, domains and nodes: for tiny problems only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from muster.core.node_table import NodeTable
from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.core.tree import leaves

Pods = tuple[tuple[int, frozenset[int]], ...]
"""Type of each pod, and the nodes that its domain leaves it."""


def fits(problem: Problem, nodes: NodeTable) -> bool:
    everywhere = frozenset(range(len(problem.slots)))
    return any(_packs(problem, pods) for pods in _ways(problem, nodes, problem.root, everywhere))


def _ways(problem: Problem, nodes: NodeTable, node: SearchNode, outer: frozenset[int]) -> Iterator[Pods]:
    for domain in _domains(problem, nodes, node, outer):
        if isinstance(node, SearchLeaf):
            pods = [kind for kind, number in node.supply for _ in range(number)]
            for chosen in sorted(set(combinations(pods, node.need))):
                yield tuple((kind, domain) for kind in chosen)
        else:
            for children in combinations(node.children, node.need):
                for ways in product(*(list(_ways(problem, nodes, child, domain)) for child in children)):
                    yield tuple(pod for way in ways for pod in way)


def _domains(
    problem: Problem, nodes: NodeTable, node: SearchNode, outer: frozenset[int]
) -> list[frozenset[int]]:
    key = node.group.topology_key
    if key is None:
        return [outer]
    value = {place: nodes.labels[slot].get(key) for place, slot in enumerate(problem.slots.tolist())}
    names = {name for leaf in leaves(node.group) for name in leaf.bound_nodes}
    pins = {place for place, slot in enumerate(problem.slots.tolist()) if nodes.names[slot] in names}
    domains = (
        frozenset(place for place in outer if value[place] == one)
        for one in sorted({value[place] or "" for place in outer if value[place] is not None})
    )
    return [domain for domain in domains if pins <= domain]


def _packs(problem: Problem, pods: Pods) -> bool:
    free = problem.free.tolist()
    demand = problem.demand.tolist()
    room = [[int(most)] * len(free) for most in problem.per_node]
    hardest_first = sorted(pods, key=lambda pod: (len(pod[1]), [-amount for amount in demand[pod[0]]]))

    def place(index: int) -> bool:
        if index == len(hardest_first):
            return True
        kind, domain = hardest_first[index]
        for node in sorted(domain):
            left = [has - takes for has, takes in zip(free[node], demand[kind], strict=True)]
            if problem.hosts[kind, node] and room[kind][node] and min(left, default=0) >= 0:
                before, free[node] = free[node], left
                room[kind][node] -= 1
                if place(index + 1):
                    return True
                free[node] = before
                room[kind][node] += 1
        return False

    return place(0)
