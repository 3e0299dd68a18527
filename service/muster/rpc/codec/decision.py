"""Decisions as they are answered: the record, the result of each group, assignments in columns, who must go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from muster.core.decision import (
    Decision,
    DecisionCode,
    GroupResult,
    Preemption,
    PreemptionEnd,
    Reason,
    SearchEnd,
    Status,
    UnitFate,
)
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.rpc.codec.meta import encode_ref
from muster.rpc.codec.times import to_duration, to_timestamp
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
    decision = record.decision
    message = pb.Decision(
        id=record.id,
        cluster=cluster,
        revision=record.revision,
        snapshot_revision=record.snapshot_revision,
        unit=encode_ref(decision.unit),
        code=_CODES[decision.code],
        message=decision.message,
        assignments=encode_assignments(record.assignments),
        search=_encode_search(decision),
        trace_id=record.trace_id,
        profile=record.profile,
        create_time=to_timestamp(record.create_us),
        duration=to_duration(record.duration_us),
        input_digest=record.input.digest,
    )
    if decision.result is not None:
        message.result.CopyFrom(encode_result(decision.result))
    if decision.preemption is not None:
        message.preemption.CopyFrom(_encode_preemption(decision.preemption, record))
    return message


def encode_assignments(columns: AssignmentColumns) -> pb.Assignments:
    """Assignments in columns."""
    return pb.Assignments(
        namespace=columns.namespace,
        nodes=columns.nodes,
        pods=columns.pods,
        uids=columns.uids,
        node_index=columns.node_index,
    )


def encode_result(result: GroupResult) -> pb.GroupResult:
    """The result of a group and of all groups below it; a leaf's reasons are followed by those of its pods."""
    of_pods = [reason for _, reasons in sorted(result.pod_reasons.items()) for reason in reasons]
    return pb.GroupResult(
        ref=encode_ref(result.key),
        status=_STATUSES[result.status],
        required_count=result.required,
        satisfied_count=result.satisfied,
        remaining_count=result.remaining,
        unschedulable_count=result.unschedulable,
        unresolvable_count=result.unresolvable,
        domain_key=result.domain_key,
        domain_value=result.domain_value,
        candidates_tried=result.tried,
        candidates_pruned=result.pruned,
        reasons=encode_reasons([*result.reasons, *of_pods]),
        children=[encode_result(child) for child in result.children],
    )


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


def _encode_search(decision: Decision) -> pb.Search:
    return pb.Search(
        end=_SEARCH_ENDS[decision.search.end],
        nodes_spent=decision.search.steps,
        nodes_budget=decision.search.budget,
    )
