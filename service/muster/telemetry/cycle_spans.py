"""Makes the spans of a cycle of what the core told its observer; which attributes a span has is the core's.

Here a span is a plain record, since the SDK's own are made to be changed from many threads and cost a multiple. Nothing
of this is done before a batch is exported: the event loop only hands over what was told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, Status, StatusCode

from muster.core.decision import DecisionCode
from muster.core.observer import NullObserver, Observer
from muster.telemetry.facts import CycleFacts

PREFIX = "muster."
CANDIDATE = "candidate"
SCOPE = InstrumentationScope("muster")
MOST_IN_A_MESSAGE = 512
"""Spans and events together; a hundred to a few hundred bytes each."""
CYCLE = PREFIX + "cycle"
FAULTS = (DecisionCode.INVALID, DecisionCode.SCHEDULER_ERROR)
_NOT_OBSERVED = NullObserver()
_NO_RESOURCE = Resource.get_empty()
_STATUS_UNSET = Status(StatusCode.UNSET)
Attributes = dict[str, str | int | float]
Told = Sequence[Sequence[object]]
"""What a `RecordingObserver` kept."""


@dataclass(slots=True)
class CycleTrace:
    """One cycle that has started. `trace_id` is "" and `observer` deaf if it is not recorded.

    A cycle in a worker process uses an observer there if `is_recording`, and sends its events home. started_at is in
    nanoseconds of the wall clock, which is ahead of the monotonic clock by wall_offset.
    """

    trace_id: str = ""
    is_recording: bool = False
    observer: Observer = _NOT_OBSERVED
    context: SpanContext = INVALID_SPAN_CONTEXT
    parent: SpanContext | None = None
    started_at: int = 0
    wall_offset: int = 0
    attributes: Attributes = field(default_factory=dict)


class EndedCycle(ReadableSpan):
    """The span of a cycle, which brings along what was told of its inside. Nothing of the decision stays with it."""

    def __init__(self, trace: CycleTrace, facts: CycleFacts, told: Told, ended_at: int) -> None:
        decision = facts.decision
        self.trace = trace
        self.told = told
        self.ended_at = ended_at
        self.commit_ns = facts.commit_start_ns, facts.commit_end_ns
        self.own_status = (
            Status(StatusCode.ERROR, decision.message) if decision.code in FAULTS else _STATUS_UNSET
        )
        self.own_attributes = trace.attributes | {
            PREFIX + "code": decision.code.value,
            PREFIX + "decision": facts.decision_id,
            PREFIX + "profile": facts.profile,
            PREFIX + "pods": len(decision.assignments.pods),
            PREFIX + "wait_seconds": facts.wait_seconds,
        }
        super().__init__(
            CYCLE,
            trace.context,
            trace.parent,
            # The exporter knows it; to leave it out would have it found out anew each time.
            _NO_RESOURCE,
            attributes=self.own_attributes,
            start_time=trace.started_at,
            end_time=ended_at,
            status=self.own_status,
        )


@dataclass(slots=True, eq=False)
class SpanRecord:
    """A span below `above`, or the cycle's own (None). Times in nanoseconds of the wall clock; `level` is its group's.

    events: the newest within the limit, of `events_told`.
    """

    cycle: EndedCycle
    above: SpanRecord | None
    name: str
    span_id: int
    started_at: int
    attributes: Attributes
    events: deque[tuple[int, Attributes]]
    level: int
    ended_at: int = 0
    events_told: int = 0

    @property
    def status(self) -> Status:
        """Only a cycle fails."""
        return self.cycle.own_status if self.above is None else _STATUS_UNSET

    def tell(self, at: int, attributes: Attributes) -> None:
        """Add an event."""
        self.events.append((at, attributes))
        self.events_told += 1


@dataclass(slots=True)
class SpanMaker:
    """Makes records of cycles that ended, within the limits that the standard variables set."""

    ids: IdGenerator
    limits: SpanLimits = field(default_factory=SpanLimits)

    def spans(self, cycles: Iterable[EndedCycle]) -> Iterator[SpanRecord]:
        """Of each cycle its own span first, then those inside as they were entered, then that of its commit."""
        for cycle in cycles:
            for record in _Replay(self, cycle).run():
                record.attributes = self._limited(record.attributes)
                yield record

    def record(
        self, cycle: EndedCycle, above: SpanRecord | None, name: str, started_at: int, attributes: Attributes
    ) -> SpanRecord:
        """A span that has begun; the cycle's own has its id already."""
        span_id = cycle.trace.context.span_id if above is None else self.ids.generate_span_id()
        events: deque[tuple[int, Attributes]] = deque(maxlen=self.limits.max_events)
        level = above.level if above is not None else 0
        return SpanRecord(cycle, above, PREFIX + name, span_id, started_at, attributes, events, level)

    def _limited(self, attributes: Attributes) -> Attributes:
        most, longest = self.limits.max_span_attributes, self.limits.max_span_attribute_length
        if most is not None and len(attributes) > most:
            attributes = dict(islice(attributes.items(), most))
        if longest is None:
            return attributes
        return {
            key: value[:longest] if isinstance(value, str) else value for key, value in attributes.items()
        }


