"""Spans of a real cycle arrive at a collector that speaks OTLP over gRPC."""

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.endtoend.cluster import Cluster
from tests.endtoend.service import LOCAL, Service, gang, node


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps every span that it is sent, by name."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.address = ""

    def Export(  # noqa: N802 - gRPC's name
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for each in request.resource_spans:
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    collector.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collector
    server.stop(0).wait()


def test_the_spans_of_a_gang_s_cycle_reach_the_collector_under_the_decision_s_trace(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    with Service(sqlite_database, tmp_path / "log", LOCAL, environment) as service:
        cluster = Cluster(service, "traced")
        cluster.apply(node("node"), *gang("crew", 3))
        decision = cluster.until_scheduled("crew")

        status = service.stop()

    cycle = [span for span in collector.spans if span.trace_id.hex() == decision.trace_id]
    assert status == 0
    assert {span.name for span in cycle} >= {"muster.cycle", "muster.group", "muster.pods", "muster.commit"}
    [group] = [span for span in cycle if span.name == "muster.group"]
    [top] = [span for span in cycle if span.name == "muster.cycle"]
    assert group.parent_span_id == top.span_id
    [pods] = [span for span in cycle if span.name == "muster.pods"]
    assert pods.parent_span_id == group.span_id
