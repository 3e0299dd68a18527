"""Texts that one of the stores cannot hold, or that no answer may have, are refused on both, by name, and others go on."""

from collections.abc import Callable

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.cluster_service_pb2 import DeleteTarget
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.outcome_pb2 import ReportOutcome
from muster.v1.pod_report_pb2 import PodBindingFailed, PodBound, PodPhaseChanged, PodReport
from tests.endtoend.cluster import Cluster, condition, refused
from tests.endtoend.service import gang, node

INVALID = ReportOutcome.REPORT_OUTCOME_INVALID
GROUP = ObjectRef(kind="PodGroup", name="crew")
POD = ObjectRef(kind="Pod", name="crew-0")
NUL = "a\0b"

CALLS: dict[str, Callable[[Cluster], object]] = {
    "Apply": lambda cluster: cluster.apply(node("m"), request_id=NUL),
    "Delete": lambda cluster: cluster.service.cluster.Delete(
        pb.DeleteRequest(cluster=cluster.name, refs=[DeleteTarget(ref=POD)], request_id=NUL)
    ),
    "ReportPods": lambda cluster: cluster.service.cluster.ReportPods(
        pb.ReportPodsRequest(cluster=cluster.name, reports=[PodReport(name="crew-0")], request_id=NUL)
    ),
    "Schedule": lambda cluster: cluster.service.scheduler.Schedule(
        spb.ScheduleRequest(cluster=cluster.name, unit=GROUP, request_id=NUL)
    ),
    "Preempt": lambda cluster: cluster.service.scheduler.Preempt(
        spb.PreemptRequest(cluster=cluster.name, unit=GROUP, request_id=NUL)
    ),
}


@pytest.fixture
def crewed(cluster: Cluster) -> Cluster:
    """A gang runs on a node."""
    cluster.apply(node("node"), *gang("crew", 2))
    cluster.until_scheduled("crew")
    return cluster


@pytest.mark.parametrize("method", CALLS)
def test_a_request_id_holds_no_nul(crewed: Cluster, method: str) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
        CALLS[method](crewed)

    assert [each.field for each in refusal.error.details.violations] == ["requestId"]
    assert crewed.bound() == {"crew-0", "crew-1"}


def test_a_request_id_of_another_request_is_named_as_the_fault(crewed: Cluster) -> None:
    crewed.apply(node("m"), request_id="once")

    with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
        crewed.apply(node("n"), request_id="once")

    assert refusal.error.details.reason == "REQUEST_ID_REUSED"
    assert [each.field for each in refusal.error.details.violations] == ["requestId"]


def test_a_uid_holds_no_nul(crewed: Cluster) -> None:
    group, *pods = gang("next", 2)
    pods[1].pod.metadata.uid = NUL

    with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
        crewed.apply(group, *pods)

    assert [each.field for each in refusal.error.details.violations] == ["objects[2].pod.metadata.uid"]


@pytest.mark.parametrize("decision", [NUL, "\uff11", "9" * 5_000, "-1", "x"])
def test_what_is_no_id_of_a_decision_is_not_found(crewed: Cluster, decision: str) -> None:
    with refused(grpc.StatusCode.NOT_FOUND) as refusal:
        crewed.service.scheduler.GetDecision(spb.GetDecisionRequest(cluster=crewed.name, id=decision))

    assert refusal.error.details.reason == "DECISION_NOT_FOUND"


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(PodReport(binding_failed=PodBindingFailed(node_name="node", message=NUL)), id="NUL"),
        pytest.param(PodReport(bound=PodBound(node_name="No_Node")), id="no node's name"),
        pytest.param(
            PodReport(phase_changed=PodPhaseChanged(phase="Running", message="x" * 100_000)), id="too long"
        ),
        pytest.param(
            PodReport(phase_changed=PodPhaseChanged(phase="Running", start_time=Timestamp(seconds=2**62))),
            id="in no year",
        ),
    ],
)
def test_a_report_that_no_answer_could_repeat_is_invalid(crewed: Cluster, report: PodReport) -> None:
    report.name = "crew-0"
    before = crewed.get("Pod", "crew-0")

    assert list(crewed.report(report).outcomes) == [INVALID]

    assert crewed.get("Pod", "crew-0") == before


def test_a_waiting_pod_that_is_bound_by_an_apply_tells_no_more_of_waiting(cluster: Cluster) -> None:
    cluster.apply(node("small", cpu="1"), *gang("wide", 2))
    cluster.schedule("PodGroup", "wide")
    waited = cluster.get("Pod", "wide-0")
    was = condition(list(waited.pod.status.conditions), "PodScheduled").status

    waited.pod.spec.node_name = "small"
    cluster.apply(waited)

    told = condition(list(cluster.get("Pod", "wide-0").pod.status.conditions), "PodScheduled")
    assert (was, told.status, told.reason, told.message) == ("False", "True", "", "")
