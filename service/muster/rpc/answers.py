"""Answers of the engine as response messages; objects and decisions inside them are the codec's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

from muster.engine.api import (
    AppliedObject,
    ApplyAnswer,
    DeleteAnswer,
    DeleteOutcome,
    ReportAnswer,
    ReportOutcome,
)
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import outcome_pb2
from muster.validation.admission import Outcome

APPLY_OUTCOMES = {
    Outcome.CREATED: outcome_pb2.APPLY_OUTCOME_CREATED,
    Outcome.UPDATED: outcome_pb2.APPLY_OUTCOME_UPDATED,
    Outcome.UNCHANGED: outcome_pb2.APPLY_OUTCOME_UNCHANGED,
}
DELETE_OUTCOMES = {
    DeleteOutcome.DELETED: outcome_pb2.DELETE_OUTCOME_DELETED,
    DeleteOutcome.MARKED: outcome_pb2.DELETE_OUTCOME_MARKED,
    DeleteOutcome.MISSING: outcome_pb2.DELETE_OUTCOME_MISSING,
}
REPORT_OUTCOMES = {
    ReportOutcome.ACCEPTED: outcome_pb2.REPORT_OUTCOME_ACCEPTED,
    ReportOutcome.UNCHANGED: outcome_pb2.REPORT_OUTCOME_UNCHANGED,
    ReportOutcome.STALE: outcome_pb2.REPORT_OUTCOME_STALE,
    ReportOutcome.UNKNOWN_POD: outcome_pb2.REPORT_OUTCOME_UNKNOWN_POD,
    ReportOutcome.INVALID: outcome_pb2.REPORT_OUTCOME_INVALID,
}
MANY = 32
"""So many results that are alike are not made one by one."""
_WHAT_HAPPENED = attrgetter("outcome", "resource_version")

REPORT_MESSAGES = {
    ReportOutcome.STALE: "what is stored about the pod is newer than the report, or of another uid",
    ReportOutcome.UNKNOWN_POD: "no such pod is stored",
    ReportOutcome.INVALID: "the report names no pod, no node, nothing that can have happened, or a time or text beyond the limits",
}


def apply_response(
    sent: Sequence[ClusterObject | PodBatch | None],
) -> Callable[[ApplyAnswer], pb.ApplyResponse]:
    """Makes the response to a request with these objects; results of pod batches have counts."""
    are_any = PodBatch in map(type, sent)
    batches = {index for index, each in enumerate(sent) if type(each) is PodBatch} if are_any else set()

    def encode(answer: ApplyAnswer) -> pb.ApplyResponse:
        response = pb.ApplyResponse(revision=answer.revision)
        index = 0
        for _, run in groupby(answer.results, key=_WHAT_HAPPENED):
            results = list(run)
            if len(results) >= MANY and batches.isdisjoint(range(index, index + len(results))):
                _add_alike(response, results)
            else:
                for place, result in enumerate(results, start=index):
                    _add(response, result, has_counts=place in batches)
            index += len(results)
        return response

    return encode


def _add(response: pb.ApplyResponse, result: AppliedObject, *, has_counts: bool) -> None:
    """In place: messages that are handed over are copied."""
    made = response.results.add(
        outcome=APPLY_OUTCOMES[result.outcome], uid=result.uid, resource_version=result.resource_version
    )
    if has_counts:
        made.counts.SetInParent()
        made.counts.created = result.created
        made.counts.updated = result.updated
        made.counts.unchanged = result.unchanged


def _add_alike(response: pb.ApplyResponse, results: Sequence[AppliedObject]) -> None:
    """Results that differ in their uids alone, which mostly are of one length: each is the bytes of the first with its own."""
    first, uids = results[0], [result.uid for result in results]
    if not first.uid or set(map(len, uids)) != {len(first.uid)} or not "".join(uids).isascii():
        for result in results:
            _add(response, result, has_counts=False)
        return
    sample = pb.ApplyResponse()
    _add(sample, first, has_counts=False)
    encoded = sample.SerializeToString()
    # The fields behind the uid, in their order.
    tail = pb.ApplyResult(resource_version=first.resource_version).SerializeToString()
    head = encoded[: len(encoded) - len(tail) - len(first.uid)]
    written = (tail + head).join(map(str.encode, uids))
    response.MergeFromString(head + written + tail)


def delete_response(answer: DeleteAnswer) -> pb.DeleteResponse:
    """The response to a Delete."""
    outcomes = [DELETE_OUTCOMES[outcome] for outcome in answer.outcomes]
    return pb.DeleteResponse(revision=answer.revision, outcomes=outcomes)


def report_response(answer: ReportAnswer) -> pb.ReportPodsResponse:
    """The response to a ReportPods, with a message for each report that was not taken in."""
    return pb.ReportPodsResponse(
        revision=answer.revision,
        outcomes=[REPORT_OUTCOMES[outcome] for outcome in answer.outcomes],
        messages={
            index: REPORT_MESSAGES[outcome]
            for index, outcome in enumerate(answer.outcomes)
            if outcome in REPORT_MESSAGES
        },
    )
