"""muster.v1.SchedulerService: each method checks its request, calls the engine, encodes the answer."""

from __future__ import annotations

from functools import partial
from typing import Any

from grpc import aio

from muster.engine.api import (
    DecisionFilter,
    PositionedUnit,
    PreemptAnswer,
    PreemptCall,
    RequestIdentity,
    ScheduleAnswer,
    ScheduleCall,
    SchedulingEngine,
)
from muster.rpc.admission import Admission
from muster.rpc.decisions import (
    DecisionLister,
    DecisionMessages,
    code_names,
    fitted,
    rerun_message,
    watched_units,
)
from muster.rpc.explain import explain
from muster.rpc.limits import PAGE_BYTES
from muster.rpc.lists import checked_uid, refuse_other_uids
from muster.rpc.pagination import KeptLists, PageTokens
from muster.rpc.queue_pages import QueueLister, encode_unit
from muster.rpc.replay import AnswerEncoder, identity_of
from muster.rpc.request_checks import AskedUnit, RequestFaults, asked_unit
from muster.rpc.simulate import simulate
from muster.rpc.telemetry_port import RpcTelemetry
from muster.rpc.watch import WatchStream
from muster.v1 import scheduler_service_pb2 as pb
from muster.v1 import scheduler_service_pb2_grpc
from muster.validation.violations import REQUIRED

Context = aio.ServicerContext[Any, Any]


class SchedulerServicer(scheduler_service_pb2_grpc.SchedulerServiceServicer):
    """Holds nothing but what its answers are made with.

    Streams write to their context, which the generated types do not foresee: a write can be given a time limit.
    """

    def __init__(
        self,
        engine: SchedulingEngine,
        admission: Admission,
        telemetry: RpcTelemetry,
        lists: KeptLists[PositionedUnit],
        tokens: PageTokens,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._telemetry = telemetry
        self._queue = QueueLister(engine, tokens, lists)
        self._decisions = DecisionLister(engine, tokens)

    async def Schedule(self, request: pb.ScheduleRequest, context: Context) -> pb.ScheduleResponse:
        """One cycle for the unit that `unit` belongs to; with `wait`, cycles until it is scheduled or the time is over."""
        asked = asked_unit(request)
        identity, kept = await self._before("Schedule", request, asked)
        if kept is not None:
            return pb.ScheduleResponse.FromString(kept)
        encoder: AnswerEncoder[ScheduleAnswer, pb.ScheduleResponse] = AnswerEncoder(
            partial(_schedule_response, asked.cluster)
        )
        call = ScheduleCall(
            asked.cluster, asked.unit, request.validate_only, asked.wait_seconds, identity, encoder.to_bytes
        )
        return encoder.message(await self._engine.schedule(call))

    async def Preempt(self, request: pb.PreemptRequest, context: Context) -> pb.PreemptResponse:
        """One cycle for the unit that `unit` belongs to, which may evict others for it and binds nothing."""
        asked = asked_unit(request)
        identity, kept = await self._before("Preempt", request, asked)
        if kept is not None:
            return pb.PreemptResponse.FromString(kept)
        encoder = AnswerEncoder[PreemptAnswer, pb.PreemptResponse](
            lambda answer: _preempt_response(asked.cluster, answer)
        )
        call = PreemptCall(asked.cluster, asked.unit, request.validate_only, identity, encoder.to_bytes)
        return encoder.message(await self._engine.preempt(call))

    async def _before(
        self, method: str, request: pb.ScheduleRequest | pb.PreemptRequest, asked: AskedUnit
    ) -> tuple[RequestIdentity | None, bytes | None]:
        """The request's identity, and the answer that is kept for it; without one the unit's uid is checked."""
        identity = identity_of(method, request.request_id, request)
        kept = await self._engine.find_replay(asked.cluster, identity) if identity is not None else None
        if kept is None and request.unit.uid:
            await checked_uid(self._engine, asked.cluster, asked.unit, request.unit.uid)
        return identity, kept

    async def Simulate(self, request: pb.SimulateRequest, context: Context) -> pb.SimulateResponse:
        """What would be decided on the cluster, or on objects sent along, with changes on top."""
        return await simulate(self._engine, request, context)

    async def Explain(self, request: pb.ExplainRequest, context: Context) -> pb.ExplainResponse:
        return await explain(self._engine, request)

    async def WatchDecisions(self, request: pb.WatchDecisionsRequest, context: Context) -> None:  # type: ignore[override]
        """Decisions in order, at least once each, until the caller leaves or the server drains."""
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        start = request.from_revision if request.HasField("from_revision") else None
        faults.revision(start, "fromRevision")
        named = watched_units(request, faults)
        codes = code_names(list(request.codes), faults)
        faults.refuse()
        await refuse_other_uids(self._engine, cluster, named)
        units = frozenset(key for key, _ in named)
        selection = DecisionFilter(unit=next(iter(units)) if len(units) == 1 else None, codes=codes)
        messages = DecisionMessages(cluster, start, units)
        self._telemetry.watch_opened("WatchDecisions")
        try:
            with self._admission.watch():
                stream = WatchStream(context, self._admission, messages.of, messages.bookmark)
                await stream.run(self._engine.decisions(cluster, start, selection))
        finally:
            self._telemetry.watch_closed("WatchDecisions")

    async def GetDecision(self, request: pb.GetDecisionRequest, context: Context) -> pb.GetDecisionResponse:
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        if not request.id:
            faults.add("id", REQUIRED, "must be set")
        faults.refuse()
        record = await self._engine.get_decision(cluster, request.id)
        response = pb.GetDecisionResponse(decision=fitted(cluster, record))
        if request.rerun:
            response.rerun.CopyFrom(rerun_message(cluster, await self._engine.rerun(cluster, record)))
        if response.ByteSize() > PAGE_BYTES:
            response.rerun.ClearField("decision")
        return response

    async def ListDecisions(
        self, request: pb.ListDecisionsRequest, context: Context
    ) -> pb.ListDecisionsResponse:
        return await self._decisions.list(request)

    async def GetQueue(self, request: pb.GetQueueRequest, context: Context) -> pb.GetQueueResponse:
        return await self._queue.list(request)


def _schedule_response(cluster: str, answer: ScheduleAnswer) -> pb.ScheduleResponse:
    return pb.ScheduleResponse(
        decision=None if answer.decision is None else fitted(cluster, answer.decision),
        fresh=answer.fresh,
        queue=None if answer.queue is None else encode_unit(answer.queue),
    )


def _preempt_response(cluster: str, answer: PreemptAnswer) -> pb.PreemptResponse:
    response = pb.PreemptResponse(decision=fitted(cluster, answer.decision))
    if answer.not_possible:
        response.decision.preemption.not_possible = answer.not_possible
    return response
