"""Affinity, anti-affinity and spread refuse exactly the nodes that a count over all pods, one by one, refuses."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.arrays import BoolArray
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.model.node import Node
from muster.model.pod import Pod, PodAffinityTerm
from muster.model.selectors import is_tolerated, selector_matches
from muster.plugins.pod_affinity import PodAffinityFilter, PodAntiAffinityFilter
from muster.plugins.topology_spread import SpreadFilter, SpreadKeyFilter
from tests.properties.strategies import clusters
from tests.properties.terms import pods_with_terms


@dataclass(frozen=True)
class Running:
    pod: Pod
    node: Node
    leaving: bool


def same_domain(left: Node, right: Node, key: str) -> bool:
    return key in left.labels and left.labels.get(key) == right.labels.get(key)


def selects(term: PodAffinityTerm, pod: Pod) -> bool:
    return selector_matches(term.label_selector, pod.labels)


def affinity_admits(pod: Pod, node: Node, running: list[Running]) -> bool:
    affinity = pod.spec.affinity
    terms = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    matching = [item for item in running if all(selects(term, item.pod) for term in terms)]
    if all(any(same_domain(item.node, node, term.topology_key) for item in matching) for term in terms):
        return True
    counted = any(term.topology_key in item.node.labels for item in matching for term in terms)
    own = all(selects(term, pod) for term in terms)
    return own and not counted and all(term.topology_key in node.labels for term in terms)


def anti_affinity_admits(pod: Pod, node: Node, running: list[Running]) -> bool:
    def refused_by(owner: Pod, other: Pod, where: Node) -> bool:
        affinity = owner.spec.affinity
        terms = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
        return any(selects(term, other) and same_domain(where, node, term.topology_key) for term in terms)

    return not any(
        refused_by(pod, item.pod, item.node) or refused_by(item.pod, pod, item.node) for item in running
    )


def spread_admits(pod: Pod, node: Node, nodes: tuple[Node, ...], running: list[Running]) -> bool:
    constraints = [
        item for item in pod.spec.topology_spread_constraints if item.when_unsatisfiable == "DoNotSchedule"
    ]
    keys = [item.topology_key for item in constraints]
    if any(key not in node.labels for key in keys):
        return False
    for item in constraints:
        counting = [
            other
            for other in nodes
            if all(key in other.labels for key in keys)
            and (item.node_affinity_policy == "Ignore" or _selected(pod, other))
            and (item.node_taints_policy == "Ignore" or _tolerated(pod, other))
        ]
        key = item.topology_key
        counts = {other.labels[key]: 0 for other in counting}
        for other in running:
            if (
                other.node in counting
                and not other.leaving
                and selector_matches(item.label_selector, other.pod.labels)
            ):
                counts[other.node.labels[key]] += 1
        fewest = min(counts.values(), default=0) if len(counts) >= (item.min_domains or 1) else 0
        ours = selector_matches(item.label_selector, pod.labels)
        if counts.get(node.labels[key], 0) + ours - fewest > item.max_skew:
            return False
    return True


def _selected(pod: Pod, node: Node) -> bool:
    return all(node.labels.get(key) == value for key, value in pod.spec.node_selector.items())


def _tolerated(pod: Pod, node: Node) -> bool:
    return all(
        taint.effect == "PreferNoSchedule" or is_tolerated(taint, pod.spec.tolerations)
        for taint in node.taints
    )


def others(*kinds: str) -> st.SearchStrategy[list[tuple[Pod, int, bool]]]:
    """Pods that run somewhere, some of them leaving."""
    running = st.tuples(pods_with_terms(kinds), st.integers(0, 6), st.sampled_from([False, False, True]))
    return st.lists(running, min_size=2, max_size=8)


class Case:
    """A cluster in both forms, and a pod to be placed."""

    def __init__(self, nodes: tuple[Node, ...], pod: Pod, running: list[tuple[Pod, int, bool]]) -> None:
        self.nodes = nodes
        self.running = [Running(item, nodes[place % len(nodes)], leaving) for item, place, leaving in running]
        self.snapshot, table = Snapshot(), SignatureTable()
        for node in nodes:
            self.snapshot.apply(NodePut(node))
        index = table.intern(pod)
        bound = [table.intern(item.pod) for item in self.running]
        self.snapshot.apply(SignaturesAdded(table.take_new()))
        for number, (item, signature) in enumerate(zip(self.running, bound, strict=True)):
            self.snapshot.apply(PodsBound((number,), (signature,), (item.node.name,), leaving=item.leaving))
        self.signature = self.snapshot.signatures[index]

    def by_node(self, mask: BoolArray) -> dict[str, bool]:
        return {name: bool(mask[slot]) for slot, name in enumerate(self.snapshot.nodes.names)}


@settings(max_examples=150, deadline=None)
@given(
    nodes=clusters,
    pod=pods_with_terms(("together", "apart", "all")),
    running=others("plain", "together", "apart", "all"),
)
def test_affinity_and_anti_affinity_equal_a_plain_count(
    nodes: tuple[Node, ...], pod: Pod, running: list[tuple[Pod, int, bool]]
) -> None:
    case = Case(nodes, pod, running)

    together = case.by_node(PodAffinityFilter().mask(case.signature, case.snapshot))
    apart = case.by_node(PodAntiAffinityFilter().mask(case.signature, case.snapshot))

    assert together == {node.name: affinity_admits(pod, node, case.running) for node in nodes}
    assert apart == {node.name: anti_affinity_admits(pod, node, case.running) for node in nodes}


@settings(max_examples=150, deadline=None)
@given(nodes=clusters, pod=pods_with_terms(("spread",)), running=others("plain"))
def test_spread_equals_a_plain_count(
    nodes: tuple[Node, ...], pod: Pod, running: list[tuple[Pod, int, bool]]
) -> None:
    case = Case(nodes, pod, running)

    within = SpreadFilter().mask(case.signature, case.snapshot)
    keys = SpreadKeyFilter().mask(case.signature, case.snapshot.nodes)

    admitted = case.by_node(within if keys is None else within & keys)
    assert admitted == {node.name: spread_admits(pod, node, nodes, case.running) for node in nodes}
