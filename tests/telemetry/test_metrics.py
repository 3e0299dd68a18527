"""Metrics have the names that dashboards know, and count what happened."""

import urllib.error
import urllib.request

import pytest
from opentelemetry.sdk.metrics.export import Histogram, Sum
from opentelemetry.sdk.resources import Resource

from muster.core.decision import Assignments, Decision, DecisionCode, GroupResult, Search, SearchEnd, Status
from muster.model.meta import ObjectKey
from muster.telemetry.facts import CommitFacts, CycleFacts, QueueDepth
from muster.telemetry.metrics import Metrics
from muster.telemetry.metrics_export import as_otlp
from muster.telemetry.metrics_server import MetricsServer

UPSTREAM_NAMES = [
    "scheduler_podgroup_schedule_attempts_total",
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "scheduler_workload_preemption_attempts_total",
    "scheduler_workload_preemption_victims",
    "scheduler_preemption_pdb_violations_total",
    "scheduler_generated_placements_total",
    "scheduler_placement_evaluations_total",
    "scheduler_placement_evaluation_duration_seconds",
    "scheduler_pending_pods",
    "scheduler_queued_entities",
    "scheduler_queue_incoming_entities_total",
]
UNIT = ObjectKey("CompositePodGroup", "default", "root")
LEAF = ObjectKey("PodGroup", "default", "leaf")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def scheduled_tree() -> Decision:
    leaves = tuple(GroupResult(LEAF, Status.SUCCESS, tried=2, pruned=3) for _ in range(2))
    root = GroupResult(UNIT, Status.SUCCESS, tried=1, children=leaves)
    return Decision(UNIT, DecisionCode.SCHEDULED, root, Assignments((1, 2), ("n",), (0, 0)))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.mark.parametrize("name", UPSTREAM_NAMES)
def test_upstream_names_are_kept(metrics: Metrics, name: str) -> None:
    known = {
        family.name + ("_total" if family.type == "counter" else "") for family in metrics.registry.collect()
    }

    assert name in known


def test_all_other_names_begin_with_the_service(metrics: Metrics) -> None:
    names = {family.name for family in metrics.registry.collect()}

    assert all(name.startswith(("scheduler_", "muster_")) for name in names)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (DecisionCode.SCHEDULED, "scheduled"),
        (DecisionCode.UNSCHEDULABLE, "unschedulable"),
        (DecisionCode.UNSCHEDULABLE_AND_UNRESOLVABLE, "unschedulable"),
        (DecisionCode.INVALID, "error"),
        (DecisionCode.UNCHANGED, "unchanged"),
    ],
)
def test_an_attempt_is_counted_by_its_result_and_profile(
    metrics: Metrics, code: DecisionCode, result: str
) -> None:
    metrics.cycle_ended(CycleFacts(Decision(UNIT, code), profile="p", attempt_seconds=0.5))

    labels = {"result": result, "profile": "p"}
    assert value(metrics, "scheduler_podgroup_schedule_attempts_total", **labels) == 1
    assert value(metrics, "scheduler_podgroup_scheduling_attempt_duration_seconds_sum", **labels) == 0.5


def test_groups_and_candidates_are_counted_by_level(metrics: Metrics) -> None:
    metrics.cycle_ended(CycleFacts(scheduled_tree(), algorithm_seconds=0.05, wait_seconds=3))

    assert value(metrics, "muster_group_results_total", level="1", status="success") == 1
    assert value(metrics, "muster_group_results_total", level="2", status="success") == 2
    assert value(metrics, "muster_group_candidates_total", level="2", outcome="pruned") == 6
    assert value(metrics, "scheduler_placement_evaluations_total") == 5
    assert value(metrics, "scheduler_generated_placements_total") == 11
    assert value(metrics, "scheduler_placement_evaluation_duration_seconds_sum") == pytest.approx(0.01)
    assert value(metrics, "muster_bound_pods_total") == 2
    assert value(metrics, "muster_unit_wait_seconds_sum") == 3


def test_queue_gauges_are_sums_over_clusters_that_exist(metrics: Metrics) -> None:
    metrics.queue_depth("a", [QueueDepth("active", "PodGroup", 2, 16), QueueDepth("backoff", "Pod", 1, 1)])
    metrics.queue_depth("b", [QueueDepth("active", "PodGroup", 3, 24)])
    metrics.queue_depth("a", [QueueDepth("active", "PodGroup", 1, 8)])

    assert value(metrics, "scheduler_queued_entities", queue="active", type="PodGroup") == 4
    assert value(metrics, "scheduler_pending_pods", queue="active") == 32
    assert value(metrics, "scheduler_queued_entities", queue="backoff", type="Pod") == 0
    metrics.queue_depth("a", [])
    metrics.queue_depth("b", [])
    assert value(metrics, "scheduler_pending_pods", queue="active") == 0


