"""Affinity, anti-affinity and spread refuse exactly the nodes that a count over all pods, one by one, refuses."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=150, deadline=None)
@given(
    nodes=clusters,
    pod=pods_with_terms(),
    others=st.lists(st.tuples(pods_with_terms(), st.integers(0, 6), st.booleans()), max_size=6),
)
def test_pod_filters_equal_a_plain_count(
    nodes: tuple[Node, ...], pod: Pod, others: list[tuple[Pod, int, bool]]
) -> None:
    snapshot, table = Snapshot(), SignatureTable()
    for node in nodes:
        snapshot.apply(NodePut(node))
    index = table.intern(pod)
    running = [Running(other, nodes[place % len(nodes)], leaving) for other, place, leaving in others]
    for number, item in enumerate(running):
        bound = table.intern(item.pod)
        snapshot.apply(SignaturesAdded(table.take_new()))
        snapshot.apply(PodsBound((number,), (bound,), (item.node.name,), leaving=item.leaving))
    snapshot.apply(SignaturesAdded(table.take_new()))
    signature = snapshot.signatures[index]

    affinity = PodAffinityFilter().mask(signature, snapshot)
    anti_affinity = PodAntiAffinityFilter().mask(signature, snapshot)
    spread = SpreadFilter().mask(signature, snapshot)
    keys = SpreadKeyFilter().mask(signature, snapshot.nodes)

    for node in nodes:
        slot = snapshot.nodes.slot(node.name)
        assert slot is not None
        assert affinity[slot] == affinity_admits(pod, node, running)
        assert anti_affinity[slot] == anti_affinity_admits(pod, node, running)
        assert (spread[slot] and (keys is None or keys[slot])) == spread_admits(pod, node, nodes, running)
