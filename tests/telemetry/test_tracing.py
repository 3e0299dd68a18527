"""Cycles become nested spans that a collector receives; what is not sampled costs and sends nothing."""

import time
from collections.abc import Iterator
from concurrent import futures

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from muster.core.decide import decide
from muster.core.decision import Assignments, Decision, DecisionCode
from muster.core.observer import Observer, RecordingObserver
from muster.model.meta import ObjectKey
from muster.telemetry.cycle_spans import MOST_IN_A_MESSAGE, CycleTrace
from muster.telemetry.facts import CycleFacts
from muster.telemetry.tracing import Tracing, tracing_from_environment
from tests.dsl import Cluster, composite, gang, node, pod_group

UNIT = ObjectKey("PodGroup", "default", "g")
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER = f"00-{TRACE_ID}-b7ad6b7169203331-01"
DECISION = Decision(UNIT, DecisionCode.SCHEDULED, assignments=Assignments((1,), ("n",), (0,)))


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Receives what is exported."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()

    def Export(  # noqa: N802
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for each in request.resource_spans:
            attributes = {pair.key: pair.value.string_value for pair in each.resource.attributes}
            self.services.add(attributes["service.name"])
            self.spans += [span for scope in each.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def parent(self, span: Span) -> str:
        return next((each.name for each in self.spans if each.span_id == span.parent_span_id), "")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A real OTLP endpoint that the standard variables point to."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    yield collector
    server.stop(0).wait()


def observe(observer: Observer) -> None:
    """What the core tells about a root of one group that tried two domains."""
    observer.enter("cycle", str(UNIT))
    observer.enter("group", "PodGroup default/root")
    observer.candidate({"domain": "A", "status": "UNSCHEDULABLE"})
    observer.candidate({"domain": "B", "status": "SUCCESS"})
    observer.enter("group", "PodGroup default/leaf")
    observer.enter("pods", "leaf")
    observer.leave({"pods": 5})
    observer.leave({"level": 2, "m": 5, "s": 5})
    observer.leave({"level": 1, "tried": 2})
    observer.leave({"groups": 2})


def traced_cycle(tracing: Tracing, caller: str = "") -> CycleTrace:
    cycle = tracing.cycle_started("default", UNIT, caller)
    observe(cycle.observer)
    now = time.monotonic_ns()
    tracing.cycle_ended(
        cycle, CycleFacts(DECISION, "d-1", "p", commit_start_ns=now, commit_end_ns=now + 5_000), None
    )
    return cycle


def attributes(span: Span) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in span.attributes
    }


def test_a_collector_receives_the_cycle_as_nested_spans(collector: Collector) -> None:
    tracing = tracing_from_environment("1")

    cycle = traced_cycle(tracing)
    tracing.close()

    root, leaf = sorted(collector.named("muster.group"), key=lambda span: span.start_time_unix_nano)
    [pods], [commit], [top] = (collector.named(f"muster.{name}") for name in ("pods", "commit", "cycle"))
    assert [collector.parent(span) for span in (root, leaf, pods, commit, top)] == [
        "muster.cycle",
        "muster.group",
        "muster.group",
        "muster.cycle",
        "",
    ]
    assert leaf.parent_span_id == root.span_id
    assert {span.trace_id.hex() for span in collector.spans} == {cycle.trace_id}
    assert collector.services == {"muster"}


def test_spans_carry_counters_and_candidates_are_events(collector: Collector) -> None:
    tracing = tracing_from_environment("1")

    traced_cycle(tracing)
    tracing.close()

    root, leaf = sorted(collector.named("muster.group"), key=lambda span: span.start_time_unix_nano)
    [top] = collector.named("muster.cycle")
    assert attributes(leaf) == {
        "muster.name": "PodGroup default/leaf",
        "muster.level": 2,
        "muster.m": 5,
        "muster.s": 5,
    }
    assert [each.attributes[0].value.string_value for each in root.events] == ["A", "B"]
    assert (
        attributes(top).items()
        >= {
            "muster.cluster": "default",
            "muster.code": "SCHEDULED",
            "muster.decision": "d-1",
            "muster.pods": 1,
            "muster.groups": 2,
        }.items()
    )


def test_times_are_those_at_which_things_happened(collector: Collector) -> None:
    tracing = tracing_from_environment("1")
    before = time.time_ns()

    traced_cycle(tracing)
    tracing.close()

    after = time.time_ns()
    [pods], [top] = collector.named("muster.pods"), collector.named("muster.cycle")
    slack = 50_000_000
    assert before - slack <= top.start_time_unix_nano <= pods.start_time_unix_nano
    assert (
        pods.start_time_unix_nano
        <= pods.end_time_unix_nano
        <= top.end_time_unix_nano + slack
        <= after + 2 * slack
    )


def test_events_of_a_worker_process_make_the_same_spans(collector: Collector) -> None:
    tracing = tracing_from_environment("1")
    cycle = tracing.cycle_started("default", UNIT, "")
    at_home = RecordingObserver(time.monotonic_ns)
    observe(at_home)

    tracing.cycle_ended(cycle, CycleFacts(DECISION), at_home.events)
    tracing.close()

    assert sorted(span.name for span in collector.spans) == [
        "muster.cycle",
        "muster.group",
        "muster.group",
        "muster.pods",
    ]


def test_what_a_fill_adds_stands_below_its_group_and_counts_in_it(collector: Collector) -> None:
    tracing = tracing_from_environment("1")
    cluster = Cluster(node("a", "4"))
    parts = pod_group("first", gang(1), pods=2), pod_group("extra", gang(1), pods=1)
    unit, _ = cluster.unit(composite("root", gang(1), *parts))
    cycle = tracing.cycle_started("default", UNIT, "")

    decided = decide(cluster.snapshot, unit, cluster.profile, cycle.observer)
    tracing.cycle_ended(cycle, CycleFacts(decided), None)
    tracing.close()

    groups = {attributes(each)["muster.name"]: each for each in collector.named("muster.group")}
    root, first, added = (
        groups[name] for name in (str(unit.key), "PodGroup default/first", "PodGroup default/extra")
    )
    below = [each.parent_span_id for each in collector.named("muster.pods")]
    assert sorted(below) == sorted([first.span_id, first.span_id, added.span_id])
    assert (added.parent_span_id, attributes(added)["muster.level"]) == (root.span_id, 2)
    assert [attributes(each)["muster.pods"] for each in (root, first, added)] == [3, 2, 1]


def test_a_core_that_stopped_in_the_middle_leaves_closed_spans(collector: Collector) -> None:
    tracing = tracing_from_environment("1")
    cycle = tracing.cycle_started("default", UNIT, "")
    cycle.observer.enter("cycle", "x")
    cycle.observer.enter("group", "x")

    failed = Decision(UNIT, DecisionCode.SCHEDULER_ERROR, message="the worker ended")
    tracing.cycle_ended(cycle, CycleFacts(failed), None)
    tracing.close()

    [top] = collector.named("muster.cycle")
    assert len(collector.named("muster.group")) == 1
    assert (top.status.code, top.status.message) == (2, "the worker ended")


def test_a_cycle_joins_the_trace_of_its_caller(collector: Collector) -> None:
    tracing = tracing_from_environment("1")

    with tracing.caller_trace(lambda: [("traceparent", CALLER), ("other", b"x")]):
        caller = tracing.caller()
    cycle = traced_cycle(tracing, caller)
    tracing.close()

    [top] = collector.named("muster.cycle")
    assert cycle.trace_id == TRACE_ID
    assert top.parent_span_id.hex() == "b7ad6b7169203331"
    assert tracing.caller() == ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param("OTEL_TRACES_SAMPLER", "always_off", id="sampled out"),
        pytest.param("OTEL_TRACES_EXPORTER", "none", id="no exporter"),
        pytest.param("OTEL_SDK_DISABLED", "true", id="disabled"),
        pytest.param("OTEL_EXPORTER_OTLP_ENDPOINT", "", id="no endpoint"),
    ],
)
def test_what_is_not_traced_records_and_sends_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    tracing = tracing_from_environment("1")

    cycle = traced_cycle(tracing)
    tracing.close()

    assert (cycle.trace_id, cycle.is_recording, cycle.observer.is_recording) == ("", False, False)
    assert collector.spans == []


