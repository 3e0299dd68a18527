"""The table of each kind: which facts about an object people want to see first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.markup import escape

from muster.cli.output import NONE, Table, table
from muster.v1.composite_pod_group_pb2 import CompositePodGroup
from muster.v1.disruption_budget_pb2 import PodDisruptionBudget
from muster.v1.meta_pb2 import Condition
from muster.v1.node_pb2 import Node
from muster.v1.object_pb2 import Object
from muster.v1.pod_group_pb2 import PodGroup
from muster.v1.pod_pb2 import Pod
from muster.v1.priority_class_pb2 import PriorityClass
from muster.v1.workload_pb2 import Workload

# What is not worth a column: of kinds without namespaces, and of those who named none.
USUAL_NAMESPACES = frozenset({"", "default"})
USUAL_SCHEDULERS = frozenset({"", "default-scheduler"})
PENDING = "Pending"
USUAL_RESOURCES = ("cpu", "memory", "pods")
STYLES = {"True": "green", "False": "yellow"}


def object_table(kind: str, objects: Iterable[Object]) -> Table:
    """A table of objects of one kind; the namespace is left out if all are in the usual one.

    Pods tell by their state that they leave, all else by a column of its own.
    """
    field, titles, cells = _KINDS[kind]
    bodies = [getattr(stored, field) for stored in objects]
    is_placed = any(body.metadata.namespace not in USUAL_NAMESPACES for body in bodies)
    place = ["NAMESPACE"] if is_placed else []
    rows = []
    for body in bodies:
        where = [body.metadata.namespace] if is_placed else []
        mark = "marked" if kind != "Pod" and body.metadata.HasField("deletion_timestamp") else NONE
        rows.append([*where, body.metadata.name, mark, *cells(body)])
    return table([*place, "NAME", "DELETION", *titles], rows)


def pod_state(pod: Pod) -> str:
    """One word on where a pod is in its life."""
    if pod.metadata.HasField("deletion_timestamp"):
        return "Leaving"
    phase = pod.status.phase or PENDING
    return "Bound" if phase == PENDING and pod.spec.node_name else phase


def judgement(group: PodGroup | CompositePodGroup) -> tuple[str, str, str]:
    """Status, reason and message of a group's only condition; empty before it has one."""
    condition = _condition(group.status.conditions, f"{type(group).__name__}InitiallyScheduled")
    return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)


def _node(node: Node) -> Sequence[str]:
    resources = dict(node.status.allocatable or node.status.capacity)
    extended = [f"{name}={resources[name]}" for name in sorted(set(resources) - set(USUAL_RESOURCES))]
    taints = [
        f"{each.key}{f'={each.value}' if each.value else ''}:{each.effect}" for each in node.spec.taints
    ]
    return (
        *(resources.get(name, NONE) for name in USUAL_RESOURCES),
        _listed(extended),
        "no" if node.spec.unschedulable else "yes",
        _listed(taints),
    )


def _pod(pod: Pod) -> Sequence[str]:
    """A node in brackets is only in view: pods have to leave it first."""
    nominated = f"({pod.status.nominated_node_name})" if pod.status.nominated_node_name else NONE
    return (
        pod_state(pod),
        pod.spec.node_name or nominated,
        pod.spec.scheduling_group.pod_group_name or NONE,
        str(pod.spec.priority),
        escape(why(pod)),
    )


def why(pod: Pod) -> str:
    """Why a pod leaves, or has no node."""
    disrupted = _condition(pod.status.conditions, "DisruptionTarget")
    if disrupted is not None and disrupted.status == "True":
        return disrupted.message
    scheduled = _condition(pod.status.conditions, "PodScheduled")
    if scheduled is not None:
        return scheduled.message if scheduled.status != "True" else ""
    return "" if pod.spec.node_name or pod_state(pod) != PENDING else f"not tried yet{_by_whom(pod)}"


def _by_whom(pod: Pod) -> str:
    """The scheduler of a pod, unless it is the usual one; one that is not served here never tries it."""
    name = pod.spec.scheduler_name
    return f" by scheduler {name!r}" if name not in USUAL_SCHEDULERS else ""


def _group(group: PodGroup | CompositePodGroup) -> Sequence[str]:
    policy = group.spec.scheduling_policy
    topology = [each.key for each in group.spec.scheduling_constraints.topology]
    return (
        _gang(group) if policy.HasField("gang") else "basic",
        group.spec.parent_composite_pod_group_name or NONE,
        _listed(topology),
        str(group.spec.priority),
        *_judged(group),
    )


def _gang(group: PodGroup | CompositePodGroup) -> str:
    if isinstance(group, PodGroup):
        return f"gang of {group.spec.scheduling_policy.gang.min_count}"
    return f"gang of {group.spec.scheduling_policy.gang.min_group_count} groups"


def _judged(group: PodGroup | CompositePodGroup) -> Sequence[str]:
    status, reason, message = judgement(group)
    style = STYLES.get(status, "")
    state = f"[{style}]{reason}[/]" if style else reason
    return (state or NONE, escape(message) if status != "True" else "")


def _workload(workload: Workload) -> Sequence[str]:
    names = [each.name for each in workload.spec.pod_group_templates]
    names += [each.name for each in workload.spec.composite_pod_group_templates]
    controller = workload.spec.controller_ref
    return (_listed(names), f"{controller.kind}/{controller.name}" if controller.name else NONE)


def _priority_class(priority_class: PriorityClass) -> Sequence[str]:
    default = "yes" if priority_class.global_default else "no"
    return (str(priority_class.value), default, priority_class.preemption_policy or NONE)


def _budget(budget: PodDisruptionBudget) -> Sequence[str]:
    status = budget.status
    return (
        budget.spec.min_available or NONE,
        budget.spec.max_unavailable or NONE,
        str(status.disruptions_allowed),
        f"{status.current_healthy}/{status.expected_pods}",
    )


def _listed(words: Sequence[str]) -> str:
    return ",".join(words) or NONE


def _condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    return next((each for each in conditions if each.type == kind), None)


_GROUP_TITLES = ("POLICY", "PARENT", "TOPOLOGY", "PRIORITY", "STATE", "MESSAGE")
# Kind to the field of Object, the titles after the name, and the cells under them.
_KINDS: dict[str, tuple[str, Sequence[str], Callable[..., Sequence[str]]]] = {
    "Node": ("node", ("CPU", "MEMORY", "PODS", "OTHER", "SCHEDULABLE", "TAINTS"), _node),
    "Pod": ("pod", ("STATE", "NODE", "GROUP", "PRIORITY", "MESSAGE"), _pod),
    "PodGroup": ("pod_group", _GROUP_TITLES, _group),
    "CompositePodGroup": ("composite_pod_group", _GROUP_TITLES, _group),
    "Workload": ("workload", ("TEMPLATES", "CONTROLLER"), _workload),
    "PriorityClass": ("priority_class", ("VALUE", "DEFAULT", "PREEMPTION"), _priority_class),
    "PodDisruptionBudget": ("pod_disruption_budget", ("MIN", "MAX", "ALLOWED", "HEALTHY"), _budget),
}
