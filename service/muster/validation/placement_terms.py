"""Rules of the shorter terms on where a pod may run: tolerations, topology spread, scheduling gates."""

from __future__ import annotations

from muster.model.names import label_key_fault, label_value_fault
from muster.model.pod import Toleration, TopologySpreadConstraint
from muster.model.selectors import EXISTS, NO_EXECUTE
from muster.validation.affinity import match_label_key_faults
from muster.validation.fields import (
    Faults,
    choice_faults,
    count_faults,
    least_faults,
    name_faults,
    optional_choice_faults,
    optional_name_faults,
)
from muster.validation.labels import label_selector_faults
from muster.validation.node import TAINT_EFFECTS
from muster.validation.violations import DUPLICATE, INVALID, Violation

EQUAL = "Equal"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
NODE_INCLUSION_POLICIES = frozenset({"Honor", "Ignore"})
MOST_TOLERATIONS = 256
MOST_CONSTRAINTS = 32
MOST_GATES = 64


def toleration_faults(tolerations: tuple[Toleration, ...]) -> Faults:
    """Each toleration: an empty key tolerates all keys and so needs Exists, which takes no value."""
    yield from count_faults("spec.tolerations", len(tolerations), MOST_TOLERATIONS, "tolerations")
    for index, toleration in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        yield from optional_name_faults(f"{path}.key", toleration.key, label_key_fault)
        yield from optional_choice_faults(f"{path}.operator", toleration.operator, (EQUAL, EXISTS))
        yield from optional_choice_faults(f"{path}.effect", toleration.effect, TAINT_EFFECTS)
        if not toleration.key and toleration.operator != EXISTS:
            yield Violation(f"{path}.operator", INVALID, "must be Exists where key is empty")
        if toleration.operator == EXISTS and toleration.value:
            yield Violation(f"{path}.value", INVALID, "must be empty with operator Exists")
        else:
            yield from optional_name_faults(f"{path}.value", toleration.value, label_value_fault)
        if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
            yield Violation(f"{path}.effect", INVALID, "must be NoExecute where tolerationSeconds is set")


def spread_faults(constraints: tuple[TopologySpreadConstraint, ...]) -> Faults:
    """Each constraint, and that no two say the same of one topology key."""
    where = "spec.topologySpreadConstraints"
    yield from count_faults(where, len(constraints), MOST_CONSTRAINTS, "constraints")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        path = f"{where}[{index}]"
        yield from _single_spread_faults(path, constraint)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield Violation(path, DUPLICATE, f"must be the only constraint {key[0]}, {key[1]}")
        seen.add(key)


def gate_faults(gates: tuple[str, ...]) -> Faults:
    """Scheduling gates are unique label keys."""
    yield from count_faults("spec.schedulingGates", len(gates), MOST_GATES, "gates")
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        path = f"spec.schedulingGates[{index}].name"
        yield from name_faults(path, gate, label_key_fault)
        if gate and gate in seen:
            yield Violation(path, DUPLICATE, f"must be unique, {gate!r} is not")
        seen.add(gate)


def _single_spread_faults(path: str, constraint: TopologySpreadConstraint) -> Faults:
    yield from least_faults(f"{path}.maxSkew", constraint.max_skew, 1)
    yield from name_faults(f"{path}.topologyKey", constraint.topology_key, label_key_fault)
    yield from choice_faults(
        f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
    )
    yield from label_selector_faults(f"{path}.labelSelector", constraint.label_selector)
    yield from least_faults(f"{path}.minDomains", constraint.min_domains, 1)
    if constraint.min_domains is not None and constraint.when_unsatisfiable == SCHEDULE_ANYWAY:
        yield Violation(f"{path}.minDomains", INVALID, "must not be set with ScheduleAnyway")
    policies = {
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
    }
    for field, policy in policies.items():
        yield from choice_faults(f"{path}.{field}", policy, NODE_INCLUSION_POLICIES)
    yield from match_label_key_faults(
        f"{path}.matchLabelKeys", constraint.match_label_keys, constraint.label_selector
    )