class _Replay:
    """One cycle, told once more.

    groups: by name, as they were entered last. A fill goes on in its group, which then has the attributes of when the
    fill was left, and the end of when the group was.
    """

    def __init__(self, maker: SpanMaker, cycle: EndedCycle) -> None:
        self._maker = maker
        self._cycle = cycle
        self._top = maker.record(cycle, None, "cycle", cycle.trace.started_at, cycle.own_attributes)
        self._top.ended_at = cycle.ended_at
        self._made = [self._top]
        self._inside: list[tuple[SpanRecord, str]] = []
        self._groups: dict[str, SpanRecord] = {}

    def run(self) -> list[SpanRecord]:
        """All spans of the cycle, once: its own, those inside as they were entered, that of its commit if it had one."""
        offset = self._cycle.trace.wall_offset
        at = self._cycle.trace.started_at
        for kind, told_at, *rest in self._cycle.told:
            at = cast("int", told_at) + offset
            if kind == "enter":
                section, name = cast("list[str]", rest)
                self._inside.append((self._entered(section, name, at), section))
            elif kind == "candidate":
                self._current().tell(at, _prefixed(rest[0]))
            elif self._inside:
                self._leave(rest[0], at)
        while self._inside:
            # The core stopped inside a section: an exception, or a worker that was ended.
            self._leave({}, at)
        started, ended = self._cycle.commit_ns
        if ended:
            self._begun("commit", started + offset, {}).ended_at = ended + offset
        return self._made

    def _entered(self, section: str, name: str, at: int) -> SpanRecord:
        if section == "cycle":
            return self._top
        if section == "fill":
            return self._groups.get(name) or self._current()
        entered = self._begun(section, at, {PREFIX + "name": name})
        if section == "group":
            entered.level += 1
            entered.attributes[PREFIX + "level"] = entered.level
            self._groups[name] = entered
        return entered

    def _leave(self, attributes: object, at: int) -> None:
        record, section = self._inside.pop()
        record.attributes.update(_prefixed(attributes))
        if section not in {"cycle", "fill"}:
            record.ended_at = at

    def _begun(self, name: str, at: int, attributes: Attributes) -> SpanRecord:
        made = self._maker.record(self._cycle, self._current(), name, at, attributes)
        self._made.append(made)
        return made

    def _current(self) -> SpanRecord:
        return self._inside[-1][0] if self._inside else self._top


def ended_cycles(spans: Iterable[ReadableSpan]) -> Iterator[EndedCycle]:
    """Those among the spans that a processor hands on, which knows no more specific name for them."""
    return (span for span in spans if isinstance(span, EndedCycle))


def runs(records: Iterable[SpanRecord]) -> Iterator[list[SpanRecord]]:
    """The records in messages that a collector takes: a tree may have thousands, and events in each."""
    run: list[SpanRecord] = []
    weight = 0
    for record in records:
        run.append(record)
        weight += 1 + len(record.events)
        if weight >= MOST_IN_A_MESSAGE:
            yield run
            run, weight = [], 0
    if run:
        yield run


def _prefixed(given: object) -> Attributes:
    """The core's attributes under the service's prefix."""
    return {_prefixed_key(key): value for key, value in cast("Attributes", given).items()}


@lru_cache
def _prefixed_key(key: str) -> str:
    return PREFIX + key
