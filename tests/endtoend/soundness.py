"""What must hold at any revision, judged from List and ListDecisions alone, with sums of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from muster.v1.decision_pb2 import Decision
from muster.v1.object_pb2 import Object
from muster.v1.pod_pb2 import Pod

UNITS = {"m": 1, "": 1_000, "Mi": 1_000 << 20, "Gi": 1_000 << 30}
RESOURCES = ("cpu", "memory", "pods")


def thousandths(quantity: str) -> int:
    """A quantity as the tests write it, in thousandths."""
    number = quantity.rstrip("miGM")
    return int(number) * UNITS[quantity[len(number) :]]


def overcommitted(nodes: Iterable[Object], pods: Iterable[Object]) -> dict[str, list[str]]:
    """The nodes that give away more than they have, or do not exist, with the resources concerned."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for item in pods:
        if item.pod.spec.node_name:
            used[item.pod.spec.node_name].update(_needs(item.pod))
    has = {
        item.node.metadata.name: {
            resource: thousandths(item.node.status.allocatable[resource]) for resource in RESOURCES
        }
        for item in nodes
    }
    nothing: dict[str, int] = dict.fromkeys(RESOURCES, 0)
    faults = {
        name: [resource for resource in RESOURCES if amount[resource] > has.get(name, nothing)[resource]]
        for name, amount in used.items()
    }
    return {name: short for name, short in faults.items() if short}


def _needs(pod: Pod) -> dict[str, int]:
    requests = [container.resources.requests for container in pod.spec.containers]
    needs = {
        resource: sum(thousandths(each[resource]) for each in requests if resource in each)
        for resource in ("cpu", "memory")
    }
    return needs | {"pods": 1_000}


def half_gangs(groups: Iterable[Object], pods: Iterable[Object]) -> dict[str, int]:
    """The gangs of which some pods are bound, but fewer than the minimum, and how many."""
    bound = Counter(item.pod.spec.scheduling_group.pod_group_name for item in pods if item.pod.spec.node_name)
    minimum = {
        item.pod_group.metadata.name: item.pod_group.spec.scheduling_policy.gang.min_count for item in groups
    }
    return {name: bound[name] for name, least in minimum.items() if 0 < bound[name] < least}


def bound_twice(decisions: Iterable[Decision]) -> set[str]:
    """Pods, by uid, that more than one decision assigned."""
    times = Counter(uid for decision in decisions for uid in decision.assignments.uids)
    return {uid for uid, count in times.items() if count > 1}


def moved(before: dict[str, str], pods: Iterable[Object]) -> dict[str, str]:
    """Pods, by uid, that are not any more on the node on which they were seen, and where they are."""
    return {
        item.pod.metadata.uid: item.pod.spec.node_name
        for item in pods
        if before.get(item.pod.metadata.uid, item.pod.spec.node_name) != item.pod.spec.node_name
    }


def places(pods: Iterable[Object]) -> dict[str, str]:
    """The node of each bound pod, by uid."""
    return {item.pod.metadata.uid: item.pod.spec.node_name for item in pods if item.pod.spec.node_name}
