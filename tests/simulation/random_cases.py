"""Random clusters, and random units to add to them: small enough to be quick, full enough that all outcomes come up."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from muster.v1.object_pb2 import Object
from tests.endtoend.service import member
from tests.simulation.asking import labelled

PRIORITIES = (0, 0, 1, 2)


def nodes(random: Random, first: int, count: int) -> list[Object]:
    """Nodes in two blocks of two racks, some of them tainted."""
    made = []
    for i in range(first, first + count):
        block = random.randrange(2)
        rack = f"{block}-{random.randrange(2)}"
        each = labelled(f"n{i}", str(random.choice((2, 4, 6))), block=str(block), rack=rack)
        if random.random() < 0.15:
            each.node.spec.taints.add(key="own", effect="NoSchedule")
        made.append(each)
    return made


def unit(random: Random, name: str) -> list[Object]:
    """A leaf, or a tree of two levels, with its pods; one priority for all of it."""
    priority = random.choice(PRIORITIES)
    if random.random() < 0.5:
        return list(_leaf(random, name, priority, ""))
    root = Object()
    root.composite_pod_group.metadata.name = name
    children = random.randint(2, 3)
    spec = root.composite_pod_group.spec
    spec.priority = priority
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "root"
    spec.scheduling_policy.gang.min_group_count = random.randint(1, children)
    if random.random() < 0.5:
        spec.scheduling_constraints.topology.add(key="block")
    leaves = [each for i in range(children) for each in _leaf(random, f"{name}-{i}", priority, name)]
    return [root, *leaves]


def _leaf(random: Random, name: str, priority: int, parent: str) -> Iterator[Object]:
    size = random.randint(1, 5)
    group = Object()
    group.pod_group.metadata.name = name
    spec = group.pod_group.spec
    spec.priority = priority
    if parent:
        spec.parent_composite_pod_group_name = parent
        spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "leaf"
    spec.scheduling_policy.gang.min_count = random.randint(1, size)
    if random.random() < 0.4:
        spec.scheduling_constraints.topology.add(key="rack")
    if not parent and random.random() < 0.4:
        spec.disruption_mode.all.SetInParent()
    yield group
    cpu = str(random.choice((1, 1, 2, 3)))
    grace = random.choice((0, 30))
    for i in range(size):
        pod = member(f"{name}-p{i}", name)
        pod.pod.spec.priority = priority
        pod.pod.spec.termination_grace_period_seconds = grace
        pod.pod.spec.containers[0].resources.requests["cpu"] = cpu
        pod.pod.metadata.labels["app"] = random.choice("ab")
        yield pod


def budget(random: Random, name: str) -> Object:
    made = Object()
    made.pod_disruption_budget.metadata.name = name
    made.pod_disruption_budget.spec.min_available = str(random.randint(1, 3))
    made.pod_disruption_budget.spec.selector.match_labels["app"] = random.choice("ab")
    return made
