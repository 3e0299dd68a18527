"""Rules of a Pod and of a PodBatch, split so that what many pods share is looked at once.

`validate_pod_spec` reads the shared spec; what a pod has for itself takes a microsecond. `PodRules` remembers both
the specs and the metadata that it has seen, by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.model.meta import POD
from muster.model.names import are_dns_subdomains, dns_subdomain_fault
from muster.model.pod import PHASES, Pod, PodBatch, PodSpec
from muster.model.run_time import LONGEST_RUN_TIME_SECONDS, MAX_RUN_TIME_SECONDS, run_time_of
from muster.validation.affinity import affinity_faults
from muster.validation.containers import container_faults
from muster.validation.fields import (
    Faults,
    count_faults,
    optional_choice_faults,
    optional_name_faults,
    range_faults,
)
from muster.validation.labels import label_map_faults
from muster.validation.metadata import identity_faults, namespace_faults, shared_metadata_faults, uid_faults
from muster.validation.placement_terms import gate_faults, spread_faults, toleration_faults
from muster.validation.priority import priority_faults
from muster.validation.seen import Seen
from muster.validation.violations import DUPLICATE, INVALID, REQUIRED, TOO_MANY, Violation

LONGEST_SCHEDULER_NAME = 253
MOST_NODE_LABELS = 256
# What may be added to any time without leaving 64 bits of microseconds.
LONGEST_GRACE_SECONDS = 2**31 - 1
FIRST_MOMENT_US = -62_135_596_800 * 10**6
LAST_MOMENT_US = 253_402_300_800 * 10**6 - 1

_MOST_REMEMBERED = 4096


def validate_pod_spec(spec: PodSpec) -> tuple[Violation, ...]:
    """All faults of a spec, with paths from the pod (`spec.containers[0]...`) and texts that name no pod."""
    return tuple(_spec_faults(spec))


def _spec_faults(spec: PodSpec) -> Faults:
    yield from container_faults(spec)
    yield from count_faults("spec.nodeSelector", len(spec.node_selector), MOST_NODE_LABELS, "labels")
    yield from label_map_faults("spec.nodeSelector", spec.node_selector)
    yield from affinity_faults(spec.affinity)
    yield from toleration_faults(spec.tolerations)
    yield from spread_faults(spec.topology_spread_constraints)
    yield from priority_faults("spec", spec)
    if len(spec.scheduler_name) > LONGEST_SCHEDULER_NAME:
        yield Violation(
            "spec.schedulerName", TOO_MANY, f"must be at most {LONGEST_SCHEDULER_NAME} characters long"
        )
    yield from range_faults(
        "spec.terminationGracePeriodSeconds", spec.termination_grace_period_seconds, 0, LONGEST_GRACE_SECONDS
    )


class PodRules:
    """Validates many pods, of many calls: what they share by reference is checked at its first sight only.

    Keeps what it has seen alive, in bounded number.
    """

    def __init__(self) -> None:
        self._specs: Seen[PodSpec, tuple[Violation, ...]] = Seen(validate_pod_spec)
        self._metadata: dict[tuple[int, ...], tuple[Pod, tuple[Violation, ...]]] = {}
        self._right: dict[tuple[object, ...], Pod] = {}

    def pod_faults(self, pod: Pod) -> tuple[Violation, ...]:
        """All faults of a pod, without its name in their texts."""
        repeated = (
            pod.namespace,
            pod.group,
            id(pod.spec),
            id(pod.status),
            id(pod.labels),
            id(pod.annotations),
            id(pod.owner_references),
            id(pod.finalizers),
        )
        if (
            repeated in self._right
            and not (pod.gates or pod.node_name or pod.uid or pod.resource_version)
            and dns_subdomain_fault(pod.name) is None
        ):
            return ()
        lasting = (*self._shared_faults(pod), *_placement_faults(pod))
        if not lasting:
            if len(self._right) >= _MOST_REMEMBERED:
                self._right.clear()
            self._right[repeated] = pod
        return (*identity_faults(pod), *lasting)

    def are_right(self, pods: Sequence[Pod]) -> bool:
        """Whether nothing is wrong with pods, at least one, that share all but their names and groups."""
        if self.pod_faults(pods[0]) or not are_dns_subdomains([pod.name for pod in pods]):
            return False
        groups = {pod.group for pod in pods}
        groups.discard("")
        return are_dns_subdomains(groups)

    def batch_faults(self, batch: PodBatch) -> tuple[Violation, ...]:
        """All faults of a PodBatch: those of its template, names and uids."""
        template = batch.template
        faults = self._shared_faults(template) + tuple(_placement_faults(template))
        within = [fault._replace(field=f"template.{fault.field}") for fault in faults]
        return (*within, *_batch_faults(batch))

    def _shared_faults(self, pod: Pod) -> tuple[Violation, ...]:
        key = (id(pod.labels), id(pod.annotations), id(pod.owner_references), id(pod.finalizers))
        known = self._metadata.get(key)
        if known is None:
            if len(self._metadata) >= _MOST_REMEMBERED:
                self._metadata.clear()
            faults = (*shared_metadata_faults(pod), *_run_time_faults(pod.annotations))
            known = self._metadata[key] = (pod, faults)
        return known[1] + self._specs.of(pod.spec) if known[1] else self._specs.of(pod.spec)


def _run_time_faults(annotations: dict[str, str]) -> Iterator[Violation]:
    """A declared run time that cannot be read would hold others off for no reason that anybody sees."""
    declared = annotations.get(MAX_RUN_TIME_SECONDS)
    if declared is not None and run_time_of(declared) is None:
        text = f"must be a whole number of seconds from 1 to {LONGEST_RUN_TIME_SECONDS}"
        yield Violation(f"metadata.annotations[{MAX_RUN_TIME_SECONDS}]", INVALID, text)


def _placement_faults(pod: Pod) -> Iterator[Violation]:
    """Namespace, group, gates, node and phase: of the pod's own fields those that a batch's template has too."""
    yield from namespace_faults(POD, pod.namespace)
    yield from optional_name_faults("spec.schedulingGroup.podGroupName", pod.group, dns_subdomain_fault)
    yield from gate_faults(pod.gates)
    yield from optional_name_faults("spec.nodeName", pod.node_name, dns_subdomain_fault)
    if pod.node_name and pod.gates:
        yield Violation("spec.nodeName", INVALID, "must not be set while there are scheduling gates")
    yield from optional_choice_faults("status.phase", pod.status.phase, PHASES)
    start_us = pod.status.start_us
    if start_us is not None and not FIRST_MOMENT_US <= start_us <= LAST_MOMENT_US:
        yield Violation("status.startTime", INVALID, "must be between the years 1 and 9999")


def _batch_faults(batch: PodBatch) -> Iterator[Violation]:
    template = batch.template
    for field, is_set in (("name", bool(template.name)), ("uid", bool(template.uid))):
        if is_set:
            yield Violation(f"template.metadata.{field}", INVALID, "must be left to the batch's own list")
    if template.resource_version:
        yield Violation("template.metadata.resourceVersion", INVALID, "must be left out: it is one pod's")
    if not batch.names:
        yield Violation("names", REQUIRED, "must have at least one name")
    yield from _list_faults(batch)
    if batch.uids and len(batch.uids) != len(batch.names):
        yield Violation("uids", INVALID, f"must be none or {len(batch.names)}, one a name")


def _list_faults(batch: PodBatch) -> Iterator[Violation]:
    names = batch.names
    if not (are_dns_subdomains(names) and len(set(names)) == len(names)):
        yield from _name_faults(names)
    for index, uid in enumerate(batch.uids):
        yield from uid_faults(f"uids[{index}]", uid)


def _name_faults(names: tuple[str, ...]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        fault = dns_subdomain_fault(name)
        if fault is not None:
            reason = INVALID if name else REQUIRED
            yield Violation(f"names[{index}]", reason, f"must {fault}")
        elif name in seen:
            yield Violation(f"names[{index}]", DUPLICATE, f"must be unique in the batch, {name!r} is not")
        seen.add(name)
