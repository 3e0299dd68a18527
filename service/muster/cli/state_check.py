"""An independent look at what a server has stored: no node over-committed, no half gang.

Reads the objects through List and adds up by itself; it shares no code with the scheduler that it checks.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from muster.client.client import Client
from muster.v1.cluster_service_pb2 import ListRequest
from muster.v1.node_pb2 import Node
from muster.v1.pod_group_pb2 import PodGroup
from muster.v1.pod_pb2 import Container, Pod

Amounts = dict[str, Fraction]

OVER = frozenset({"Succeeded", "Failed"})
PODS = "pods"
USUAL_PODS = "110"

_QUANTITY = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[a-zA-Z]*(?:[-+]?\d+)?)")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1_000),
    "": Fraction(1),
    **{suffix: Fraction(1_000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1_024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


@dataclass(frozen=True, slots=True)
class StateCheck:
    """What was looked at, and each fault in words."""

    nodes: int
    bound_pods: int
    groups: int
    faults: tuple[str, ...]


async def check_state(client: Client) -> StateCheck:
    """Checks all namespaces of the client's cluster; the queue should be idle, since kinds are read one by one."""
    nodes = [each.node async for each in client.list_all(ListRequest(kind="Node"))]
    pods = [each.pod async for each in client.list_all(ListRequest(kind="Pod"))]
    groups = [each.pod_group async for each in client.list_all(ListRequest(kind="PodGroup"))]
    bound = [pod for pod in pods if pod.spec.node_name and pod.status.phase not in OVER]
    faults = (*over_committed(nodes, bound), *half_gangs(groups, pods))
    return StateCheck(len(nodes), len(bound), len(groups), faults)


def over_committed(nodes: Iterable[Node], bound: Iterable[Pod]) -> list[str]:
    """Nodes on which pods ask for more than there is, of any resource, pod slots included."""
    used: defaultdict[str, Amounts] = defaultdict(dict)
    for pod in bound:
        _add(used[pod.spec.node_name], request_of(pod))
    offered = {node.metadata.name: _offered(node) for node in nodes}
    faults = [f"pods are bound to {name}, which does not exist" for name in sorted(set(used) - set(offered))]
    for name, amounts in sorted(used.items()):
        for resource, amount in sorted(amounts.items()):
            room = offered.get(name, {}).get(resource, Fraction())
            if name in offered and amount > room:
                faults.append(f"{name} has {float(room):g} {resource} and gives away {float(amount):g}")
    return faults


def half_gangs(groups: Iterable[PodGroup], pods: Iterable[Pod]) -> list[str]:
    """Gangs of which some pods are bound, but fewer than their minimum."""
    bound = Counter(
        (pod.metadata.namespace, pod.spec.scheduling_group.pod_group_name)
        for pod in pods
        if pod.spec.node_name
    )
    faults = []
    for group in groups:
        minimum = group.spec.scheduling_policy.gang.min_count
        count = bound[group.metadata.namespace, group.metadata.name]
        if 0 < count < minimum:
            faults.append(f"the gang {group.metadata.name} has {count} of {minimum} pods bound")
    return faults


def request_of(pod: Pod) -> Amounts:
    """What a pod takes of its node: containers together, or the largest init container, and one slot."""
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _amounts(_requested(container)))
    for container in pod.spec.init_containers:
        for resource, amount in _amounts(_requested(container)).items():
            total[resource] = max(total.get(resource, amount), amount)
    _add(total, _amounts(pod.spec.overhead))
    _add(total, {PODS: Fraction(1)})
    return total


def quantity(text: str) -> Fraction:
    """The exact value of a Kubernetes quantity. Raises ValueError."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    suffix = match["suffix"]
    if suffix in _SUFFIXES:
        return Fraction(match["number"]) * _SUFFIXES[suffix]
    return Fraction(f"{match['number']}{suffix}")


def _requested(container: Container) -> dict[str, str]:
    return {**container.resources.limits, **container.resources.requests}


def _amounts(quantities: Mapping[str, str]) -> Amounts:
    return {resource: quantity(text) for resource, text in quantities.items()}


def _add(total: Amounts, amounts: Amounts) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, Fraction()) + amount


def _offered(node: Node) -> Amounts:
    return _amounts({PODS: USUAL_PODS, **node.status.capacity, **node.status.allocatable})