def test_commits_moves_caches_and_workers_are_counted(metrics: Metrics) -> None:
    metrics.committed(CommitFacts(writes=3, rows=100, seconds=0.01))
    metrics.committed(CommitFacts(writes=1, rows=100, seconds=0.01, succeeded=False))
    metrics.queue_moved("active", "NodeAdd", 5)
    metrics.cache_size("default", 42, {"Pod": 7})
    metrics.worker_restarted()
    metrics.preempted(victims=4, budget_violations=1)

    assert value(metrics, "muster_commits_total", result="failed") == 1
    assert value(metrics, "muster_commit_rows_total") == 100
    assert value(metrics, "muster_commit_writes_sum") == 4
    assert value(metrics, "scheduler_queue_incoming_entities_total", queue="active", event="NodeAdd") == 5
    assert value(metrics, "muster_revision", cluster="default") == 42
    assert value(metrics, "muster_cached_objects", cluster="default", kind="Pod") == 7
    assert value(metrics, "muster_worker_restarts_total") == 1
    assert value(metrics, "scheduler_workload_preemption_victims_sum") == 4


def test_receivers_that_were_started_anew_are_counted(metrics: Metrics) -> None:
    metrics.receiver_restarted()

    assert value(metrics, "muster_receiver_restarts_total") == 1


def test_rpcs_are_counted_while_and_after_they_run(metrics: Metrics) -> None:
    metrics.rpc_started("Get")
    metrics.rpc_started("Get")
    metrics.rpc_ended("Get", "NOT_FOUND", 0.25)
    metrics.refused("Get", "OBJECT_NOT_FOUND")
    metrics.watch_opened("Watch")

    assert value(metrics, "muster_rpcs_in_work", method="Get") == 1
    assert value(metrics, "muster_rpcs_total", method="Get", code="NOT_FOUND") == 1
    assert value(metrics, "muster_rpc_duration_seconds_sum", method="Get") == 0.25
    assert value(metrics, "muster_rpc_refusals_total", method="Get", reason="OBJECT_NOT_FOUND") == 1
    assert value(metrics, "muster_watches", method="Watch") == 1


def test_otlp_carries_the_same_names_and_numbers(metrics: Metrics) -> None:
    metrics.rpc_ended("Get", "OK", 0.003)
    metrics.rpc_ended("Get", "OK", 100)

    [resource] = as_otlp(metrics.registry, Resource({}), 1).resource_metrics
    found = {each.name: each.data for each in resource.scope_metrics[0].metrics}

    calls, seconds = found["muster_rpcs_total"], found["muster_rpc_duration_seconds"]
    assert isinstance(calls, Sum)
    assert isinstance(seconds, Histogram)
    assert [(dict(point.attributes or {}), point.value) for point in calls.data_points] == [
        ({"method": "Get", "code": "OK"}, 2)
    ]
    [point] = seconds.data_points
    assert (point.count, sum(point.bucket_counts), point.bucket_counts[-1]) == (2, 2, 1)
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_endpoint_serves_metrics_and_health(metrics: Metrics) -> None:
    serving = [True]
    metrics.worker_restarted()

    with MetricsServer("127.0.0.1:0", metrics.registry, lambda: serving[0]) as server:
        status, text = get(server.address, "/metrics")
        healthy = get(server.address, "/healthz")
        serving[0] = False
        draining = get(server.address, "/healthz")
        elsewhere = get(server.address, "/")

    assert status == 200
    assert "muster_worker_restarts_total 1.0" in text
    assert (healthy, draining[0], elsewhere[0]) == ((200, "ok\n"), 503, 404)


def test_a_metrics_port_in_use_is_an_error(metrics: Metrics) -> None:
    with (
        MetricsServer("127.0.0.1:0", metrics.registry, lambda: True) as server,
        pytest.raises(OSError, match="in use"),
    ):
        MetricsServer(server.address, metrics.registry, lambda: True)


def test_searches_are_counted_by_how_they_ended(metrics: Metrics) -> None:
    for end, steps in ((SearchEnd.FOUND, 166), (SearchEnd.EXHAUSTED, 90), (SearchEnd.NOT_NEEDED, 0)):
        decision = Decision(UNIT, DecisionCode.SCHEDULED, search=Search(end, steps))
        metrics.cycle_ended(CycleFacts(decision))

    assert value(metrics, "muster_searches_total", end="found") == 1
    assert value(metrics, "muster_searches_total", end="exhausted") == 1
    assert value(metrics, "muster_searches_total", end="not_needed") is None
    assert value(metrics, "muster_search_steps_sum") == 256
