"""Preemption as clients see it: who removes victims, what is told meanwhile, and what the Preempt call answers."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from muster.v1 import decision_pb2 as dpb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.pod_report_pb2 import PodReport
from muster.v1.queue_pb2 import UnitState
from tests.endtoend.cluster import CALL_SECONDS, WAIT_SECONDS, Cluster, condition, refused
from tests.endtoend.collector import Collector, attributes
from tests.endtoend.service import LOCAL, Service, gang, member, node

SCHEDULED = DecisionCode.DECISION_CODE_SCHEDULED
WAITING = DecisionCode.DECISION_CODE_WAITING_FOR_PREEMPTION
FITS = DecisionCode.DECISION_CODE_FITS_WITHOUT_PREEMPTION
UNSCHEDULABLE = DecisionCode.DECISION_CODE_UNSCHEDULABLE


def running(count: int, *, grace: int = 0, priority: int = 1) -> list[Object]:
    made = [member(f"low-{i}", "") for i in range(count)]
    for each in made:
        each.pod.spec.ClearField("scheduling_group")
        each.pod.spec.node_name = "n"
        each.pod.spec.priority = priority
        each.pod.spec.termination_grace_period_seconds = grace
    return made


def high(size: int, *, policy: str = "") -> list[Object]:
    group, *pods = gang("high", size)
    group.pod_group.spec.priority = 10
    if policy:
        group.pod_group.spec.preemption_policy = policy
    for each in pods:
        each.pod.spec.priority = 10
        if policy:
            each.pod.spec.preemption_policy = policy
    return [group, *pods]


def preempt(
    cluster: Cluster, kind: str = "PodGroup", name: str = "high", *, dry: bool = False, request_id: str = ""
) -> Decision:
    request = spb.PreemptRequest(
        cluster=cluster.name,
        unit=ObjectRef(kind=kind, name=name),
        validate_only=dry,
        request_id=request_id,
    )
    return cluster.service.scheduler.Preempt(request, timeout=CALL_SECONDS).decision


def victims(decision: Decision) -> set[str]:
    return {pod.name for unit in decision.preemption.victims for pod in unit.pods}


def until(holds: Callable[[], bool]) -> None:
    """Wait until it does, for as long as a test may wait."""
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose clients remove evicted pods."""
    folder = tmp_path_factory.mktemp("sidecar")
    store = f"sqlite:///{folder / 'muster.db'}"
    with Service(store, folder / "log", [*LOCAL, "--eviction", "client"]) as service:
        yield service


@pytest.fixture
def client_evicts(sidecar: Service, request: pytest.FixtureRequest) -> Cluster:
    return Cluster(sidecar, request.node.name.replace("_", "-")[:60].strip("-"))


def test_the_server_removes_victims_after_their_grace(cluster: Cluster) -> None:
    cluster.apply(node("n", "3"), *running(3, grace=1))
    cluster.apply(*high(2))

    answered = preempt(cluster)
    marked = [
        each.pod
        for each in cluster.service.objects("Pod", cluster.name)
        if each.pod.metadata.HasField("deletion_timestamp")
    ]
    decision = cluster.until_scheduled("high")

    assert answered.code == WAITING
    assert {pod.metadata.name for pod in marked} <= victims(answered)
    for pod in marked:
        assert condition(list(pod.status.conditions), "DisruptionTarget").reason == "PreemptionByScheduler"
    assert len(decision.assignments.pods) == 2
    assert cluster.bound() == {"low-0", "low-1", "low-2", "high-0", "high-1"} - victims(answered)


def test_a_unit_that_waits_already_is_answered_with_those_it_waits_for(client_evicts: Cluster) -> None:
    cluster = client_evicts
    cluster.apply(node("n", "3"), *running(3))
    cluster.apply(*high(2))

    first, second = preempt(cluster), preempt(cluster)

    assert (first.code, second.code) == (WAITING, WAITING)
    assert len(victims(second)) == 2
    assert victims(second) == victims(first)


