"""Rules of PodGroup and CompositePodGroup, and of the fields that they share with their templates.

KEP-4671 (policies), KEP-5710 (disruption modes), KEP-6012 (parents, references, constraints). What concerns
several objects of a hierarchy is checked when it is scheduled, since objects may arrive in any order.
"""

from __future__ import annotations

from muster.model.group import DisruptionMode, Group, GroupSpec, PodGroup, SchedulingPolicy, WorkloadReference
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP
from muster.model.names import dns_label_fault, dns_subdomain_fault, label_key_fault
from muster.validation.fields import Faults, least_faults, name_faults, optional_name_faults
from muster.validation.metadata import identity_faults, metadata_faults
from muster.validation.priority import priority_faults
from muster.validation.violations import INVALID, REQUIRED, TOO_MANY, Violation

MIN_COUNT = {POD_GROUP: "minCount", COMPOSITE_POD_GROUP: "minGroupCount"}
"""The name of the gang's minimum by the kind of group."""
_MOST_REMEMBERED = 4_096


def group_faults(group: Group) -> Faults:
    """All faults of a PodGroup or CompositePodGroup."""
    kind = POD_GROUP if isinstance(group, PodGroup) else COMPOSITE_POD_GROUP
    spec = group.spec
    yield from metadata_faults(kind, group)
    yield from _parent_faults(spec)
    yield from _reference_faults(kind, group)
    yield from policy_faults("spec", kind, spec.scheduling_policy)
    yield from topology_faults("spec", spec.topology)
    yield from disruption_faults("spec", kind, spec.disruption_mode, spec.scheduling_policy)
    yield from priority_faults("spec", spec)


class GroupRules:
    """Validates many groups, of many calls: those that share all but names and parents with a right one are looked at no more.

    Keeps what it has seen alive, in bounded number.
    """

    def __init__(self) -> None:
        self._right: dict[tuple[object, ...], Group] = {}

    def group_faults(self, group: Group) -> tuple[Violation, ...]:
        """All faults of a group, without its name in their texts."""
        spec = group.spec
        shared = (
            type(group),
            group.namespace,
            id(spec.scheduling_policy),
            id(spec.workload_ref),
            id(spec.topology),
            id(spec.disruption_mode),
            spec.priority_class_name,
            spec.priority,
            spec.preemption_policy,
            id(group.labels),
            id(group.annotations),
            id(group.owner_references),
            id(group.finalizers),
        )
        if shared in self._right and (
            spec.workload_ref is not None or not spec.parent_composite_pod_group_name
        ):
            is_plain = not (group.uid or group.resource_version or spec.parent_composite_pod_group_name)
            if is_plain and dns_subdomain_fault(group.name) is None:
                return ()
            return (*identity_faults(group), *_parent_faults(spec))
        faults = tuple(group_faults(group))
        if not faults:
            if len(self._right) >= _MOST_REMEMBERED:
                self._right.clear()
            self._right[shared] = group
        return faults


def policy_faults(path: str, kind: str, policy: SchedulingPolicy) -> Faults:
    """Exactly one policy; a gang's minimum is at least 1."""
    path = f"{path}.schedulingPolicy"
    if policy.basic is None and policy.gang is None:
        yield Violation(path, REQUIRED, "must have one of basic and gang")
    if policy.basic is not None and policy.gang is not None:
        yield Violation(path, INVALID, "must have only one of basic and gang")
    if policy.gang is not None:
        minimum = f"{path}.gang.{MIN_COUNT[kind]}"
        if policy.gang.minimum is None:
            yield Violation(minimum, REQUIRED, "must be set")
        yield from least_faults(minimum, policy.gang.minimum, 1)


def topology_faults(path: str, keys: tuple[str, ...]) -> Faults:
    """At most one topology constraint, whose key is a label key."""
    path = f"{path}.schedulingConstraints.topology"
    if len(keys) > 1:
        yield Violation(path, TOO_MANY, f"must have at most 1 constraint, not {len(keys)}")
    for index, key in enumerate(keys):
        yield from name_faults(f"{path}[{index}].key", key, label_key_fault)


def disruption_faults(path: str, kind: str, mode: DisruptionMode | None, policy: SchedulingPolicy) -> Faults:
    """One disruption mode if any; pods that are scheduled one by one are never disrupted as a whole."""
    if mode is None:
        return
    path = f"{path}.disruptionMode"
    if mode.single is None and mode.all is None:
        yield Violation(path, REQUIRED, "must have one of single and all")
    if mode.single is not None and mode.all is not None:
        yield Violation(path, INVALID, "must have only one of single and all")
    if kind == POD_GROUP and mode.all is not None and policy.basic is not None:
        yield Violation(
            path, INVALID, "must not be all with the basic policy, whose pods are scheduled singly"
        )


def _parent_faults(spec: GroupSpec) -> Faults:
    name = spec.parent_composite_pod_group_name
    yield from optional_name_faults("spec.parentCompositePodGroupName", name, dns_subdomain_fault)


def _reference_faults(kind: str, group: Group) -> Faults:
    reference: WorkloadReference | None = group.spec.workload_ref
    if reference is not None:
        yield from name_faults("spec.workloadRef.workloadName", reference.workload_name, dns_subdomain_fault)
        yield from name_faults("spec.workloadRef.templateName", reference.template_name, dns_label_fault)
    elif kind == COMPOSITE_POD_GROUP:
        yield Violation("spec.workloadRef", REQUIRED, "must be set on a CompositePodGroup")
    elif group.spec.parent_composite_pod_group_name:
        yield Violation("spec.workloadRef", REQUIRED, "must be set on a group that has a parent")
