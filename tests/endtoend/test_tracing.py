"""Spans of real cycles arrive at a collector: a span a level, nested as the groups are, in the trace of who asked."""

from pathlib import Path

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from muster.client.manifests import read_paths
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as scheduler_pb
from muster.v1.meta_pb2 import ObjectRef
from tests.endtoend.cluster import CALL_SECONDS, WAIT_SECONDS, Cluster
from tests.endtoend.collector import Collector, attributes, candidates
from tests.endtoend.service import LOCAL, Service, gang, node

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"
TRACE_ID, CALLER_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{CALLER_SPAN}-01"
GROUP_ATTRIBUTES = {"level", "kind", "key", "policy", "m", "s", "r", "u", "uu", "status", "domain"} | {
    "tried",
    "pruned",
    "pods",
}


def test_the_spans_of_a_gang_s_cycle_reach_the_collector_under_the_decision_s_trace(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    with Service(sqlite_database, tmp_path / "log", LOCAL, environment) as service:
        cluster = Cluster(service, "traced")
        cluster.apply(node("node"), *gang("crew", 3))
        decision = cluster.until_scheduled("crew")

        status = service.stop()

    cycle = collector.trace(decision.trace_id)
    assert status == 0
    assert {span.name for span in cycle} >= {"muster.cycle", "muster.group", "muster.pods", "muster.commit"}
    [group] = [span for span in cycle if span.name == "muster.group"]
    [top] = [span for span in cycle if span.name == "muster.cycle"]
    assert group.parent_span_id == top.span_id
    [pods] = [span for span in cycle if span.name == "muster.pods"]
    assert pods.parent_span_id == group.span_id


def test_the_cycle_of_a_dry_run_ends_in_the_trace_of_who_asked(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    with Service(sqlite_database, tmp_path / "log", LOCAL, environment) as service:
        cluster = Cluster(service, "tried")
        cluster.apply(*gang("crew", 3))
        request = scheduler_pb.ScheduleRequest(
            cluster="tried", unit=ObjectRef(kind="PodGroup", name="crew"), validate_only=True
        )

        service.scheduler.Schedule(request, timeout=CALL_SECONDS, metadata=(("traceparent", TRACEPARENT),))
        service.stop()

    [cycle] = [span for span in collector.trace(TRACE_ID) if span.name == "muster.cycle"]
    assert attributes(cycle)["code"] == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert cycle.parent_span_id.hex() == CALLER_SPAN


class Trace:
    """One trace of one unit, by the short names of its groups."""

    def __init__(self, spans: list[Span]) -> None:
        self.by_id = {span.span_id: span for span in spans}
        [self.cycle] = [span for span in spans if span.name == "muster.cycle"]
        self.searches = [span for span in spans if span.name == "muster.search"]
        # What a search found comes after the greedy attempt that failed, and takes its place here.
        self.groups = {self.name(span): span for span in spans if span.name == "muster.group"}
        self.pods = [span for span in spans if span.name == "muster.pods"]

    def name(self, span: Span) -> str:
        return str(attributes(span)["key"]).rpartition("/")[2]

    def path(self, span: Span) -> list[str]:
        """The groups around a span, from the root, the span itself included."""
        above = self.by_id.get(span.parent_span_id)
        return [*(self.path(above) if above is not None else []), *self._step(span)]

    def _step(self, span: Span) -> list[str]:
        return [self.name(span)] if span.name == "muster.group" else []

    def children(self, name: str) -> list[dict[str, object]]:
        """What the groups right below one came to."""
        parent = self.groups[name].span_id
        return [attributes(span) for span in self.groups.values() if span.parent_span_id == parent]

    def placed(self, name: str) -> int:
        """Pods that spans below a group placed."""
        found = [attributes(span)["pods"] for span in self.pods if name in self.path(span)]
        return sum(int(str(pods)) for pods in found)


def traced_tree(
    database: str, log: Path, collector: Collector, example: str = "tree.yaml", root: str = "run"
) -> Trace:
    """The trace of an example that an Apply with a trace context of its own made."""
    objects = read_paths([str(EXAMPLES / example)]).objects
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    with Service(database, log, LOCAL, environment) as service:
        service.cluster.Apply(
            pb.ApplyRequest(cluster="traced", objects=objects),
            timeout=CALL_SECONDS,
            metadata=(("traceparent", TRACEPARENT),),
        )
        cluster = Cluster(service, "traced")
        decision = cluster.schedule("CompositePodGroup", root, wait=WAIT_SECONDS).decision
        assert service.stop() == 0
    assert decision.trace_id == TRACE_ID
    return Trace(collector.trace(TRACE_ID))


def test_a_tree_of_three_levels_is_a_span_a_group_nested_as_the_groups_are(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    trace = traced_tree(sqlite_database, tmp_path / "log", collector)

    assert {name: trace.path(span) for name, span in trace.groups.items()} == {
        "run": ["run"],
        "replica-0": ["run", "replica-0"],
        "driver-0": ["run", "replica-0", "driver-0"],
        "workers-0": ["run", "replica-0", "workers-0"],
        "replica-1": ["run", "replica-1"],
        "driver-1": ["run", "replica-1", "driver-1"],
        "workers-1": ["run", "replica-1", "workers-1"],
    }
    assert trace.groups["run"].parent_span_id == trace.cycle.span_id
    assert trace.cycle.parent_span_id.hex() == CALLER_SPAN
    told = {name: attributes(span) for name, span in trace.groups.items()}
    assert {name: len(trace.path(trace.groups[name])) for name in told} == {
        name: each["level"] for name, each in told.items()
    }
    assert all(each.keys() >= GROUP_ATTRIBUTES for each in told.values())


def test_the_counts_of_a_tree_s_spans_add_up_level_by_level(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    trace = traced_tree(sqlite_database, tmp_path / "log", collector)

    told = {name: attributes(span) for name, span in trace.groups.items()}
    assert {
        name: (each["m"], each["s"], each["r"], each["u"], each["uu"]) for name, each in told.items()
    } == {
        "run": (2, 2, 0, 0, 0),
        "replica-0": (2, 2, 0, 0, 0),
        "driver-0": (1, 1, 0, 0, 0),
        "workers-0": (3, 3, 0, 0, 0),
        "replica-1": (2, 2, 0, 0, 0),
        "driver-1": (1, 1, 0, 0, 0),
        "workers-1": (3, 3, 0, 0, 0),
    }
    for name, each in told.items():
        below = trace.children(name)
        assert each["pods"] == trace.placed(name)
        assert not below or each["pods"] == sum(int(str(child["pods"])) for child in below)
        assert not below or each["s"] == sum(child["status"] == "SUCCESS" for child in below)
        assert each["tried"] == sum(not candidate["pruned"] for candidate in candidates(trace.groups[name]))
        assert each["pruned"] == sum(
            bool(candidate["pruned"]) for candidate in candidates(trace.groups[name])
        )
    assert attributes(trace.cycle)["pods"] == told["run"]["pods"] == 8
    assert {name: each["domain"] for name, each in told.items() if each["domain"]} == {
        "run": "b",
        "workers-0": "b1",
        "workers-1": "b2",
    }
    assert {str(each["domain"]): each["status"] for each in candidates(trace.groups["run"])} == {
        "a": "UNSCHEDULABLE_AND_UNRESOLVABLE",
        "b": "SUCCESS",
    }


def test_what_a_search_found_is_told_inside_its_span_as_the_groups_are_nested(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    trace = traced_tree(sqlite_database, tmp_path / "log", collector, "tight-tree.yaml", "pair")

    [search] = trace.searches
    assert search.parent_span_id == trace.cycle.span_id
    assert attributes(search)["end"] == attributes(trace.cycle)["search"] == "FOUND"
    assert trace.groups["pair"].parent_span_id == search.span_id
    told = {name: attributes(span) for name, span in trace.groups.items()}
    assert {name: trace.path(span) for name, span in trace.groups.items()} == {
        "pair": ["pair"],
        "first": ["pair", "first"],
        "second": ["pair", "second"],
    }
    assert {name: (each["status"], each["s"], each["domain"]) for name, each in told.items()} == {
        "pair": ("SUCCESS", 2, "a"),
        "first": ("SUCCESS", 3, "a1"),
        "second": ("SUCCESS", 2, "a2"),
    }
