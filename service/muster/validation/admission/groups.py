"""PodGroup and CompositePodGroup: created with priority and disruption mode; afterwards only a gang's minimum changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from muster.model.group import (
    AnyGroup,
    CompositePodGroup,
    DisruptionMode,
    Group,
    GroupSpec,
    PodGroup,
    SchedulingPolicy,
    SingleDisruption,
)
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.variations import variation
from muster.validation.admission.context import SERVER_OWNED, AdmissionContext
from muster.validation.admission.priority_classes import PriorityClasses, resolve_priority
from muster.validation.admission.results import Faults, immutable
from muster.validation.violations import Violation

DEFAULT_DISRUPTION_MODE = DisruptionMode(single=SingleDisruption())

_resolved = variation(GroupSpec, "disruption_mode", "priority_class_name", "priority", "preemption_policy")

_NEW_FIELDS = (*SERVER_OWNED, "spec", "conditions")
_NEW: dict[type[Group], Callable[..., AnyGroup]] = {
    PodGroup: variation(PodGroup, *_NEW_FIELDS, kind=POD_GROUP),
    CompositePodGroup: variation(CompositePodGroup, *_NEW_FIELDS, kind=COMPOSITE_POD_GROUP),
}

_IMMUTABLE_FIELDS = {
    "parent_composite_pod_group_name": "spec.parentCompositePodGroupName",
    "workload_ref": "spec.workloadRef",
    "topology": "spec.schedulingConstraints.topology",
    "disruption_mode": "spec.disruptionMode",
    "priority_class_name": "spec.priorityClassName",
    "priority": "spec.priority",
    "preemption_policy": "spec.preemptionPolicy",
}


def new_group_spec(sent: GroupSpec, classes: PriorityClasses) -> GroupSpec | Violation:
    """The spec of a new group."""
    resolved = resolve_priority("spec", sent, classes)
    if isinstance(resolved, Violation):
        return resolved
    mode = sent.disruption_mode or DEFAULT_DISRUPTION_MODE
    return _resolved(sent, mode, *resolved)


def create_group(sent: Group, context: AdmissionContext) -> AnyGroup | Faults:
    """A new group from what was sent, or why it may not be."""
    spec = context.memo.created(sent.spec, context.classes, new_group_spec)
    if isinstance(spec, Violation):
        return (spec,)
    uid = sent.uid or context.make_uid()
    own = context.of_new(sent.namespace or DEFAULT_NAMESPACE, uid, context.next_ordinal())
    return _NEW[type(sent)](sent, *own, spec, ())


def merge_group_spec(sent: GroupSpec, stored: GroupSpec) -> GroupSpec | Faults:
    """The stored spec with the minimum that was sent, or the fields that may not differ."""
    filled = replace(
        sent,
        disruption_mode=sent.disruption_mode or stored.disruption_mode,
        priority_class_name=sent.priority_class_name or stored.priority_class_name,
        priority=stored.priority if sent.priority is None else sent.priority,
        preemption_policy=sent.preemption_policy or stored.preemption_policy,
    )
    faults = [
        immutable(path)
        for field, path in _IMMUTABLE_FIELDS.items()
        if getattr(filled, field) != getattr(stored, field)
    ]
    if _shape(sent.scheduling_policy) != _shape(stored.scheduling_policy):
        faults.append(immutable("spec.schedulingPolicy"))
    return tuple(faults) if faults else filled


def _shape(policy: SchedulingPolicy) -> tuple[bool, bool]:
    return policy.basic is not None, policy.gang is not None
