"""Upstream's workloads as objects of the API: nodes, what runs there, units.

Groups of many pods come as one template with names, all others as full pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.v1.object_pb2 import Object
from tests.bench.upstream.workload import RACK, ZONE, Policy, Workload, rack_of, zone_of

FEWEST_IN_A_BATCH = 100
LOW, HIGH = 1, 10


def node_objects(workload: Workload) -> list[Object]:
    made = []
    for number in range(workload.nodes):
        each = Object()
        each.node.metadata.name = f"node-{number:05}"
        labels = {
            RACK: f"rack-{rack_of(number, workload.nodes):02}",
            ZONE: f"zone-{zone_of(number, workload.nodes):02}",
        }
        each.node.metadata.labels.update(labels)
        each.node.status.allocatable.update({"cpu": "4", "memory": "32Gi", "pods": "110"})
        made.append(each)
    return made


def running_objects(workload: Workload) -> list[Object]:
    """Pods that are bound already, and the groups of those that may be evicted."""
    made = [_bound(_pod(f"running-{pod}", 100), pod, workload) for pod in range(workload.running)]
    victims = workload.victims
    if victims is None:
        return made
    size = victims.pods // victims.groups if victims.groups else 0
    for pod in range(victims.pods):
        each = _bound(_pod(f"low-{pod}", victims.milli_cpus), pod, workload)
        each.pod.spec.priority = LOW
        each.pod.spec.termination_grace_period_seconds = 0
        if size:
            each.pod.spec.scheduling_group.pod_group_name = f"low-{pod // size}"
        made.append(each)
    return [*(_low_group(number, size) for number in range(victims.groups)), *made]


def unit_objects(workload: Workload, number: int) -> list[Object]:
    """All objects of one unit, root first."""
    if not workload.groups:
        return [_of_priority(_pod(f"pod-{number}", workload.milli_cpus), workload)]
    if workload.groups == 1:
        return [*_group(workload, f"group-{number}", "")]
    root = Object()
    root.composite_pod_group.metadata.name = f"root-{number}"
    spec = root.composite_pod_group.spec
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "root"
    if workload.policy is Policy.GANG:
        spec.scheduling_policy.gang.min_group_count = workload.groups
    else:
        spec.scheduling_policy.basic.SetInParent()
    if workload.root_key:
        spec.scheduling_constraints.topology.add(key=workload.root_key)
    leaves = (f"group-{number}-{leaf}" for leaf in range(workload.groups))
    return [root, *(each for leaf in leaves for each in _group(workload, leaf, f"root-{number}"))]


def root_of(workload: Workload, number: int) -> tuple[str, str]:
    """Kind and name of a unit's root."""
    if not workload.groups:
        return "Pod", f"pod-{number}"
    return (
        ("PodGroup", f"group-{number}") if workload.groups == 1 else ("CompositePodGroup", f"root-{number}")
    )


def _group(workload: Workload, name: str, parent: str) -> Iterator[Object]:
    group = Object()
    group.pod_group.metadata.name = name
    spec = group.pod_group.spec
    if parent:
        spec.parent_composite_pod_group_name = parent
        spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "leaf"
    if workload.policy is Policy.GANG:
        spec.scheduling_policy.gang.min_count = workload.pods
    else:
        spec.scheduling_policy.basic.SetInParent()
    if workload.group_key:
        spec.scheduling_constraints.topology.add(key=workload.group_key)
    if workload.victims is not None:
        spec.priority = HIGH
    yield group
    names = [f"{name}-{pod}" for pod in range(workload.pods)]
    if len(names) >= FEWEST_IN_A_BATCH:
        made = Object()
        made.pod_batch.template.CopyFrom(_member("", name, workload).pod)
        made.pod_batch.names.extend(names)
        yield made
    else:
        yield from (_member(each, name, workload) for each in names)


def _member(name: str, group: str, workload: Workload) -> Object:
    made = _of_priority(_pod(name, workload.milli_cpus), workload)
    made.pod.spec.scheduling_group.pod_group_name = group
    return made


def _pod(name: str, milli_cpus: int) -> Object:
    made = Object()
    made.pod.metadata.name = name
    container = made.pod.spec.containers.add(name="c")
    container.resources.requests.update({"cpu": f"{milli_cpus}m", "memory": "500Mi"})
    return made


def _of_priority(made: Object, workload: Workload) -> Object:
    if workload.victims is not None:
        made.pod.spec.priority = HIGH
    return made


def _bound(made: Object, number: int, workload: Workload) -> Object:
    made.pod.spec.node_name = f"node-{number % workload.nodes:05}"
    return made


def _low_group(number: int, size: int) -> Object:
    made = Object()
    made.pod_group.metadata.name = f"low-{number}"
    spec = made.pod_group.spec
    spec.scheduling_policy.gang.min_count = size
    spec.disruption_mode.all.SetInParent()
    spec.priority = LOW
    return made
