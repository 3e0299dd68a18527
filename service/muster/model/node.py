"""Node: what a cluster offers. Amounts stay Kubernetes quantities (text); `resources` turns them into integers."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.model.meta import NODE, Condition, KubernetesObject, ObjectKey


@dataclass(frozen=True, slots=True)
class Taint:
    """`effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(KubernetesObject):
    """Cluster-scoped. `allocatable` defaults to `capacity`, its "pods" to 110 (filled in at admission)."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(NODE, "", self.name)
