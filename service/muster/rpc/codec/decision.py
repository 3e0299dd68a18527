"""Decisions as they are answered: the record, the result of each group, assignments in columns, who must go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from muster.core.decision import (
    DecisionCode,
    GroupResult,
    Preemption,
    PreemptionEnd,
    Reason,
    Search,
    SearchEnd,
    Status,
    UnitFate,
)
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.rpc.codec.meta import encode_ref, write_ref
from muster.rpc.codec.times import write_time
from muster.v1 import decision_pb2 as pb

_CODES = {each: pb.DecisionCode.Value(f"DECISION_CODE_{each.value}") for each in DecisionCode}
_STATUSES = {each: pb.GroupStatus.Value(f"GROUP_STATUS_{each.name}") for each in Status}
_SEARCH_ENDS = {each: pb.SearchEnd.Value(f"SEARCH_END_{each.value}") for each in SearchEnd}
NOT_POSSIBLE = {
    PreemptionEnd.NO_FIT: "it would not fit even if all units of lower priority were gone",
    PreemptionEnd.NOT_FOUND: "no room was found even with all units of lower priority gone",
    PreemptionEnd.NO_GAIN: "no more of it would fit even if all units of lower priority were gone",
}


def encode_decision(cluster: str, record: DecisionRecord) -> pb.Decision:
    """A committed decision as a message, assignments included."""
    message = pb.Decision()
    write_decision(cluster, record, message)
    return message


def write_decision(cluster: str, record: DecisionRecord, message: pb.Decision) -> None:
    """The same into a message that is empty: parts that are made by themselves are copied, which takes twice as long."""
    decision = record.decision
    message.id = record.id
    message.cluster = cluster
    message.revision = record.revision
    message.snapshot_revision = record.snapshot_revision
    write_ref(decision.unit, message.unit)
    message.code = _CODES[decision.code]
    message.message = decision.message
    _write_assignments(record.assignments, message.assignments)
    _write_search(decision.search, message.search)
    message.trace_id = record.trace_id
    message.profile = record.profile
    write_time(record.create_us, message.create_time)
    write_time(record.duration_us, message.duration)
    message.input_digest = record.input.digest
    if decision.result is not None:
        _write_result(decision.result, message.result)
    if decision.preemption is not None:
        message.preemption.CopyFrom(_encode_preemption(decision.preemption, record))


def encode_assignments(columns: AssignmentColumns) -> pb.Assignments:
    """Assignments in columns."""
    message = pb.Assignments()
    _write_assignments(columns, message)
    return message


def _write_assignments(columns: AssignmentColumns, message: pb.Assignments) -> None:
    message.SetInParent()
    message.namespace = columns.namespace
    message.nodes.extend(columns.nodes)
    message.pods.extend(columns.pods)
    message.uids.extend(columns.uids)
    message.node_index.extend(columns.node_index)


def encode_result(result: GroupResult) -> pb.GroupResult:
    """The result of a group and of all groups below it; a leaf's reasons are followed by those of its pods."""
    message = pb.GroupResult()
    _write_result(result, message)
    return message


def _write_result(result: GroupResult, message: pb.GroupResult) -> None:
    write_ref(result.key, message.ref)
    message.status = _STATUSES[result.status]
    message.required_count = result.required
    message.satisfied_count = result.satisfied
    message.remaining_count = result.remaining
    message.unschedulable_count = result.unschedulable
    message.unresolvable_count = result.unresolvable
    message.domain_key = result.domain_key
    message.domain_value = result.domain_value
    message.candidates_tried = result.tried
    message.candidates_pruned = result.pruned
    if result.reasons or result.pod_reasons:
        of_pods = [reason for _, reasons in sorted(result.pod_reasons.items()) for reason in reasons]
        message.reasons.extend(encode_reasons([*result.reasons, *of_pods]))
    for child in result.children:
        _write_result(child, message.children.add())


def encode_reasons(reasons: Iterable[Reason]) -> list[pb.Reason]:
    """Reasons in their order, each once."""
    found: list[pb.Reason] = []
    for each in reasons:
        message = pb.Reason(
            code=each.code, message=each.message, node_count=each.node_count, details=each.details
        )
        if message not in found:
            found.append(message)
    return found


def _encode_preemption(preemption: Preemption, record: DecisionRecord) -> pb.Preemption:
    pods = {
        ordinal: pb.DisruptedPod(
            namespace=namespace, name=name, uid=uid, node_name=node, grace_period_seconds=grace
        )
        for ordinal, namespace, name, uid, node, grace in zip(
            *(getattr(record.disrupted, column.name) for column in fields(record.disrupted)), strict=True
        )
    }
    return pb.Preemption(
        victims=[_encode_unit(each, pods) for each in preemption.victims],
        reprieved=[_encode_unit(each, pods) for each in preemption.reprieved],
        budget_violations=preemption.pods_over_budget,
        nominations=encode_assignments(record.nominations) if record.nominations.pods else None,
        not_possible=NOT_POSSIBLE.get(preemption.end, ""),
    )


def _encode_unit(unit: UnitFate, pods: Mapping[int, pb.DisruptedPod]) -> pb.DisruptionUnit:
    return pb.DisruptionUnit(
        ref=encode_ref(unit.unit),
        priority=unit.priority,
        violates_budget=unit.breaks_budget,
        reason=unit.reason,
        pods=[pods[ordinal] for ordinal in unit.pods if ordinal in pods],
    )


def _write_search(search: Search, message: pb.Search) -> None:
    message.end = _SEARCH_ENDS[search.end]
    message.nodes_spent = search.steps
    message.nodes_budget = search.budget
