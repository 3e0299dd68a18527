"""Spans of cycles, made of what the core tells its observer, by the standard OpenTelemetry variables.

`muster.cycle` is opened when a cycle starts, so that its trace id can be stored with the decision and a sampler may
decline it; what is inside (`muster.group`, `muster.pods`, `muster.preemption`, `muster.commit`) is made afterwards
from recorded events. A cycle that is not sampled records nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import INVALID_SPAN, Span, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from muster.core.decision import DecisionCode
from muster.core.observer import NullObserver, Observer, RecordingObserver
from muster.model.meta import ObjectKey
from muster.telemetry.facts import CycleFacts

PREFIX = "muster."
FAULTS = (DecisionCode.INVALID, DecisionCode.SCHEDULER_ERROR)
_NOT_OBSERVED = NullObserver()
_NO_TRACE = nullcontext()
_propagator = TraceContextTextMapPropagator()


@dataclass(slots=True)
class CycleTrace:
    """One cycle that has started. `trace_id` is "" and `observer` deaf if it is not recorded.

    A cycle in a worker process uses an observer there if `is_recording`, and sends its events home.
    """

    trace_id: str = ""
    is_recording: bool = False
    observer: Observer = _NOT_OBSERVED
    span: Span = INVALID_SPAN
    wall_offset_ns: int = 0


@dataclass(slots=True)
class _Open:
    """A section that has been entered and not left; `level` is that of the innermost group, 0 outside of groups."""

    span: Span
    section: str
    level: int = 0


@dataclass(slots=True)
class _Replay:
    """Makes spans of one cycle's events, in their order.

    groups: by name, as they were entered last. Their spans end when all is told, at the times at which they were left:
    a fill still adds to them.
    """

    tracer: trace.Tracer
    cycle: CycleTrace
    stack: list[_Open] = field(default_factory=list)
    groups: dict[str, _Open] = field(default_factory=dict)
    left: list[tuple[Span, int]] = field(default_factory=list)

    def run(self, events: Iterable[Sequence[object]]) -> None:
        last_ns = 0
        for kind, at, *rest in events:
            last_ns = self._wall(cast("int", at))
            if kind == "enter":
                self._enter(cast("str", rest[0]), cast("str", rest[1]), last_ns)
            elif kind == "candidate":
                self._current().add_event("candidate", _attributes(rest[0]), last_ns)
            elif self.stack:
                self._leave(rest[0], last_ns)
        while self.stack:
            # The core stopped inside a section: an exception, or a worker that was ended.
            self._leave({}, last_ns)
        for span, at_ns in self.left:
            span.end(at_ns)

    def span(self, name: str, start_ns: int, end_ns: int) -> None:
        made = self._start(name, self._wall(start_ns))
        made.end(self._wall(end_ns))

    def _enter(self, section: str, name: str, at_ns: int) -> None:
        level = self.stack[-1].level if self.stack else 0
        if section == "cycle":
            entered = _Open(self.cycle.span, section)
        elif section == "fill":
            known = self.groups.get(name)
            entered = (
                _Open(known.span, section, known.level) if known else _Open(self._current(), section, level)
            )
        else:
            entered = _Open(self._start(PREFIX + section, at_ns), section, level + (section == "group"))
            entered.span.set_attribute(PREFIX + "name", name)
        if section == "group":
            entered.span.set_attribute(PREFIX + "level", entered.level)
            self.groups[name] = entered
        self.stack.append(entered)

    def _leave(self, attributes: object, at_ns: int) -> None:
        left = self.stack.pop()
        left.span.set_attributes(_attributes(attributes))
        if left.section == "group":
            self.left.append((left.span, at_ns))
        elif left.section not in {"cycle", "fill"}:
            left.span.end(at_ns)

    def _start(self, name: str, at_ns: int) -> Span:
        parent = trace.set_span_in_context(self._current())
        return self.tracer.start_span(name, parent, start_time=at_ns)

    def _current(self) -> Span:
        return self.stack[-1].span if self.stack else self.cycle.span

    def _wall(self, monotonic_ns: int) -> int:
        return monotonic_ns + self.cycle.wall_offset_ns


def _attributes(given: object) -> dict[str, str | int]:
    """The core's attributes under the service's prefix."""
    return {PREFIX + key: value for key, value in cast("dict[str, str | int]", given).items()}


class Tracing:
    """Makes spans with a provider; without one every cycle is unrecorded and costs one call."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("muster") if provider is not None else None

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> CycleTrace:
        """Opens `muster.cycle`; `caller` is the traceparent of who asked for it ("": nobody)."""
        if self._tracer is None:
            return CycleTrace()
        parent = _propagator.extract({"traceparent": caller}) if caller else otel_context.Context()
        span = self._tracer.start_span(PREFIX + "cycle", parent)
        if not span.is_recording():
            return CycleTrace(span=span)
        span.set_attributes({PREFIX + "cluster": cluster, PREFIX + "unit": str(unit)})
        return CycleTrace(
            trace_id=trace.format_trace_id(span.get_span_context().trace_id),
            is_recording=True,
            observer=RecordingObserver(time.monotonic_ns),
            span=span,
            wall_offset_ns=time.time_ns() - time.monotonic_ns(),
        )

    def cycle_ended(
        self, cycle: CycleTrace, facts: CycleFacts, events: Sequence[Sequence[object]] | None
    ) -> None:
        """Makes the spans inside and ends the cycle's. `events` None: those of the cycle's own observer."""
        if not cycle.is_recording or self._tracer is None:
            return
        replay = _Replay(self._tracer, cycle)
        if events is None and isinstance(cycle.observer, RecordingObserver):
            events = cycle.observer.events
        replay.run(events or ())
        if facts.commit_end_ns:
            replay.span(PREFIX + "commit", facts.commit_start_ns, facts.commit_end_ns)
        decision = facts.decision
        cycle.span.set_attributes(
            {
                PREFIX + "code": decision.code.value,
                PREFIX + "decision": facts.decision_id,
                PREFIX + "profile": facts.profile,
                PREFIX + "pods": len(decision.assignments.pods),
                PREFIX + "wait_seconds": facts.wait_seconds,
            }
        )
        if decision.code in FAULTS:
            cycle.span.set_status(Status(StatusCode.ERROR, decision.message))
        cycle.span.end()

    def caller(self) -> str:
        """The traceparent of the RPC that is being served, "" if it came without one."""
        if self._tracer is None:
            return ""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def caller_trace(
        self, metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    ) -> AbstractContextManager[None]:
        """Makes the trace context in an RPC's metadata the current one inside."""
        if self._tracer is None:
            return _NO_TRACE
        carrier = {key: value for key, value in metadata() or () if key in _propagator.fields}
        return _attached(carrier) if carrier else _NO_TRACE

    def close(self) -> None:
        """Export what is left; waits for the collector for a few seconds at most."""
        if self._provider is not None:
            self._provider.shutdown()


