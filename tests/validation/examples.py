"""One right object of each kind, to be made wrong in one place by a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.model.disruption import PodDisruptionBudget
from muster.model.group import (
    AllDisruption,
    BasicPolicy,
    CompositePodGroup,
    DisruptionMode,
    GangPolicy,
    GroupSpec,
    PodGroup,
    SchedulingPolicy,
    SingleDisruption,
    WorkloadReference,
)
from muster.model.meta import LabelSelector
from muster.model.node import Node, Taint
from muster.model.objects import ClusterObject
from muster.model.pod import Container, Pod, PodBatch, PodSpec, Resources, Toleration
from muster.model.priority import PriorityClass
from muster.model.workload import ControllerReference, GroupTemplate, Workload, WorkloadSpec
from muster.validation.objects import validate

BASIC = SchedulingPolicy(basic=BasicPolicy())
SINGLE = DisruptionMode(single=SingleDisruption())
ALL = DisruptionMode(all=AllDisruption())

SPEC = PodSpec(
    containers=(
        Container("main", Resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "example.com/gpu": "1"})),
    ),
    tolerations=(Toleration("dedicated", "Equal", "batch", "NoSchedule"),),
)
NODE = Node(
    name="node-1.example.com",
    taints=(Taint("dedicated", "batch", "NoSchedule"),),
    capacity={"cpu": "8", "memory": "16Gi", "pods": "20"},
)
POD = Pod(name="p-0", namespace="default", spec=SPEC, group="workers")
POD_GROUP = PodGroup(
    name="workers",
    namespace="default",
    spec=GroupSpec(scheduling_policy=SchedulingPolicy(gang=GangPolicy(2)), topology=("example.com/rack",)),
)
COMPOSITE = CompositePodGroup(
    name="root",
    namespace="default",
    spec=GroupSpec(
        workload_ref=WorkloadReference("training", "root"),
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(1)),
    ),
)
CLASS = PriorityClass(name="high", value=1000)
BUDGET = PodDisruptionBudget(
    name="keep-one", namespace="default", min_available="1", selector=LabelSelector({"app": "web"})
)
BATCH = PodBatch(replace(POD, name=""), ("p-0", "p-1"))


def gang(minimum: int | None) -> SchedulingPolicy:
    return SchedulingPolicy(gang=GangPolicy(minimum))


def leaf(name: str = "workers", **fields: Any) -> GroupTemplate:
    """A PodGroup template."""
    return GroupTemplate(**{"name": name, "scheduling_policy": gang(1), **fields})


def inner(name: str = "root", *children: GroupTemplate, **fields: Any) -> GroupTemplate:
    """A CompositePodGroup template over PodGroup templates, unless its lists are given."""
    return GroupTemplate(
        **{"name": name, "scheduling_policy": gang(1), "pod_group_templates": children, **fields}
    )


def workload(*leaves: GroupTemplate, composites: tuple[GroupTemplate, ...] = ()) -> Workload:
    spec = WorkloadSpec(ControllerReference("batch", "Job", "training"), leaves, composites)
    return Workload(name="training", namespace="default", spec=spec)


WORKLOAD = workload(composites=(inner("root", leaf("workers"), leaf("leader")),))

EXAMPLES: tuple[ClusterObject | PodBatch, ...] = (
    NODE,
    POD,
    POD_GROUP,
    COMPOSITE,
    WORKLOAD,
    CLASS,
    BUDGET,
    BATCH,
)


def with_spec(pod: Pod = POD, **fields: Any) -> Pod:
    return replace(pod, spec=replace(pod.spec, **fields))


def with_group_spec(group: PodGroup | CompositePodGroup, **fields: Any) -> PodGroup | CompositePodGroup:
    return replace(group, spec=replace(group.spec, **fields))


def faults(sent: ClusterObject | PodBatch) -> list[tuple[str, str]]:
    """Path and reason of each violation, in order."""
    return [(violation.field, violation.reason) for violation in validate(sent)]
