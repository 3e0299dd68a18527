"""An instance as API objects: what is there before, the unit without its root, and the root that completes it.

Until the root comes the unit's pods wait for it, so that the server decides nothing before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.v1.composite_pod_group_pb2 import CompositePodGroupSpec
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import PodGroupSpec
from muster.v1.pod_pb2 import Pod
from muster.v1.workload_pb2 import CompositePodGroupTemplate, Workload
from tests.instances.instance import Budget, GroupPlan, Instance, NodePlan, PodPlan

LOWER, NEVER = "PreemptLowerPriority", "Never"
WORKLOAD = "instance"
UNITS = {"cpu": "m", "memory": "Mi"}
KUBERNETES = ("cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class Sets:
    """What is applied, in three calls; `unit` names the root."""

    surroundings: list[Object]
    parts: list[Object]
    root: Object
    unit: ObjectRef


def sets_of(instance: Instance, scheduler: str = "") -> Sets:
    """The objects of an instance; the target's pods name `scheduler`."""
    target = instance.groups[instance.target]
    inside = [group for group in instance.groups.values() if instance.root(group.name) is target]
    around = [group for group in instance.groups.values() if group not in inside]
    wanted = [pod for pod in instance.pods.values() if _belongs(pod, inside)]
    others = [pod for pod in instance.pods.values() if pod not in wanted]
    kind = "PodGroup" if target.is_leaf else "CompositePodGroup"
    return Sets(
        surroundings=[
            *map(_node, instance.nodes.values()),
            *map(_budget, instance.budgets),
            Object(workload=_workload()),
            *(_group(instance, group, LOWER) for group in around),
            *(_pod(pod, LOWER, "") for pod in others),
        ],
        parts=[
            *(_group(instance, group, _policy(instance)) for group in inside if group is not target),
            *(_pod(pod, _policy(instance), scheduler) for pod in wanted),
        ],
        root=_group(instance, target, _policy(instance)),
        unit=ObjectRef(kind=kind, name=target.name),
    )


def _belongs(pod: PodPlan, groups: Iterable[GroupPlan]) -> bool:
    return any(pod.group == group.name for group in groups)


def _policy(instance: Instance) -> str:
    return LOWER if instance.may_evict else NEVER


def _workload() -> Workload:
    """A template for each kind on each level, so that every layout of groups is a legal one.

    Templates of groups that are evicted whole are like the others: a group's own mode is what counts.
    """
    made = Workload()
    made.metadata.name = WORKLOAD
    level = made.spec.composite_pod_group_templates.add(name=template_name(is_leaf=False, depth=1))
    for depth in (2, 3, 4):
        level = _below(level, depth)
    return made


def _below(level: CompositePodGroupTemplate, depth: int) -> CompositePodGroupTemplate:
    """Adds the templates of the next level, and returns its composite one, or the level itself at the bottom."""
    level.scheduling_policy.basic.SetInParent()
    leaf = level.pod_group_templates.add(name=template_name(is_leaf=True, depth=depth))
    leaf.scheduling_policy.basic.SetInParent()
    if depth == DEEPEST:
        return level
    return level.composite_pod_group_templates.add(name=template_name(is_leaf=False, depth=depth))


DEEPEST = 4


def template_name(*, is_leaf: bool, depth: int) -> str:
    """The template of groups of a kind on a level; the root's is 1."""
    return f"{'pods' if is_leaf else 'groups'}-{depth}"


def _group(instance: Instance, group: GroupPlan, policy: str) -> Object:
    made = Object()
    stored = made.pod_group if group.is_leaf else made.composite_pod_group
    stored.metadata.name = group.name
    stored.spec.priority = group.priority
    stored.spec.preemption_policy = policy
    if not group.is_gang:
        stored.spec.scheduling_policy.basic.SetInParent()
    elif group.is_leaf:
        made.pod_group.spec.scheduling_policy.gang.min_count = group.minimum
    else:
        made.composite_pod_group.spec.scheduling_policy.gang.min_group_count = group.minimum
    if group.topology is not None:
        stored.spec.scheduling_constraints.topology.add(key=group.topology)
    if group.evicted_whole:
        stored.spec.disruption_mode.all.SetInParent()
    _place_in_tree(stored.spec, instance, group)
    return made


def _place_in_tree(spec: PodGroupSpec | CompositePodGroupSpec, instance: Instance, group: GroupPlan) -> None:
    if group.is_leaf and group.parent is None:
        return
    spec.workload_ref.workload_name = WORKLOAD
    spec.workload_ref.template_name = template_name(is_leaf=group.is_leaf, depth=instance.depth(group.name))
    spec.parent_composite_pod_group_name = group.parent or ""


def _node(node: NodePlan) -> Object:
    made = Object()
    made.node.metadata.name = node.name
    made.node.metadata.labels.update(node.labels)
    for taint in node.taints:
        made.node.spec.taints.add(key=taint.key, value=taint.value, effect=taint.effect)
    for resource, amount in node.allocatable.items():
        made.node.status.allocatable[_resource(resource)] = _quantity(resource, amount)
    return made


def _pod(pod: PodPlan, policy: str, scheduler: str) -> Object:
    made = Object()
    stored: Pod = made.pod
    stored.metadata.name = pod.name
    stored.metadata.labels.update(pod.labels)
    stored.spec.priority = pod.priority
    stored.spec.preemption_policy = policy
    stored.spec.scheduler_name = scheduler
    if pod.group is not None:
        stored.spec.scheduling_group.pod_group_name = pod.group
    stored.spec.node_selector.update(pod.node_selector)
    for each in pod.tolerations:
        stored.spec.tolerations.add(
            key=each.key, operator=each.operator, value=each.value, effect=each.effect
        )
    requests = stored.spec.containers.add(name="main").resources.requests
    for resource, amount in pod.requests.items():
        requests[_resource(resource)] = _quantity(resource, amount)
    if pod.bound_to is not None:
        stored.spec.node_name = pod.bound_to
        stored.status.phase = "Running"
    return made


def _budget(budget: Budget) -> Object:
    made = Object()
    made.pod_disruption_budget.metadata.name = budget.name
    made.pod_disruption_budget.spec.max_unavailable = str(budget.max_unavailable)
    made.pod_disruption_budget.spec.selector.match_labels.update(budget.selector)
    return made


def _resource(name: str) -> str:
    """Kubernetes' name; anything else is an extended resource."""
    return name if name in KUBERNETES else f"example.com/{name}"


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}{UNITS.get(resource, '')}"
