"""Over HTTP a collector gets the same spans as over gRPC."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from muster.core.decision import Decision, DecisionCode
from muster.model.meta import ObjectKey
from muster.telemetry.facts import CycleFacts
from muster.telemetry.tracing import tracing_from_environment

UNIT = ObjectKey("PodGroup", "default", "g")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Span]]:
    """What a collector that the standard variables point to was sent."""
    received: list[Span] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportTraceServiceRequest.FromString(
                self.rfile.read(int(self.headers["Content-Length"]))
            )
            received.extend(
                span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    yield received
    server.shutdown()
    server.server_close()


def test_spans_over_http_are_nested_and_have_counters_candidates_and_a_fault(spans: list[Span]) -> None:
    tracing = tracing_from_environment("1")
    cycle = tracing.cycle_started("default", UNIT, "")
    cycle.observer.enter("cycle", str(UNIT))
    cycle.observer.enter("group", str(UNIT))
    cycle.observer.candidate({"domain": "A"})
    cycle.observer.leave({"m": 5})
    cycle.observer.leave({})

    failed = Decision(UNIT, DecisionCode.SCHEDULER_ERROR, message="the worker ended")
    tracing.cycle_ended(cycle, CycleFacts(failed), None)
    tracing.close()

    [top, group] = spans
    assert (top.name, group.name) == ("muster.cycle", "muster.group")
    assert (top.trace_id.hex(), group.parent_span_id) == (cycle.trace_id, top.span_id)
    assert (top.status.code, top.status.message) == (2, "the worker ended")
    assert {pair.key: pair.value.int_value for pair in group.attributes}["muster.m"] == 5
    assert [event.attributes[0].value.string_value for event in group.events] == ["A"]