@contextmanager
def _attached(carrier: dict[str, str | bytes]) -> Iterator[None]:
    token = otel_context.attach(_propagator.extract(carrier))
    try:
        yield
    finally:
        otel_context.detach(token)


def otlp_is_on(signal: str) -> bool:
    """Whether the standard variables ask for OTLP export of a signal (TRACES, METRICS): an endpoint and no `none`."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp") != "otlp":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return any(os.environ.get(name) for name in names)


def otlp_speaks_http(signal: str) -> bool:
    """Whether OTLP goes as http/protobuf and not as gRPC, which is the default."""
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", general).startswith("http")


def service_resource(version: str) -> Resource:
    """What describes this service; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over the defaults."""
    defaults = Resource({SERVICE_NAME: "muster", "service.version": version})
    given = Resource.create()
    named = "OTEL_SERVICE_NAME" in os.environ or SERVICE_NAME in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return given.merge(defaults) if not named else defaults.merge(given)


def tracing_from_environment(version: str) -> Tracing:
    """Tracing as the standard OTEL_* variables say (sampler and batch limits included); off without an endpoint."""
    if not otlp_is_on("TRACES"):
        return Tracing(None)
    provider = TracerProvider(resource=service_resource(version), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_span_exporter()))
    return Tracing(provider)


def _span_exporter() -> SpanExporter:
    """The exporter of the chosen protocol; only that one is imported, since each takes a tenth of a second."""
    if otlp_speaks_http("TRACES"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter  # noqa: PLC0415

        return HttpExporter()
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter()