def test_the_service_is_named_as_the_environment_says(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "east")
    tracing = tracing_from_environment("1")

    traced_cycle(tracing)
    tracing.close()

    assert collector.services == {"east"}


def test_a_span_keeps_no_more_events_and_attributes_than_the_standard_limits(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "1")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "8")
    tracing = tracing_from_environment("1")

    traced_cycle(tracing)
    tracing.close()

    root = min(collector.named("muster.group"), key=lambda span: span.start_time_unix_nano)
    assert ([each.attributes[0].value.string_value for each in root.events], root.dropped_events_count) == (
        ["B"],
        1,
    )
    assert attributes(root)["muster.name"] == "PodGroup"


def test_a_tree_of_more_spans_than_a_message_holds_arrives_whole(collector: Collector) -> None:
    tracing = tracing_from_environment("1")
    cycle = tracing.cycle_started("default", UNIT, "")
    for number in range(MOST_IN_A_MESSAGE + 5):
        cycle.observer.enter("group", f"PodGroup default/{number}")
        cycle.observer.leave({})

    tracing.cycle_ended(cycle, CycleFacts(DECISION), None)
    tracing.close()

    assert len(collector.named("muster.group")) == MOST_IN_A_MESSAGE + 5
    assert {span.trace_id.hex() for span in collector.spans} == {cycle.trace_id}
