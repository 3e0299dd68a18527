"""What is wrong with a simulation is told whole, with its paths; one that runs out of time answers what it has."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from muster.client.errors import MusterError
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import CALL_SECONDS, refused
from tests.endtoend.service import gang, node
from tests.simulation.asking import Simulated

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def faults(error: MusterError) -> dict[str, str]:
    return {each.field: each.reason for each in error.details.violations}


def test_unknown_units_are_named_all_of_them(cluster: Simulated) -> None:
    cluster.apply(node("n"))

    with refused(grpc.StatusCode.NOT_FOUND) as refusal:
        cluster.simulate("a", "b")

    assert refusal.error.reason == "OBJECT_NOT_FOUND"
    assert "default/a" in refusal.error.message
    assert "default/b" in refusal.error.message


def test_an_unknown_cluster_is_not_made(cluster: Simulated) -> None:
    with refused(grpc.StatusCode.NOT_FOUND) as refusal:
        cluster.simulate("g", objects=gang("g", 1))

    assert refusal.error.reason == "CLUSTER_NOT_FOUND"


def test_every_fault_of_an_overlay_is_named_with_its_path(cluster: Simulated) -> None:
    cluster.apply(node("n"))
    group, *pods = gang("g", 2)
    group.pod_group.spec.scheduling_policy.gang.min_count = -1
    pods[1].pod.spec.containers[0].resources.requests["cpu"] = "many"

    with refused(INVALID) as refusal:
        cluster.simulate(
            "g",
            objects=[group, *pods, Object()],
            removed=[ObjectRef(kind="Node", name="gone"), ObjectRef(kind="Chair", name="x")],
            drained=["nowhere"],
        )

    assert faults(refusal.error) == {
        "overlay.objects[0].podGroup.spec.schedulingPolicy.gang.minCount": "INVALID",
        "overlay.objects[2].pod.spec.containers[0].resources.requests[cpu]": "INVALID",
        "overlay.objects[3]": "REQUIRED",
        "overlay.removed[0]": "INVALID",
        "overlay.removed[1].kind": "NOT_SUPPORTED",
        "overlay.drainedNodes[0]": "INVALID",
    }


def test_an_overlay_changes_no_more_than_apply_could(cluster: Simulated) -> None:
    cluster.apply(*gang("g", 2))
    group, *_ = gang("g", 2)
    group.pod_group.spec.priority = 7

    with refused(INVALID) as refusal:
        cluster.simulate("g", objects=[group])

    assert faults(refusal.error) == {"overlay.objects[0].podGroup.spec.priority": "IMMUTABLE"}


def test_faults_of_objects_sent_along_have_their_own_path(cluster: Simulated) -> None:
    with refused(INVALID) as refusal:
        cluster.simulate("g", inline=[node("n", "-1")])

    assert list(faults(refusal.error)) == ["inline.objects[0].node.status.allocatable[cpu]"]
    assert refusal.error.reason == "INVALID_OBJECTS"


def test_a_foreign_pod_is_no_unit(cluster: Simulated) -> None:
    pod = gang("g", 1)[1]
    pod.pod.spec.ClearField("scheduling_group")
    pod.pod.spec.scheduler_name = "another"
    request = spb.SimulateRequest(
        inline=spb.InlineBase(objects=[pod]), units=[ObjectRef(kind="Pod", name="g-0")]
    )

    with refused(grpc.StatusCode.FAILED_PRECONDITION) as refusal:
        cluster.service.scheduler.Simulate(request, timeout=CALL_SECONDS)

    assert refusal.error.reason == "FOREIGN_SCHEDULER"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(spb.SimulateRequest(), {"units": "REQUIRED"}, id="neither units nor queue"),
        pytest.param(
            spb.SimulateRequest(units=[ObjectRef(kind="PodGroup", name="g")], whole_queue=True),
            {"wholeQueue": "INVALID"},
            id="both",
        ),
        pytest.param(
            spb.SimulateRequest(units=[ObjectRef(kind="Node", name="n"), ObjectRef(kind="Pod")]),
            {"units[0].kind": "INVALID", "units[0].namespace": "", "units[1].name": "REQUIRED"},
            id="units that are none",
        ),
        pytest.param(
            spb.SimulateRequest(units=[ObjectRef(kind="Pod", name=f"p{i}") for i in range(1_001)]),
            {"units": "TOO_MANY"},
            id="too many units",
        ),
        pytest.param(
            spb.SimulateRequest(whole_queue=True, time_limit=Duration(seconds=61)),
            {"timeLimit": "INVALID"},
            id="too much time",
        ),
        pytest.param(
            spb.SimulateRequest(whole_queue=True, time_limit=Duration()),
            {"timeLimit": "INVALID"},
            id="no time",
        ),
        pytest.param(
            spb.SimulateRequest(whole_queue=True, cluster="No Label"), {"cluster": "INVALID"}, id="cluster"
        ),
    ],
)
def test_requests_at_fault(
    cluster: Simulated, request_: spb.SimulateRequest, expected: dict[str, str]
) -> None:
    with refused(INVALID) as refusal:
        cluster.service.scheduler.Simulate(request_, timeout=CALL_SECONDS)

    found = faults(refusal.error)
    assert found == {field: reason for field, reason in expected.items() if reason}
    is_limit = set(found.values()) == {"TOO_MANY"}
    assert refusal.error.reason == ("LIMIT_EXCEEDED" if is_limit else "INVALID_REQUEST")


@pytest.mark.parametrize("part", ["inline", "overlay"])
def test_more_objects_than_a_call_may_have(cluster: Simulated, part: str) -> None:
    batch = Object()
    batch.pod_batch.names.extend(f"p{i}" for i in range(20_001))
    request = spb.SimulateRequest(whole_queue=True)
    getattr(request, part).objects.append(batch)

    with refused(INVALID) as refusal:
        cluster.service.scheduler.Simulate(request, timeout=CALL_SECONDS)

    assert refusal.error.reason == "TOO_MANY_OBJECTS"
    assert faults(refusal.error) == {f"{part}.objects": "TOO_MANY"}


def test_out_of_time_the_answer_is_what_was_decided_by_then(cluster: Simulated) -> None:
    nodes = [node(f"n{i}", "64") for i in range(100)]
    groups = [each for i in range(6_000) for each in gang(f"g{i}", 2)]

    answer = cluster.simulate(inline=[*nodes, *groups], seconds=1.0)

    assert answer.partial
    assert len(answer.decisions) == answer.totals.units < 6_000


def test_units_and_removed_objects_of_other_uids_are_named_all_of_them(cluster: Simulated) -> None:
    cluster.apply(node("n"), *gang("g", 1), *gang("h", 1))
    request = spb.SimulateRequest(
        cluster=cluster.name,
        units=[ObjectRef(kind="PodGroup", name="g", uid="other"), ObjectRef(kind="PodGroup", name="h")],
        overlay=spb.Overlay(removed=[ObjectRef(kind="Node", name="n", uid="other")]),
    )

    with refused(grpc.StatusCode.ABORTED) as refusal:
        cluster.service.scheduler.Simulate(request, timeout=CALL_SECONDS)

    assert refusal.error.reason == "UID_MISMATCH"
    subjects = [each.subject for each in refusal.error.details.preconditions]
    assert subjects == ["Node n", "PodGroup default/g"]


def test_units_and_removed_objects_of_the_uids_that_they_have_are_taken(cluster: Simulated) -> None:
    sent = node("n"), *gang("g", 1)
    results = cluster.apply(*sent).results
    request = spb.SimulateRequest(
        cluster=cluster.name,
        units=[ObjectRef(kind="PodGroup", name="g", uid=results[1].uid)],
        overlay=spb.Overlay(removed=[ObjectRef(kind="Node", name="n", uid=results[0].uid)]),
    )

    answer = cluster.service.scheduler.Simulate(request, timeout=CALL_SECONDS)

    assert len(answer.decisions) == 1