def test_a_client_learns_of_victims_from_decisions_and_reports_them_removed(client_evicts: Cluster) -> None:
    cluster = client_evicts
    cluster.apply(node("n", "3"), *running(3))
    watch = cluster.service.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(cluster=cluster.name, from_revision=cluster.revision()),
        timeout=CALL_SECONDS,
    )
    cluster.apply(*high(2))
    told = next(each for message in watch for each in message.decisions if each.code == WAITING)
    queued = cluster.queued("high")
    nominated = cluster.get("Pod", "high-0").pod.status.nominated_node_name

    for unit in told.preemption.victims:
        for pod in unit.pods:
            removed = PodReport(namespace=pod.namespace, name=pod.name, uid=pod.uid)
            removed.removed.SetInParent()
            cluster.report(removed)
    bound = next(each for message in watch for each in message.decisions if each.code == SCHEDULED)
    watch.cancel()

    assert queued.state == UnitState.UNIT_STATE_WAITING_FOR_PREEMPTION
    assert nominated == "n"
    assert set(bound.assignments.pods) == {"high-0", "high-1"}
    assert cluster.bound() == {"low-0", "low-1", "low-2", "high-0", "high-1"} - victims(told)


def test_a_wait_goes_on_after_kill_9(store_url: str, tmp_path: Path) -> None:
    arguments = [*LOCAL, "--eviction", "client"]
    with Service(store_url, tmp_path / "log", arguments) as service:
        cluster = Cluster(service, "killed")
        cluster.apply(node("n", "2"), *running(2))
        cluster.apply(*high(2))
        told = preempt(cluster)

        service.kill()
        service.start()

        assert cluster.queued("high").state == UnitState.UNIT_STATE_WAITING_FOR_PREEMPTION
        for name in victims(told):
            removed = PodReport(name=name, namespace="default")
            removed.removed.SetInParent()
            cluster.report(removed)
        until(lambda: cluster.bound() == {"high-0", "high-1"})


def in_backoff(cluster: Cluster) -> None:
    """A gang that failed several times beside pods of its own priority, in whose place now run lower ones."""
    cluster.apply(node("n", "2"), *running(2, priority=10))
    cluster.apply(*high(2))
    failed = [preempt(cluster) for _ in range(5)]
    assert {decision.code for decision in failed} == {UNSCHEDULABLE}
    assert failed[-1].preemption.not_possible
    cluster.delete("Pod", "low-0", "low-1")
    cluster.apply(*running(2))
    assert cluster.queued("high").state == UnitState.UNIT_STATE_BACKOFF


def test_a_dry_run_names_victims_and_evicts_nobody(cluster: Cluster) -> None:
    in_backoff(cluster)
    before = cluster.revision()

    decisions = [preempt(cluster, dry=True), cluster.schedule("PodGroup", "high", dry=True).decision]

    for decision in decisions:
        assert decision.code == WAITING
        assert victims(decision) == {"low-0", "low-1"}
        assert list(decision.preemption.nominations.pods) == ["high-0", "high-1"]
    assert cluster.revision() == before
    assert cluster.queued("high").state == UnitState.UNIT_STATE_BACKOFF
    assert cluster.bound() == {"low-0", "low-1"}


def test_a_dry_run_of_a_unit_that_waits_says_what_it_waits_for(client_evicts: Cluster) -> None:
    client_evicts.apply(node("n", "2"), *running(2), *high(2))
    client_evicts.schedule("PodGroup", "high")

    decisions = [
        preempt(client_evicts, dry=True),
        client_evicts.schedule("PodGroup", "high", dry=True).decision,
    ]

    waiting = "waiting for preemption of 2 pods"
    assert [decision.message for decision in decisions] == [waiting, waiting]
    assert decisions[0].preemption.not_possible == f"nobody else is evicted while the unit is {waiting}"


def test_preempt_does_not_wait_for_a_backoff(cluster: Cluster) -> None:
    in_backoff(cluster)

    decision = preempt(cluster)

    assert decision.code == WAITING
    assert victims(decision) == {"low-0", "low-1"}
    until(lambda: cluster.bound() == {"high-0", "high-1"})


def test_a_unit_that_fits_needs_no_preemption_and_the_call_binds_nothing(cluster: Cluster) -> None:
    in_backoff(cluster)
    cluster.delete("Pod", "low-0", "low-1")
    before = cluster.revision()

    decision = preempt(cluster)

    assert decision.code == FITS
    assert (decision.revision, decision.id) == (before, "")
    assert not decision.assignments.pods
    assert decision.preemption.not_possible == ""
    until(lambda: cluster.bound() == {"high-0", "high-1"})


