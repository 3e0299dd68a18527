"""ReportPods as one revision: what a backend says about its pods, taken in order, each weighed against what is stored.

A binding made outside is a fact and wins. A failed one gives the pod back, with that node left out for a while, and
sends its unit to backoff. Phases never go backwards. A report that comes too late is STALE, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muster.engine.api import (
    BindingFailed,
    Bound,
    PhaseChanged,
    PodReport,
    Removed,
    ReportCall,
    ReportOutcome,
)
from muster.engine.conditions import SCHEDULER_ERROR
from muster.engine.deletion import is_evicted, remove_pods
from muster.engine.hierarchy import unit_of_pod
from muster.engine.mutation import Mutation
from muster.engine.settlement import settle_deletions, settle_unit
from muster.model.meta import ObjectKey
from muster.model.names import NUL, dns_subdomain_fault
from muster.model.pod import FAILED, PENDING, PHASES, RUNNING, SUCCEEDED, Pod, PodStatus
from muster.model.variations import variation, varied
from muster.validation.pod import FIRST_MOMENT_US, LAST_MOMENT_US

LEFT_OUT_US = 300 * 1_000_000
LONGEST_REASON = 1_024
LONGEST_MESSAGE = 32_768
_RANK = {PENDING: 0, "Unknown": 1, RUNNING: 1, SUCCEEDED: 2, FAILED: 2}
Said = Bound | BindingFailed | PhaseChanged | Removed

_placed = variation(Pod, "node_name", "resource_version", "status")
_restated = variation(Pod, "resource_version", "status")


def report(mutation: Mutation, call: ReportCall, *, clients_evict: bool = False) -> tuple[ReportOutcome, ...]:
    """Take all reports in a fresh mutation; an outcome for each. Raises nothing."""
    reporting = _Reporting(mutation, clients_evict=clients_evict)
    outcomes = tuple(reporting.take(each) for each in call.reports)
    reporting.send_back_units()
    return outcomes


class _Reporting:
    def __init__(self, mutation: Mutation, *, clients_evict: bool) -> None:
        self._mutation = mutation
        self._cluster = mutation.cluster
        self._clients_evict = clients_evict
        self._failures: dict[ObjectKey, str] = {}
        self._statuses: dict[tuple[int, PhaseChanged], tuple[PodStatus, PodStatus]] = {}

    def take(self, sent: PodReport) -> ReportOutcome:
        """Weigh one report, and write what it changes."""
        said = sent.report
        if said is None or not _is_right(said):
            return ReportOutcome.INVALID
        pod = self._mutation.state.pod(sent.namespace, sent.name)
        if pod is None:
            return ReportOutcome.UNKNOWN_POD
        is_of_earlier_pod = bool(sent.uid) and sent.uid != pod.uid
        return ReportOutcome.STALE if is_of_earlier_pod else self._taken(pod, said)

    def _taken(self, pod: Pod, said: Said) -> ReportOutcome:
        if isinstance(said, Bound):
            return self._bound(pod, said)
        if isinstance(said, BindingFailed):
            return self._binding_failed(pod, said)
        if isinstance(said, PhaseChanged):
            return self._phase_changed(pod, said)
        self._remove((pod.key,))
        return ReportOutcome.ACCEPTED

    def send_back_units(self) -> None:
        """Units with a failed binding go to backoff, unless they are gated, in flight or without pending pods now."""
        if not self._failures:
            return
        mutation = self._mutation
        settle_deletions(mutation)
        for key, message in self._failures.items():
            pod = mutation.state.pod(key.namespace, key.name)
            unit = unit_of_pod(mutation.state, pod) if pod is not None and not pod.node_name else None
            if unit is None or unit.missing or unit.key in mutation.settled_units:
                continue
            settle_unit(mutation, unit.key)
            mutation.settled_units.add(unit.key)
            self._cluster.queue.rejected(unit.key, mutation.now_us, message)

    def _bound(self, pod: Pod, said: Bound) -> ReportOutcome:
        if pod.is_terminal and pod.node_name not in ("", said.node_name):
            return ReportOutcome.STALE
        status = self._mutation.pod_conditions.scheduled(pod.status, pod.generation)
        if status.nominated_node_name:
            status = replace(status, nominated_node_name="")
        if pod.node_name == said.node_name and status is pod.status:
            return ReportOutcome.UNCHANGED
        self._cluster.failed_bindings.forget(pod.ordinal, said.node_name)
        self._mutation.put(_placed(pod, said.node_name, self._mutation.revision, status))
        return ReportOutcome.ACCEPTED

    def _binding_failed(self, pod: Pod, said: BindingFailed) -> ReportOutcome:
        if pod.node_name != said.node_name or pod.status.phase == RUNNING or pod.is_terminal:
            return ReportOutcome.STALE
        if pod.deletion_us is not None and not pod.finalizers:
            self._remove((pod.key,))
            return ReportOutcome.ACCEPTED
        reason = said.reason or SCHEDULER_ERROR
        message = said.message or f"the binding to node {said.node_name} failed"
        status = self._mutation.pod_conditions.waiting(pod.status, reason, message, pod.generation)
        self._mutation.put(_placed(pod, "", self._mutation.revision, status))
        until_us = self._mutation.now_us + LEFT_OUT_US
        self._cluster.failed_bindings.note(pod.ordinal, said.node_name, until_us)
        self._failures[pod.key] = f"{pod.key}: {message}"
        return ReportOutcome.ACCEPTED

    def _phase_changed(self, pod: Pod, said: PhaseChanged) -> ReportOutcome:
        old = pod.status
        if _is_backwards(pod, said.phase):
            return ReportOutcome.STALE
        status = self._status_of(old, said)
        if status is old:
            return ReportOutcome.UNCHANGED
        changed = _restated(pod, self._mutation.revision, status)
        if said.phase == old.phase:
            self._mutation.restate(changed)
        else:
            self._mutation.put(changed)
            self._let_go_if_finished(changed)
        return ReportOutcome.ACCEPTED

    def _status_of(self, old: PodStatus, said: PhaseChanged) -> PodStatus:
        """What the status becomes, `old` itself if nothing differs. One for all pods that share it and are reported alike."""
        made = self._statuses.get((id(old), said))
        if made is None:
            start_us = old.start_us if said.start_us is None else said.start_us
            new = varied(old, phase=said.phase, reason=said.reason, message=said.message, start_us=start_us)
            made = self._statuses[id(old), said] = (old, old if new == old else new)
        return made[1]

    def _let_go_if_finished(self, pod: Pod) -> None:
        """A leaving pod that ended by itself needs no more grace."""
        if pod.deletion_us is None or not pod.is_terminal or pod.finalizers:
            return
        if not (self._clients_evict and is_evicted(pod)):
            self._remove((pod.key,))

    def _remove(self, keys: Iterable[ObjectKey]) -> None:
        remove_pods(self._mutation, keys, clients_evict=self._clients_evict)


def _is_right(said: Said) -> bool:
    """Whether the report says what it must, and what may be stored. A node that is not known is legal: it may come later."""
    match said:
        case Bound(node_name=node_name):
            return _is_node(node_name)
        case BindingFailed(node_name=node_name, reason=reason, message=message):
            return _is_node(node_name) and _is_short(reason, message)
        case PhaseChanged(phase=phase, reason=reason, message=message, start_us=start_us):
            is_time = start_us is None or FIRST_MOMENT_US <= start_us <= LAST_MOMENT_US
            return phase in PHASES and is_time and _is_short(reason, message)
        case Removed():
            return True


def _is_node(name: str) -> bool:
    return bool(name) and dns_subdomain_fault(name) is None


def _is_short(reason: str, message: str) -> bool:
    """Whether a condition may say so."""
    is_short = len(reason) <= LONGEST_REASON and len(message) <= LONGEST_MESSAGE
    return is_short and NUL not in reason and NUL not in message


def _is_backwards(pod: Pod, phase: str) -> bool:
    """Phases go Pending, Running (or Unknown), then Succeeded or Failed, which is final. A pod without a node does not run."""
    old = pod.status.phase
    if phase == old:
        return False
    if not pod.node_name and _RANK[phase] == _RANK[RUNNING]:
        return True
    return _RANK[phase] < _RANK[old] or pod.is_terminal
