"""One object of each kind with every field set, each to a value of its own, and text that needs care."""

from __future__ import annotations

from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
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
from muster.model.meta import Condition, LabelSelector, OwnerReference, SelectorRequirement
from muster.model.node import Node, Taint
from muster.model.objects import ClusterObject
from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    Resources,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from muster.model.priority import PriorityClass
from muster.model.workload import ControllerReference, GroupTemplate, Workload, WorkloadSpec

AWKWARD = "quote \" backslash \\ comma , brace } newline \n tab \t apostrophe ' null \\N ünï 🎉"
SELECTOR = LabelSelector({"app": "web"}, (SelectorRequirement("tier", "In", ("a", "b")),))
CONDITION = Condition("Ready", "False", "Reason", AWKWARD, 7, 1_700_000_000_000_001)
OWNER = OwnerReference("v1", "Set", "owner", "owner-uid", controller=True, block_owner_deletion=True)
TERM = NodeSelectorTerm(
    (SelectorRequirement("zone", "NotIn", ("z1",)),), (SelectorRequirement("metadata.name", "In", ("n1",)),)
)
POD_TERM = PodAffinityTerm(SELECTOR, ("other",), "zone", LabelSelector(), ("hash",), ("version",))
METADATA = {
    "namespace": "default",
    "uid": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "generation": 3,
    "creation_us": 1_700_000_000_000_000,
    "deletion_us": 1_700_000_000_500_000,
    "deletion_grace_seconds": 30,
    "labels": {"b": "2", "a": "1"},
    "annotations": {"note": AWKWARD},
    "owner_references": (OWNER,),
    "finalizers": ("muster/hold", "other/hold"),
}
GROUP_SPEC = GroupSpec(
    parent_composite_pod_group_name="parent",
    workload_ref=WorkloadReference("workload", "template"),
    scheduling_policy=SchedulingPolicy(gang=GangPolicy(4)),
    topology=("rack",),
    disruption_mode=DisruptionMode(all=AllDisruption()),
    priority_class_name="high",
    priority=-5,
    preemption_policy="Never",
)
POD_SPEC = PodSpec(
    containers=(
        Container(
            "main",
            Resources({"cpu": "100m"}, {"cpu": "1", "example.com/gpu": "2"}),
            (ContainerPort("http", 80, 8080, "UDP", "10.0.0.1"),),
            "Always",
        ),
    ),
    init_containers=(Container("init"),),
    overhead={"memory": "1Mi"},
    resources=Resources({"memory": "1Gi"}),
    node_selector={"disk": "ssd"},
    affinity=Affinity(
        NodeAffinity((TERM,), (PreferredSchedulingTerm(5, TERM),)),
        PodAffinity((POD_TERM,), (WeightedPodAffinityTerm(9, POD_TERM),)),
        PodAffinity((POD_TERM,)),
    ),
    tolerations=(Toleration("key", "Equal", "value", "NoExecute", 60),),
    topology_spread_constraints=(
        TopologySpreadConstraint(2, "zone", "DoNotSchedule", SELECTOR, 3, "Ignore", "Honor", ("hash",)),
    ),
    priority_class_name="high",
    priority=1_000_000_000,
    preemption_policy="PreemptLowerPriority",
    scheduler_name="default-scheduler",
    termination_grace_period_seconds=0,
    host_network=True,
)
POD_STATUS = PodStatus("Running", (CONDITION,), "nominated", 1_700_000_000_000_002, "Reason", AWKWARD)

NODE = Node(
    name="node",
    unschedulable=True,
    taints=(Taint("key", "value", "NoSchedule"),),
    capacity={"cpu": "8"},
    allocatable={"cpu": "7500m", "pods": "110"},
    conditions=(CONDITION,),
    **{**METADATA, "namespace": ""},  # type: ignore[arg-type]
)
POD = Pod(
    name="pod",
    spec=POD_SPEC,
    group="group",
    gates=("example.com/gate", "other"),
    node_name="node",
    status=POD_STATUS,
    **METADATA,  # type: ignore[arg-type]
)
POD_GROUP = PodGroup(name="group", spec=GROUP_SPEC, conditions=(CONDITION,), **METADATA)  # type: ignore[arg-type]
COMPOSITE = CompositePodGroup(
    name="parent",
    spec=GroupSpec(
        scheduling_policy=SchedulingPolicy(basic=BasicPolicy()),
        disruption_mode=DisruptionMode(single=SingleDisruption()),
    ),
    conditions=(CONDITION,),
    **METADATA,  # type: ignore[arg-type]
)
WORKLOAD = Workload(
    name="workload",
    spec=WorkloadSpec(
        controller_ref=ControllerReference("batch", "Set", "owner"),
        pod_group_templates=(GroupTemplate("leaf", SchedulingPolicy(gang=GangPolicy())),),
        composite_pod_group_templates=(
            GroupTemplate(
                "tree",
                GROUP_SPEC.scheduling_policy,
                ("block",),
                GROUP_SPEC.disruption_mode,
                "high",
                7,
                "Never",
                (GroupTemplate("child"),),
                (GroupTemplate("grandchild"),),
            ),
        ),
    ),
    **METADATA,  # type: ignore[arg-type]
)
PRIORITY_CLASS = PriorityClass(
    name="high",
    value=-7,
    global_default=True,
    description=AWKWARD,
    preemption_policy="Never",
    **{**METADATA, "namespace": ""},  # type: ignore[arg-type]
)
BUDGET = PodDisruptionBudget(
    name="budget",
    min_available="50%",
    max_unavailable="1",
    selector=SELECTOR,
    status=DisruptionStatus(1, 2, 3, 4),
    **METADATA,  # type: ignore[arg-type]
)

EVERY_KIND: tuple[ClusterObject, ...] = (
    NODE,
    POD,
    POD_GROUP,
    COMPOSITE,
    WORKLOAD,
    PRIORITY_CLASS,
    BUDGET,
)
EVERY_KIND_BARE: tuple[ClusterObject, ...] = tuple(type(one)(name="bare") for one in EVERY_KIND)
