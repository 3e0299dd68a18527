"""Packing by trying everything, for a few pods: every selection, every node for every pod.

Once in the numbers of a problem, and once in pods and nodes as they are applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from muster.core.search.problem import Problem, SearchLeaf, SearchNode
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.resources import node_allocatable, pod_requests
from tests.dsl.groups import GroupPlan


def is_packable(problem: Problem) -> bool:
    """Whether the root can have its minimum."""
    seen: set[tuple[int, ...]] = set()
    for pods in _selections(problem.root):
        counts = tuple(sorted(pods))
        if counts not in seen and _fits(problem, counts, [row.tolist() for row in problem.free], {}):
            return True
        seen.add(counts)
    return False


def _selections(node: SearchNode) -> Iterator[tuple[int, ...]]:
    """The types of the pods of every selection."""
    if isinstance(node, SearchLeaf):
        yield from _of_leaf(node.supply, node.need)
    else:
        yield from _of_children(node.children, node.need)


def _of_leaf(supply: tuple[tuple[int, int], ...], need: int) -> Iterator[tuple[int, ...]]:
    if not supply:
        if not need:
            yield ()
        return
    (kind, number), rest = supply[0], supply[1:]
    for taken in range(min(number, need) + 1):
        for more in _of_leaf(rest, need - taken):
            yield (kind,) * taken + more


def _of_children(children: tuple[SearchNode, ...], need: int) -> Iterator[tuple[int, ...]]:
    if not need:
        yield ()
    elif len(children) >= need:
        yield from _of_children(children[1:], need)
        for first in _selections(children[0]):
            for more in _of_children(children[1:], need - 1):
                yield first + more


def _fits(
    problem: Problem, pods: tuple[int, ...], free: list[list[int]], held: dict[tuple[int, int], int]
) -> bool:
    if not pods:
        return True
    kind, demand = pods[0], problem.demand[pods[0]].tolist()
    for node, room in enumerate(free):
        if not problem.hosts[kind, node] or held.get((kind, node), 0) >= problem.per_node[kind]:
            continue
        if any(amount > left for amount, left in zip(demand, room, strict=True)):
            continue
        after = [list(each) for each in free]
        after[node] = [left - amount for amount, left in zip(demand, room, strict=True)]
        if _fits(problem, pods[1:], after, {**held, (kind, node): held.get((kind, node), 0) + 1}):
            return True
    return False


def is_placeable(plan: GroupPlan, nodes: Sequence[Node]) -> bool:
    """Whether the plan's minimum fits on empty nodes; pods have requests, node selectors and host ports alone."""
    return any(
        _place(pods, [(node, dict(node_allocatable(node)), set()) for node in nodes]) for pods in _sets(plan)
    )


def _sets(plan: GroupPlan) -> Iterator[tuple[Pod, ...]]:
    """The pods of every way to meet the minimum."""
    if plan.is_leaf:
        yield from combinations(plan.pods, plan.policy.minimum)
        return
    for children in combinations(plan.children, plan.policy.minimum):
        yield from _joined(children)


def _joined(children: Sequence[GroupPlan]) -> Iterator[tuple[Pod, ...]]:
    if not children:
        yield ()
        return
    for first in _sets(children[0]):
        for rest in _joined(children[1:]):
            yield first + rest


_Offer = tuple[Node, dict[str, int], set[int]]
"""A node, what is free there, and the host ports in use."""


def _place(pods: tuple[Pod, ...], offers: list[_Offer]) -> bool:
    if not pods:
        return True
    requests = pod_requests(pods[0].spec)
    ports = {port.host_port for item in pods[0].spec.containers for port in item.ports}
    for node, free, used in offers:
        selected = pods[0].spec.node_selector.items() <= node.labels.items()
        if (
            not selected
            or ports & used
            or any(amount > free.get(name, 0) for name, amount in requests.items() if amount)
        ):
            continue
        for name, amount in requests.items():
            free[name] = free.get(name, 0) - amount
        used.update(ports)
        found = _place(pods[1:], offers)
        for name, amount in requests.items():
            free[name] += amount
        used.difference_update(ports)
        if found:
            return True
    return False
