"""GetQueue: units in the order of the queue, cut into pages, and what waits for its root."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from muster.engine.api import PositionedUnit, QueueAnswer, SchedulingEngine
from muster.engine.ports import PendingGroup, PendingMember, UnitState
from muster.rpc.codec import encode_reasons, encode_ref
from muster.rpc.limits import MAX_PENDING_SHOWN
from muster.rpc.pagination import KeptLists, PageBudget, PageTokens, Position
from muster.rpc.request_checks import RequestFaults
from muster.v1 import decision_pb2, queue_pb2
from muster.v1 import scheduler_service_pb2 as pb

# The engine's states have the numbers of the API's.
_STATES = {state.value: state for state in UnitState}


class QueueLister:
    """Serves GetQueue: the first page asks the engine, all others go on in what the first one kept."""

    def __init__(
        self, engine: SchedulingEngine, tokens: PageTokens, lists: KeptLists[PositionedUnit]
    ) -> None:
        self._engine = engine
        self._tokens = tokens
        self._lists = lists

    async def list(self, request: pb.GetQueueRequest) -> pb.GetQueueResponse:
        """One page. Raises InvalidArgumentError, NotFoundError, OutOfRangeError."""
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        faults.enum_values(request.states, _STATES, "states")
        size = faults.page_size(request.page_size)
        faults.refuse()
        if request.page_token:
            position = self._tokens.read(request, request.page_token)
            kept, offset = self._lists.find(position.list_id), position.offset
        else:
            answer = await self._engine.queue(cluster, frozenset(_STATES[each] for each in request.states))
            kept, offset = self._lists.keep(answer.revision, answer.units, _summary(answer)), 0
        response = pb.GetQueueResponse()
        if isinstance(kept.summary, pb.GetQueueResponse):
            response.MergeFrom(kept.summary)
        if offset > 0:
            response.ClearField("pending_pod_groups")
            response.ClearField("pending_pod_group_members")
        end = offset + _fill(response, kept.elements[offset : offset + size])
        if end < len(kept.elements):
            response.next_page_token = self._tokens.make(request, Position(kept.list_id, end))
        elif offset == 0:
            self._lists.drop(kept.list_id)
        return response


def encode_unit(positioned: PositionedUnit) -> queue_pb2.UnitQueueState:
    """A queued unit as the API shows it. Its message goes with the first reason: its state, if it was not tried yet.

    What is reserved for it comes last.
    """
    unit = positioned.unit
    state = queue_pb2.UnitQueueState(
        unit=encode_ref(unit.key),
        state=queue_pb2.UnitState.ValueType(unit.state.value),
        priority=unit.priority,
        attempts=unit.attempts,
        position=positioned.position,
        pending_pod_count=positioned.pending_pods,
        reasons=[
            decision_pb2.Reason(code=code, message="" if index else unit.message)
            for index, code in enumerate(unit.reasons or ((unit.state.name,) if unit.message else ()))
        ],
    )
    if positioned.reserved is not None:
        state.reasons.extend(encode_reasons([positioned.reserved]))
    _set_time(state.first_pending_time, unit.since_us)
    _set_time(state.not_before_time, unit.not_before_us)
    _set_time(state.last_attempt_time, unit.last_attempt_us)
    return state


def _summary(answer: QueueAnswer) -> pb.GetQueueResponse:
    counts = [
        queue_pb2.UnitStateCount(state=queue_pb2.UnitState.ValueType(state.value), count=count)
        for state, count in sorted(answer.counts.items())
        if count
    ]
    return pb.GetQueueResponse(
        counts=counts,
        pending_pod_groups=[_pending(each) for each in answer.pending_groups[:MAX_PENDING_SHOWN]],
        pending_pod_group_members=[_pending(each) for each in answer.pending_members[:MAX_PENDING_SHOWN]],
        pending_pod_group_count=len(answer.pending_groups),
        pending_pod_group_member_count=len(answer.pending_members),
        revision=answer.revision,
    )


def _pending(waiting: PendingGroup | PendingMember) -> queue_pb2.PendingObject:
    return queue_pb2.PendingObject(ref=encode_ref(waiting.key), missing=encode_ref(waiting.missing))


def _fill(response: pb.GetQueueResponse, units: Sequence[PositionedUnit]) -> int:
    budget = PageBudget(used=response.ByteSize())
    for index, each in enumerate(units):
        encoded = encode_unit(each)
        if not budget.takes(encoded):
            return index
        response.units.append(encoded)
    return len(units)


def _set_time(field: Timestamp, microseconds: int) -> None:
    """Sets a time, unless it is 0: not known."""
    if microseconds:
        field.FromMicroseconds(microseconds)
