"""A collector that speaks OTLP over gRPC, and the questions that tests ask about the spans it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PREFIX = "muster."


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps every span that it is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.address = ""

    def Export(  # noqa: N802 - gRPC's name
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for each in request.resource_spans:
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def trace(self, trace_id: str) -> list[Span]:
        """The spans of one trace, in the order in which they began."""
        found = [span for span in self.spans if span.trace_id.hex() == trace_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


@contextmanager
def running_collector() -> Iterator[Collector]:
    """A collector that listens at `address` until the end."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collector
    server.stop(0).wait()


def attributes(span: Span) -> dict[str, object]:
    """A span's attributes without their prefix."""
    return _values(span.attributes)


def candidates(span: Span) -> list[dict[str, object]]:
    """What a group's span says of each domain that it might have got."""
    return [_values(event.attributes) for event in span.events if event.name == "candidate"]


def _values(pairs: Iterable[KeyValue]) -> dict[str, object]:
    return {
        pair.key.removeprefix(PREFIX): getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in pairs
    }
