"""Explain: checks the request, asks the engine, encodes the answer. Codes and texts of reasons are the engine's."""

from __future__ import annotations

from muster.engine.api import ExplainCall, SchedulingEngine
from muster.rpc.codec.explanation import encode_explained, encode_helps
from muster.rpc.decisions import fitted
from muster.rpc.limits import PAGE_BYTES
from muster.rpc.lists import checked_uid
from muster.rpc.queue_pages import encode_unit
from muster.rpc.request_checks import UNIT_KINDS, RequestFaults
from muster.v1 import scheduler_service_pb2 as pb


async def explain(engine: SchedulingEngine, request: pb.ExplainRequest) -> pb.ExplainResponse:
    """Why the unit of an object is where it is. Raises InvalidArgumentError and the refusals of the engine."""
    faults = RequestFaults()
    cluster = faults.cluster(request.cluster)
    unit = faults.ref(request.unit, "unit", present=request.HasField("unit"), allowed=UNIT_KINDS)
    faults.refuse()
    if request.unit.uid:
        await checked_uid(engine, cluster, unit, request.unit.uid)
    answer = await engine.explain(ExplainCall(cluster, unit, request.what_would_help))
    response = pb.ExplainResponse(
        queue=None if answer.queue is None else encode_unit(answer.queue),
        last_decision=None if answer.last_decision is None else fitted(cluster, answer.last_decision),
        result=encode_explained(answer),
        helps=encode_helps(answer),
        revision=answer.revision,
    )
    _fit(response)
    return response


def _fit(response: pb.ExplainResponse) -> None:
    """Take off what would make it larger than a response may be: columns of pods first, then the groups' old results."""
    if response.HasField("last_decision"):
        if response.ByteSize() > PAGE_BYTES:
            response.last_decision.ClearField("assignments")
            response.last_decision.assignments_omitted = True
        if response.ByteSize() > PAGE_BYTES:
            response.last_decision.ClearField("result")
    if response.ByteSize() > PAGE_BYTES:
        response.result.ClearField("children")
