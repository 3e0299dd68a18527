"""What each kind but Pod does with the fields of its own: at creation, and over a stored object.

`create` returns the fields to set in what was sent, `merge` those to set in what is stored; both may return faults.
"""

from __future__ import annotations

from typing import Any, Protocol

from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
from muster.model.group import CompositePodGroup, Group, PodGroup
from muster.model.node import Node
from muster.model.priority import PREEMPT_LOWER_PRIORITY, PriorityClass
from muster.model.resources import PODS
from muster.model.workload import Workload
from muster.validation.admission.context import AdmissionContext
from muster.validation.admission.groups import merge_group_spec
from muster.validation.admission.priority_classes import PriorityClasses
from muster.validation.admission.results import Faults, immutable
from muster.validation.violations import INVALID, Violation

DEFAULT_PODS = "110"

Fields = dict[str, Any]


class Kind(Protocol):
    """`spec_fields`: those whose change raises the generation."""

    spec_fields: tuple[str, ...]

    def merge(self, sent: Any, stored: Any, classes: PriorityClasses) -> Fields | Faults: ...  # noqa: ANN401


class SimpleKind(Kind, Protocol):
    """One of which few objects are made: a group, as a pod, is made by a function of its own."""

    def create(self, sent: Any, context: AdmissionContext) -> Fields | Faults: ...  # noqa: ANN401


class _Nodes:
    """Everything may change; amounts that are left out stay, filled-in ones follow the capacity."""

    spec_fields: tuple[str, ...] = ("unschedulable", "taints")

    def create(self, sent: Node, context: AdmissionContext) -> Fields | Faults:
        return {"allocatable": _allocatable(sent.allocatable, sent.capacity), "conditions": ()}

    def merge(self, sent: Node, stored: Node, classes: PriorityClasses) -> Fields | Faults:
        capacity = sent.capacity or stored.capacity
        is_filled_in = stored.allocatable == _allocatable({}, stored.capacity)
        if sent.allocatable or is_filled_in:
            allocatable = _allocatable(sent.allocatable, capacity)
        else:
            allocatable = stored.allocatable
        return {
            "unschedulable": sent.unschedulable,
            "taints": sent.taints,
            "capacity": capacity,
            "allocatable": allocatable,
        }


class _Groups:
    """A gang's minimum may change."""

    spec_fields: tuple[str, ...] = ("spec",)

    def merge(self, sent: Group, stored: Group, classes: PriorityClasses) -> Fields | Faults:
        spec = merge_group_spec(sent.spec, stored.spec)
        return spec if isinstance(spec, tuple) else {"spec": spec}


class _Workloads:
    """Nothing of the spec may change."""

    spec_fields: tuple[str, ...] = ()
    _paths = (
        ("controller_ref", "spec.controllerRef"),
        ("pod_group_templates", "spec.podGroupTemplates"),
        ("composite_pod_group_templates", "spec.compositePodGroupTemplates"),
    )

    def create(self, sent: Workload, context: AdmissionContext) -> Fields | Faults:
        return {}

    def merge(self, sent: Workload, stored: Workload, classes: PriorityClasses) -> Fields | Faults:
        faults = tuple(
            immutable(path)
            for field, path in self._paths
            if getattr(sent.spec, field) != getattr(stored.spec, field)
        )
        return faults or {}


class _PriorityClasses:
    """Which class is the default, and what describes it, may change; at most one is the default."""

    spec_fields: tuple[str, ...] = ("global_default", "description")

    def create(self, sent: PriorityClass, context: AdmissionContext) -> Fields | Faults:
        policy = sent.preemption_policy or PREEMPT_LOWER_PRIORITY
        return self._default_faults(sent, context.classes) or {"preemption_policy": policy}

    def merge(self, sent: PriorityClass, stored: PriorityClass, classes: PriorityClasses) -> Fields | Faults:
        faults = list(self._default_faults(sent, classes))
        if sent.value != stored.value:
            faults.append(immutable("value"))
        if sent.preemption_policy and sent.preemption_policy != stored.preemption_policy:
            faults.append(immutable("preemptionPolicy"))
        return tuple(faults) or {"global_default": sent.global_default, "description": sent.description}

    def _default_faults(self, sent: PriorityClass, classes: PriorityClasses) -> Faults:
        other = classes.other_default(sent.name) if sent.global_default else None
        if other is None:
            return ()
        return (
            Violation("globalDefault", INVALID, f"must be true for one class only, and {other!r} has it"),
        )


class _Budgets:
    """Everything may change; the status is the server's."""

    spec_fields: tuple[str, ...] = ("min_available", "max_unavailable", "selector")

    def create(self, sent: PodDisruptionBudget, context: AdmissionContext) -> Fields | Faults:
        return {"status": DisruptionStatus()}

    def merge(
        self, sent: PodDisruptionBudget, stored: PodDisruptionBudget, classes: PriorityClasses
    ) -> Fields | Faults:
        return {field: getattr(sent, field) for field in self.spec_fields}


SIMPLE_KINDS: dict[type, SimpleKind] = {
    Node: _Nodes(),
    Workload: _Workloads(),
    PriorityClass: _PriorityClasses(),
    PodDisruptionBudget: _Budgets(),
}
KINDS: dict[type, Kind] = {PodGroup: _Groups(), CompositePodGroup: _Groups(), **SIMPLE_KINDS}


def _allocatable(sent: dict[str, str], capacity: dict[str, str]) -> dict[str, str]:
    return {PODS: DEFAULT_PODS} | (sent or capacity)
