"""Decisions to callers: fitted into a response, streamed, and listed in pages."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from muster.engine.api import DecisionBatch, DecisionFilter, SchedulingEngine
from muster.engine.ports import DecisionRecord
from muster.engine.rerun import Rerun
from muster.model.meta import ObjectKey
from muster.rpc.codec import encode_decision, write_decision
from muster.rpc.limits import PAGE_BYTES, WATCH_BYTES, WATCH_EVENTS
from muster.rpc.lists import refuse_other_uids
from muster.rpc.pagination import PageBudget, PageTokens, Position
from muster.rpc.request_checks import UNIT_KINDS, RequestFaults
from muster.rpc.watch import split_by_size
from muster.v1 import decision_pb2
from muster.v1 import scheduler_service_pb2 as pb
from muster.validation.violations import INVALID, TOO_MANY

CODE_PREFIX = "DECISION_CODE_"
MAX_UNITS = 1_000


def fitted(cluster: str, record: DecisionRecord, room: int = PAGE_BYTES) -> decision_pb2.Decision:
    """The decision, without what would make it larger than its room in a response: the columns of pods go first."""
    decision = encode_decision(cluster, record)
    if decision.ByteSize() > room:
        _fit(decision, room)
    return decision


def _fit(decision: decision_pb2.Decision, room: int) -> None:
    """Leave out of a decision that is larger than its room what makes it so."""
    decision.ClearField("assignments")
    decision.assignments_omitted = True
    if decision.ByteSize() > room and decision.HasField("preemption"):
        decision.preemption.ClearField("reprieved")
        decision.preemption.ClearField("nominations")
    if decision.ByteSize() > room and decision.HasField("result"):
        decision.result.ClearField("children")


def rerun_message(cluster: str, rerun: Rerun) -> pb.DecisionRerun:
    """What came of making a decision again; the decision itself only if it is another one."""
    equal = rerun.again is not None and not rerun.differences
    message = pb.DecisionRerun(
        equal=equal,
        same_input=rerun.is_same_input,
        differences=rerun.differences,
        not_possible=rerun.not_possible,
    )
    if rerun.again is not None and not equal:
        message.decision.CopyFrom(fitted(cluster, rerun.again))
    return message


def code_names(codes: list[int], faults: RequestFaults) -> frozenset[str]:
    """Names of decision codes without their prefix."""
    known = decision_pb2.DecisionCode.DESCRIPTOR.values_by_number
    faults.enum_values(codes, known, "codes")
    return frozenset(known[code].name.removeprefix(CODE_PREFIX) for code in codes if code in known)


class DecisionLister:
    """Serves ListDecisions. Decisions never change, so that a page needs no more than where the last one ended."""

    def __init__(self, engine: SchedulingEngine, tokens: PageTokens) -> None:
        self._engine = engine
        self._tokens = tokens

    async def list(self, request: pb.ListDecisionsRequest) -> pb.ListDecisionsResponse:
        """One page. Raises InvalidArgumentError, NotFoundError."""
        faults = RequestFaults()
        cluster = faults.cluster(request.cluster)
        selection = _selection(request, faults)
        size = faults.page_size(request.page_size)
        faults.refuse()
        revision, before = 0, None
        if request.page_token:
            position = self._tokens.read(request, request.page_token)
            revision, before = position.list_id, position.offset
        elif selection.unit is not None:
            await refuse_other_uids(self._engine, cluster, [(selection.unit, request.unit.uid)])
        records = await self._engine.list_decisions(cluster, selection, before, size + 1)
        revision = revision or (records[0].revision if records else 0)
        response = pb.ListDecisionsResponse(revision=revision)
        budget = PageBudget()
        for record in records[:size]:
            decision = fitted(cluster, record)
            if not budget.takes(decision):
                break
            response.decisions.append(decision)
        if len(response.decisions) < len(records):
            last = response.decisions[-1].revision
            response.next_page_token = self._tokens.make(request, Position(revision, last))
        return response


class DecisionMessages:
    """Makes the messages of one WatchDecisions and remembers what has been promised.

    `units` empty is all; several are sorted out here, since the engine filters by one.
    """

    def __init__(self, cluster: str, start: int | None, units: frozenset[ObjectKey]) -> None:
        self._cluster = cluster
        self._revision = start
        self._units = units

    def of(self, batch: DecisionBatch) -> Iterator[Message | bytes]:
        """The messages of a batch; only the last has its revision."""
        wanted = [each for each in batch.decisions if not self._units or each.decision.unit in self._units]
        if batch.decisions and not wanted:
            self._revision = batch.revision
            return
        encoded = (_encoded(self._cluster, each) for each in wanted)
        runs = list(split_by_size(encoded, len, WATCH_EVENTS, WATCH_BYTES))
        unfinished = pb.WatchDecisionsResponse(revision=self._revision or 0).SerializeToString()
        for run in runs[:-1]:
            yield b"".join((*run, unfinished))
        self._revision = batch.revision
        finished = pb.WatchDecisionsResponse(revision=batch.revision).SerializeToString()
        yield b"".join((*(runs[-1] if runs else ()), finished))

    def bookmark(self) -> Message | None:
        return None if self._revision is None else pb.WatchDecisionsResponse(revision=self._revision)


def _encoded(cluster: str, record: DecisionRecord) -> bytes:
    """A response with the decision and nothing else. Several, one behind the other, are one of all their decisions."""
    response = pb.WatchDecisionsResponse()
    decision = response.decisions.add()
    write_decision(cluster, record, decision)
    encoded = response.SerializeToString()
    if len(encoded) <= PAGE_BYTES:
        return encoded
    _fit(decision, PAGE_BYTES)
    return response.SerializeToString()


def watched_units(request: pb.WatchDecisionsRequest, faults: RequestFaults) -> list[tuple[ObjectKey, str]]:
    """The units that a watch names, and the uid that each of them must have, "" for any."""
    if len(request.units) > MAX_UNITS:
        faults.add("units", TOO_MANY, f"at most {MAX_UNITS} units, not {len(request.units)}")
        return []
    return [
        (faults.ref(unit, f"units[{index}]", present=True, allowed=UNIT_KINDS), unit.uid)
        for index, unit in enumerate(request.units)
    ]


def _selection(request: pb.ListDecisionsRequest, faults: RequestFaults) -> DecisionFilter:
    unit = None
    if request.HasField("unit"):
        unit = faults.ref(request.unit, "unit", present=True, allowed=UNIT_KINDS)
    start = faults.moment(request.start_time, "startTime", present=request.HasField("start_time"))
    end = faults.moment(request.end_time, "endTime", present=request.HasField("end_time"))
    if start is not None and end is not None and start > end:
        faults.add("endTime", INVALID, "the end is before the start")
    return DecisionFilter(unit, code_names(list(request.codes), faults), start, end)
