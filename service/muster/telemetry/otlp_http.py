"""Sends the spans of cycles as OTLP by HTTP, encoded and sent by the standard exporter."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

from muster.telemetry.cycle_spans import CANDIDATE, SCOPE, SpanMaker, SpanRecord, ended_cycles, runs


class HttpCycleExporter(SpanExporter):
    """Makes the spans of the cycles that it is given, and sends them in messages of bounded size."""

    def __init__(self, maker: SpanMaker, resource: Resource) -> None:
        self._maker = maker
        self._resource = resource
        self._exporter = OTLPSpanExporter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Every span of the cycles among `spans`; a failure ends it."""
        for run in runs(self._maker.spans(ended_cycles(spans))):
            readable = [self._readable(record) for record in run]
            if self._exporter.export(readable) is not SpanExportResult.SUCCESS:
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def _readable(self, record: SpanRecord) -> ReadableSpan:
        return ReadableSpan(
            record.name,
            _context(record),
            _context(record.above) if record.above is not None else record.cycle.trace.parent,
            self._resource,
            record.attributes,
            [Event(CANDIDATE, attributes, at) for at, attributes in record.events],
            status=record.status,
            start_time=record.started_at,
            end_time=record.ended_at,
            instrumentation_scope=SCOPE,
        )


def _context(record: SpanRecord) -> SpanContext:
    of_cycle = record.cycle.trace.context
    return SpanContext(
        of_cycle.trace_id,
        record.span_id,
        is_remote=False,
        trace_flags=of_cycle.trace_flags,
        trace_state=of_cycle.trace_state,
    )