def test_a_unit_that_is_bound_has_nothing_to_preempt_for(cluster: Cluster) -> None:
    cluster.apply(node("n", "2"), *high(2))
    cluster.until_scheduled("high")

    decision = preempt(cluster)

    assert decision.code == DecisionCode.DECISION_CODE_UNCHANGED
    assert decision.preemption.not_possible == "no pod of the unit waits for a node"


def test_preempt_names_the_rule_that_keeps_it_from_helping(cluster: Cluster) -> None:
    cluster.apply(node("n", "2"), *running(2))
    cluster.apply(*high(2, policy="Never"))
    group, pod, *_ = gang("short", 2)
    cluster.apply(group, pod)

    never, gated = preempt(cluster), preempt(cluster, name="short")
    with refused(grpc.StatusCode.NOT_FOUND) as refusal:
        preempt(cluster, name="nobody")

    assert (never.code, never.preemption.not_possible) == (UNSCHEDULABLE, "its preemption policy is Never")
    assert gated.code == DecisionCode.DECISION_CODE_GATED
    assert "1 of 2 members" in gated.preemption.not_possible
    assert refusal.error.reason == "OBJECT_NOT_FOUND"
    assert cluster.bound() == {"low-0", "low-1"}


def test_a_repeated_preempt_is_answered_as_the_first_one(client_evicts: Cluster) -> None:
    cluster = client_evicts
    cluster.apply(node("n", "2"), *running(2))
    cluster.apply(*high(2))

    first = preempt(cluster, request_id="once")
    again = preempt(cluster, request_id="once")

    assert first == again
    assert first.code == WAITING
    assert len([each for each in cluster.list_decisions() if each.preemption.victims]) == 1


def test_a_stored_decision_tells_all_of_its_preemption(cluster: Cluster) -> None:
    budget = Object()
    budget.pod_disruption_budget.metadata.name = "all-of-them"
    budget.pod_disruption_budget.spec.max_unavailable = "0"
    budget.pod_disruption_budget.spec.selector.SetInParent()
    cluster.apply(node("n", "3"), *running(3), budget)
    cluster.apply(*high(2))
    cluster.until_scheduled("high")

    [stored] = [each for each in cluster.list_decisions() if each.code == WAITING]

    preemption = stored.preemption
    assert preemption.budget_violations == 2
    assert [unit.violates_budget for unit in preemption.victims] == [True, True]
    assert len(preemption.reprieved) == 1
    assert set(preemption.nominations.pods) == {"high-0", "high-1"}
    pods: list[dpb.DisruptedPod] = [pod for unit in preemption.victims for pod in unit.pods]
    assert {pod.node_name for pod in pods} == {"n"}
    assert all(pod.uid for pod in pods)
    status = cluster.get("PodDisruptionBudget", "all-of-them").pod_disruption_budget.status
    assert (status.current_healthy, status.expected_pods) == (3, 3)


def test_a_preemption_is_a_span_of_its_cycle_and_is_counted(
    sqlite_database: str, tmp_path: Path, collector: Collector
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    log = tmp_path / "log"
    with Service(sqlite_database, log, [*LOCAL, "--metrics", "127.0.0.1:0"], environment) as service:
        cluster = Cluster(service, "traced")
        cluster.apply(node("n", "3"), *running(3))
        cluster.apply(*high(2))
        cluster.until_scheduled("high")
        [decision] = [each for each in cluster.list_decisions() if each.code == WAITING]
        address = log.read_text(encoding="utf-8").partition("metrics_address=")[2].split()[0]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            told = answer.read().decode()
        assert service.stop() == 0

    spans = collector.trace(decision.trace_id)
    [span] = [each for each in spans if each.name == "muster.preemption"]
    [cycle] = [each for each in spans if each.name == "muster.cycle"]
    found = attributes(span)
    assert span.parent_span_id == cycle.span_id
    assert (found["end"], found["candidates"], found["victims"], found["pods"]) == ("NOMINATED", 3, 2, 2)
    assert "scheduler_workload_preemption_attempts_total 1.0" in told
    assert "scheduler_workload_preemption_victims_sum 2.0" in told
    assert "scheduler_preemption_pdb_violations_total 0.0" in told
    assert 'result="waiting_on_preemption"' in told
