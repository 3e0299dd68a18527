"""Pods: created with a resolved priority; afterwards gates may go, tolerations come, and a node be set once.

A client owns a pod's phase, start time, reason and message: each is taken when it is sent. The phase never goes back,
as room that a finished pod gave up may be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter

from muster.model.meta import POD
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.pod import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Container,
    Pod,
    PodSpec,
    PodStatus,
    Resources,
    Toleration,
)
from muster.model.resources import parse_quantity
from muster.model.variations import variation, variations
from muster.validation.admission.context import SERVER_OWNED, AdmissionContext
from muster.validation.admission.priority_classes import PriorityClasses, resolve_priority
from muster.validation.admission.results import Faults, immutable
from muster.validation.seen import Seen
from muster.validation.violations import IMMUTABLE, Violation

_PHASE_ORDER = {PENDING: 0, RUNNING: 1, "Unknown": 1, SUCCEEDED: 2, FAILED: 2}
_LAST = 2
_IMMUTABLE_FIELDS = {
    "node_selector": "spec.nodeSelector",
    "affinity": "spec.affinity",
    "topology_spread_constraints": "spec.topologySpreadConstraints",
    "priority_class_name": "spec.priorityClassName",
    "priority": "spec.priority",
    "preemption_policy": "spec.preemptionPolicy",
    "scheduler_name": "spec.schedulerName",
    "host_network": "spec.hostNetwork",
}

_MERGED = (
    "labels",
    "annotations",
    "owner_references",
    "finalizers",
    "spec",
    "gates",
    "node_name",
    "status",
)
_MERGED_FIELDS = attrgetter(*_MERGED)

_merged_pod = variation(Pod, *_MERGED)
_individuals = variations(Pod, "name", "uid", "ordinal", kind=POD)
_of_group = variation(Pod, "group")
_new_pod = variation(Pod, "name", *SERVER_OWNED, "spec", "status", kind=POD)


def create_pod(sent: Pod, name: str, uid: str, context: AdmissionContext) -> Pod | Faults:
    """A new pod of that name from what was sent, or why it may not be."""
    spec = context.memo.created(sent.spec, context.classes, _resolved_spec)
    if isinstance(spec, Violation):
        return (spec,)
    uid = uid or context.make_uid()
    return _made(sent, spec, name, uid, context.next_ordinal(), context)


def new_pod(sent: Pod, context: AdmissionContext) -> Pod | Faults:
    """What new pods that differ from what was sent in their names and groups alone are to be made of by `create_run`."""
    spec = context.memo.created(sent.spec, context.classes, _resolved_spec)
    return (spec,) if isinstance(spec, Violation) else _made(sent, spec, "", "", 0, context)


def create_run(sample: Pod, names: Sequence[str], group: str, context: AdmissionContext) -> list[Pod]:
    """New pods of one group, of these names, as `new_pod` says."""
    number = len(names)
    uids, ordinals = context.make_uids(number), context.next_ordinals(number)
    return _individuals(_of_group(sample, group), names, uids, ordinals)


def _made(sent: Pod, spec: PodSpec, name: str, uid: str, ordinal: int, context: AdmissionContext) -> Pod:
    own = context.of_new(sent.namespace or DEFAULT_NAMESPACE, uid, ordinal)
    return _new_pod(sent, name, *own, spec, _new_statuses.of(sent.status))


def create_pods(
    template: Pod, names: Sequence[str], uids: Sequence[str], context: AdmissionContext
) -> list[Pod] | Faults:
    """New pods of these names, at least one, that differ in nothing else; or why they may not be. As many uids as names."""
    first = create_pod(template, names[0], uids[0], context)
    if isinstance(first, tuple):
        return first
    number = len(names) - 1
    given = uids[1:]
    if not any(given):
        given = context.make_uids(number)
    elif not all(given):
        given = [uid or context.make_uid() for uid in given]
    return [first, *_individuals(first, names[1:], given, context.next_ordinals(number))]


def merge_pod(sent: Pod, stored: Pod, context: AdmissionContext) -> Pod | Faults:
    """The stored pod, itself if nothing differs, else with the caller's metadata, spec and status."""
    spec = context.memo.merged(sent.spec, stored.spec, _merged_spec)
    faults = [*_own_faults(sent, stored), *(spec if isinstance(spec, tuple) else ())]
    if faults or isinstance(spec, tuple):
        return tuple(faults)
    gates = tuple(gate for gate in stored.gates if gate in sent.gates) if stored.gates else ()
    status = _merged_status(sent.status, stored.status)
    merged = (
        sent.labels,
        sent.annotations,
        sent.owner_references,
        sent.finalizers,
        spec,
        gates,
        sent.node_name or stored.node_name,
        status,
    )
    return stored if merged == _MERGED_FIELDS(stored) else _merged_pod(stored, *merged)


