"""The closed set of kinds that a cluster holds."""

from __future__ import annotations

from muster.model.disruption import PodDisruptionBudget
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import (
    COMPOSITE_POD_GROUP,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    PRIORITY_CLASS,
    WORKLOAD,
)
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.priority import PriorityClass
from muster.model.workload import Workload

ClusterObject = Node | Pod | PodGroup | CompositePodGroup | Workload | PriorityClass | PodDisruptionBudget

TYPES: dict[str, type[ClusterObject]] = {
    NODE: Node,
    POD: Pod,
    POD_GROUP: PodGroup,
    COMPOSITE_POD_GROUP: CompositePodGroup,
    WORKLOAD: Workload,
    PRIORITY_CLASS: PriorityClass,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
}
