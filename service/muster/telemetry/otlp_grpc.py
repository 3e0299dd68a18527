"""Sends the spans of cycles as OTLP by gRPC.

The transport is the standard exporter's. Messages are made here, since its encoder costs several times as much as all
else of a span: an attribute that many spans have is encoded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN_CONTEXT

from muster.telemetry.cycle_spans import (
    CANDIDATE,
    SCOPE,
    Attributes,
    SpanMaker,
    SpanRecord,
    ended_cycles,
    runs,
)

_IS_LOCAL = trace_pb2.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
_IS_REMOTE = _IS_LOCAL | trace_pb2.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
MOST_ATTRIBUTES_KEPT = 4_096


class GrpcCycleExporter(SpanExporter):
    """Makes the spans of the cycles that it is given, and sends them in messages of bounded size."""

    def __init__(self, maker: SpanMaker, resource: Resource) -> None:
        self._maker = maker
        self._exporter = _RecordExporter(resource)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Every span of the cycles among `spans`; a failure ends it."""
        for run in runs(self._maker.spans(ended_cycles(spans))):
            if self._exporter.export(cast("Any", run)) is not SpanExportResult.SUCCESS:
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _RecordExporter(OTLPSpanExporter):
    """The standard exporter, for records instead of the SDK's spans."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._empty = encode_spans(
            [ReadableSpan("", INVALID_SPAN_CONTEXT, resource=resource, instrumentation_scope=SCOPE)]
        )
        del self._empty.resource_spans[0].scope_spans[0].spans[:]

    def _translate_data(self, data: Sequence[Any]) -> ExportTraceServiceRequest:
        request = ExportTraceServiceRequest()
        request.CopyFrom(self._empty)
        request.resource_spans[0].scope_spans[0].spans.extend(map(_encoded, data))
        return request


def _encoded(record: SpanRecord) -> trace_pb2.Span:
    trace, above = record.cycle.trace, record.above
    made = trace_pb2.Span(
        trace_id=trace.context.trace_id.to_bytes(16, "big"),
        span_id=record.span_id.to_bytes(8, "big"),
        name=record.name,
        kind=trace_pb2.Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=record.started_at,
        end_time_unix_nano=record.ended_at,
        attributes=_pairs(record.attributes),
        flags=_IS_LOCAL,
    )
    if above is not None:
        made.parent_span_id = above.span_id.to_bytes(8, "big")
    elif trace.parent is not None:
        made.parent_span_id = trace.parent.span_id.to_bytes(8, "big")
        made.flags = _IS_REMOTE
    if trace.context.trace_state:
        made.trace_state = trace.context.trace_state.to_header()
    if not record.status.is_unset:
        made.status.code = cast("Any", record.status.status_code.value)
        made.status.message = record.status.description or ""
    for at, attributes in record.events:
        made.events.add(name=CANDIDATE, time_unix_nano=at, attributes=_pairs(attributes))
    made.dropped_events_count = record.events_told - len(record.events)
    return made


def _pairs(attributes: Attributes) -> list[KeyValue]:
    return [_pair(key, value) for key, value in attributes.items()]


@lru_cache(MOST_ATTRIBUTES_KEPT, typed=True)
def _pair(key: str, value: str | float) -> KeyValue:
    """Encoded once for all spans that have it; whoever puts it into a message copies it."""
    match value:
        case str():
            return KeyValue(key=key, value=AnyValue(string_value=value))
        case bool():
            return KeyValue(key=key, value=AnyValue(bool_value=value))
        case int():
            return KeyValue(key=key, value=AnyValue(int_value=value))
    return KeyValue(key=key, value=AnyValue(double_value=value))