def _own_faults(sent: Pod, stored: Pod) -> Iterable[Violation]:
    """Faults of the fields that each pod has for itself."""
    if sent.group != stored.group:
        yield immutable("spec.schedulingGroup.podGroupName")
    if sent.gates and not set(sent.gates) <= set(stored.gates):
        yield Violation("spec.schedulingGates", IMMUTABLE, "must only lose gates once the pod exists")
    if sent.node_name and stored.node_name and sent.node_name != stored.node_name:
        yield Violation("spec.nodeName", IMMUTABLE, f"must not change: the pod is on {stored.node_name}")
    if _goes_back(sent.status.phase, stored.status.phase):
        yield Violation("status.phase", IMMUTABLE, f"must not go back from {stored.status.phase}")


def _goes_back(sent: str, stored: str) -> bool:
    if not sent or sent == stored or sent not in _PHASE_ORDER:
        return False
    return _PHASE_ORDER[stored] == _LAST or _PHASE_ORDER[sent] < _PHASE_ORDER[stored]


def _resolved_spec(sent: PodSpec, classes: PriorityClasses) -> PodSpec | Violation:
    resolved = resolve_priority("spec", sent, classes)
    if isinstance(resolved, Violation):
        return resolved
    return replace(sent, **resolved._asdict())


def _merged_spec(sent: PodSpec, stored: PodSpec) -> PodSpec | Faults:
    """The stored spec, itself if nothing differs, else with the caller's tolerations; or the fields that may not differ."""
    filled = replace(
        sent,
        priority_class_name=sent.priority_class_name or stored.priority_class_name,
        priority=stored.priority if sent.priority is None else sent.priority,
        preemption_policy=sent.preemption_policy or stored.preemption_policy,
    )
    faults = [
        immutable(path)
        for field, path in _IMMUTABLE_FIELDS.items()
        if getattr(filled, field) != getattr(stored, field)
    ]
    faults += _amount_faults(sent, stored)
    if (sent.termination_grace_period_seconds or 0) != (stored.termination_grace_period_seconds or 0):
        faults.append(immutable("spec.terminationGracePeriodSeconds"))
    missing = set(stored.tolerations).difference(sent.tolerations)
    if missing:
        faults.append(
            Violation("spec.tolerations", IMMUTABLE, f"must only grow; {_shown(missing)} is missing")
        )
    if faults:
        return tuple(faults)
    if set(sent.tolerations) == set(stored.tolerations):
        return stored
    return replace(stored, tolerations=sent.tolerations)


def _shown(tolerations: set[Toleration]) -> str:
    first = min(tolerations, key=lambda each: (each.key, each.value, each.effect))
    return f"{first.key or '*'}:{first.effect or '*'}"


def _amount_faults(sent: PodSpec, stored: PodSpec) -> list[Violation]:
    """Fields with quantities are compared by what they amount to: 1 and 1000m are the same."""
    compared = {
        "spec.containers": (_containers(sent.containers), _containers(stored.containers)),
        "spec.initContainers": (_containers(sent.init_containers), _containers(stored.init_containers)),
        "spec.overhead": (_amounts(sent.overhead), _amounts(stored.overhead)),
        "spec.resources": (_resources(sent.resources), _resources(stored.resources)),
    }
    return [immutable(path) for path, (new, old) in compared.items() if new != old]


def _containers(containers: tuple[Container, ...]) -> list[object]:
    return [(each.name, _resources(each.resources), each.ports, each.restart_policy) for each in containers]


def _resources(resources: Resources | None) -> object:
    return None if resources is None else (_amounts(resources.requests), _amounts(resources.limits))


def _amounts(quantities: dict[str, str]) -> dict[str, Fraction | str]:
    return {resource: _amount(text) for resource, text in quantities.items()}


def _amount(text: str) -> Fraction | str:
    try:
        return parse_quantity(text)
    except ValueError:
        return text


def _new_status(sent: PodStatus) -> PodStatus:
    return PodStatus(
        phase=sent.phase or PENDING, start_us=sent.start_us, reason=sent.reason, message=sent.message
    )


def _merged_status(sent: PodStatus, stored: PodStatus) -> PodStatus:
    """The stored status, itself if nothing was sent that differs."""
    if not sent.phase and sent.start_us is None and not sent.reason and not sent.message:
        return stored
    merged = replace(
        stored,
        phase=sent.phase or stored.phase,
        start_us=stored.start_us if sent.start_us is None else sent.start_us,
        reason=sent.reason or stored.reason,
        message=sent.message or stored.message,
    )
    return stored if merged == stored else merged


_new_statuses = Seen(_new_status)
