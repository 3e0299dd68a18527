"""Which cycles are traced, by the standard OpenTelemetry variables, and the trace contexts that come with RPCs.

A sampler decides when a cycle starts, so that its trace id can be stored with the decision; a cycle that it declines
costs one call and records nothing. Of one that is traced the event loop only keeps what was told (`core.observer`):
spans (`cycle_spans`) are made and sent by the thread that exports them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from muster.core.observer import RecordingObserver
from muster.model.meta import ObjectKey
from muster.telemetry.cycle_spans import CYCLE, PREFIX, CycleTrace, EndedCycle, SpanMaker
from muster.telemetry.facts import CycleFacts

_NO_TRACE = nullcontext()
_NO_CONTEXT = otel_context.Context()
_NOT_TRACED = CycleTrace()
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_propagator = TraceContextTextMapPropagator()


class Tracing:
    """Tells a processor of cycles; without one every cycle is unrecorded and costs one call."""

    def __init__(self, provider: TracerProvider | None, processor: SpanProcessor | None = None) -> None:
        """`provider` has the sampler and makes ids; each `EndedCycle` goes to the `processor`, which it has too."""
        self._provider = provider
        self._processor = processor

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> CycleTrace:
        """Begins `muster.cycle`; `caller` is the traceparent of who asked for it ("": nobody)."""
        if self._provider is None:
            return _NOT_TRACED
        around = _propagator.extract({"traceparent": caller}) if caller else _NO_CONTEXT
        parent = trace.get_current_span(around).get_span_context() if caller else INVALID_SPAN_CONTEXT
        ids = self._provider.id_generator
        trace_id = parent.trace_id if parent.is_valid else ids.generate_trace_id()
        sampled = self._provider.sampler.should_sample(around, trace_id, CYCLE, SpanKind.INTERNAL)
        if sampled.decision is not Decision.RECORD_AND_SAMPLE:
            return _NOT_TRACED
        now, monotonic = time.time_ns(), time.monotonic_ns()
        return CycleTrace(
            trace_id=trace.format_trace_id(trace_id),
            is_recording=True,
            observer=RecordingObserver(time.monotonic_ns),
            context=SpanContext(
                trace_id,
                ids.generate_span_id(),
                is_remote=False,
                trace_flags=_SAMPLED,
                trace_state=sampled.trace_state,
            ),
            parent=parent if parent.is_valid else None,
            started_at=now,
            wall_offset=now - monotonic,
            attributes={**sampled.attributes, PREFIX + "cluster": cluster, PREFIX + "unit": str(unit)},
        )

    def cycle_ended(
        self, cycle: CycleTrace, facts: CycleFacts, events: Sequence[Sequence[object]] | None
    ) -> None:
        """Hands over the cycle with what was told of it. `events` None: what its own observer heard."""
        if not cycle.is_recording or self._processor is None:
            return
        if events is None and isinstance(cycle.observer, RecordingObserver):
            events = cycle.observer.events
        self._processor.on_end(EndedCycle(cycle, facts, events or (), time.time_ns()))

    def caller(self) -> str:
        """The traceparent of the RPC that is being served, "" if it came without one."""
        if self._provider is None:
            return ""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def caller_trace(
        self, metadata: Callable[[], Iterable[tuple[str, str | bytes]] | None]
    ) -> AbstractContextManager[None]:
        """Makes the trace context in an RPC's metadata the current one inside."""
        if self._provider is None:
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
    processor = BatchSpanProcessor(_exporter(provider))
    provider.add_span_processor(processor)
    return Tracing(provider, processor)


def _exporter(provider: TracerProvider) -> SpanExporter:
    """The exporter of the chosen protocol; only that one is imported, since each takes a tenth of a second."""
    if otlp_speaks_http("TRACES"):
        from muster.telemetry.otlp_http import HttpCycleExporter  # noqa: PLC0415

        return HttpCycleExporter(SpanMaker(provider.id_generator), provider.resource)
    from muster.telemetry.otlp_grpc import GrpcCycleExporter  # noqa: PLC0415

    return GrpcCycleExporter(SpanMaker(provider.id_generator), provider.resource)
