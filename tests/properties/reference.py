"""Placement in its plain form: one pod at a time, one node at a time, in Python integers and no arrays.

What the fast paths must equal to the pod. It reads model objects alone and shares no code with the core.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.resources import node_allocatable, pod_requests
from muster.model.selectors import is_tolerated, node_term_matches


@dataclass
class ReferenceNode:
    node: Node
    free: dict[str, int]
    ports: set[int] = field(default_factory=set)

    @property
    def allocatable(self) -> dict[str, int]:
        return node_allocatable(self.node)


@dataclass
class Settings:
    """Weights of the local scores, and the strategy: "least", "most" or a curve of (utilization, score)."""

    fit: int = 1
    balanced: int = 1
    taints: int = 1
    affinity: int = 1
    strategy: str | tuple[tuple[int, int], ...] = "least"


def place(nodes: list[ReferenceNode], pod: Pod, count: int, settings: Settings) -> list[str]:
    """The node of each pod in turn; shorter than `count` when no node takes one more. Mutates the nodes."""
    placed = []
    for _ in range(count):
        able = [item for item in nodes if admits(item, pod)]
        if not able:
            break
        best = min(able, key=lambda item: (-score(item, nodes, pod, settings), item.node.name))
        take(best, pod)
        placed.append(best.node.name)
    return placed


def take(item: ReferenceNode, pod: Pod) -> None:
    for resource, amount in pod_requests(pod.spec).items():
        item.free[resource] = item.free.get(resource, 0) - amount
    item.ports |= _ports(pod)


def admits(item: ReferenceNode, pod: Pod) -> bool:
    node, spec = item.node, pod.spec
    if node.unschedulable:
        return False
    if any(t.effect != "PreferNoSchedule" and not is_tolerated(t, spec.tolerations) for t in node.taints):
        return False
    if any(node.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    if item.ports & _ports(pod):
        return False
    requests = pod_requests(spec)
    return all(not amount or item.free.get(resource, 0) >= amount for resource, amount in requests.items())


def score(item: ReferenceNode, nodes: list[ReferenceNode], pod: Pod, settings: Settings) -> int:
    return (
        settings.fit * _fit(item, pod, settings.strategy)
        + settings.balanced * _balanced(item, pod)
        + settings.taints * _taints(item, nodes, pod)
        + settings.affinity * _affinity(item, pod)
    )


def _left(item: ReferenceNode, pod: Pod, resource: str) -> int:
    return max(0, item.free.get(resource, 0) - pod_requests(pod.spec).get(resource, 0))


def _fit(item: ReferenceNode, pod: Pod, strategy: str | tuple[tuple[int, int], ...]) -> int:
    scores = []
    for resource in ("cpu", "memory"):
        offered = item.allocatable.get(resource, 0)
        if offered:
            left = _left(item, pod, resource)
            used = (offered - left) * 100 // offered
            if strategy == "least":
                scores.append(left * 100 // offered)
            else:
                scores.append(used if isinstance(strategy, str) else _on_curve(used, strategy))
    return sum(scores) // len(scores) if scores else 0


def _on_curve(used: int, curve: tuple[tuple[int, int], ...]) -> int:
    if used <= curve[0][0]:
        return curve[0][1]
    for (left, low), (right, high) in itertools.pairwise(curve):
        if used < right:
            return low + (high - low) * (used - left) // (right - left)
    return curve[-1][1]


def _balanced(item: ReferenceNode, pod: Pod) -> int:
    offered = {name: item.allocatable.get(name, 0) for name in ("cpu", "memory")}
    used = [(all_of - _left(item, pod, name)) * 10000 // all_of for name, all_of in offered.items() if all_of]
    if not used:
        return 100
    mean = Fraction(sum(used), len(used))
    variance = sum(((item - mean) ** 2 for item in used), Fraction(0)) / len(used)
    scaled = variance * len(used) ** 2
    assert scaled.denominator == 1
    return 100 - isqrt(int(scaled)) // len(used) * 100 // 10000


def _taints(item: ReferenceNode, nodes: list[ReferenceNode], pod: Pod) -> int:
    def avoided(node: Node) -> int:
        return sum(
            taint.effect == "PreferNoSchedule" and not is_tolerated(taint, pod.spec.tolerations)
            for taint in node.taints
        )

    most = max(avoided(other.node) for other in nodes)
    return (most - avoided(item.node)) * 100 // most if most else 0


def _affinity(item: ReferenceNode, pod: Pod) -> int:
    affinity = pod.spec.affinity
    preferred = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
    total = sum(term.weight for term in preferred)
    met = sum(
        term.weight
        for term in preferred
        if node_term_matches(term.preference, item.node.name, item.node.labels)
    )
    return met * 100 // total if total else 0


def _ports(pod: Pod) -> set[int]:
    return {port.host_port for item in pod.spec.containers for port in item.ports if port.host_port}
