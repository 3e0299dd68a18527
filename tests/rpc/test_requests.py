"""What is wrong with a request is told completely, with paths, and nothing of it is done."""

import gc
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from muster.engine.collector_rest import MOST_YOUNG
from muster.model.names import dns_label_fault
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import meta_pb2, object_pb2, pod_report_pb2
from muster.v1 import scheduler_service_pb2 as spb
from muster.validation.fields import optional_name_faults
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, apply, batch, pod, ref, refused

Call = Callable[[Api], Awaitable[Any]]

REF_FAULTS = pb.DeleteRequest(
    cluster="Not_A_Label",
    request_id="x" * 129,
    refs=[
        pb.DeleteTarget(ref=ref("Deployment", "a")),
        pb.DeleteTarget(ref=ref("Node", "n", namespace="default")),
        pb.DeleteTarget(ref=ref("Pod", "Bad_Name")),
        pb.DeleteTarget(),
        pb.DeleteTarget(ref=ref("Pod", "p"), resource_version=-1),
        pb.DeleteTarget(ref=ref("Pod", "p", namespace="default")),
    ],
    propagation=9,  # type: ignore[arg-type]
    grace_period_seconds=-1,
)
NO_NAMESPACES = ("A b", "a.b", "a" * 64)
SELECTOR = meta_pb2.LabelSelector(
    match_expressions=[
        meta_pb2.LabelSelectorRequirement(key="a", operator="In"),
        meta_pb2.LabelSelectorRequirement(key="!", operator="Equals", values=["x"]),
    ]
)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        pytest.param(
            lambda api: api.cluster.Delete(REF_FAULTS),
            {
                "cluster": "INVALID",
                "requestId": "TOO_MANY",
                "refs[0].ref.kind": "NOT_SUPPORTED",
                "refs[1].ref.namespace": "INVALID",
                "refs[2].ref.name": "INVALID",
                "refs[3].ref": "REQUIRED",
                "refs[4].resourceVersion": "INVALID",
                "refs[5].ref": "DUPLICATE",
                "propagation": "NOT_SUPPORTED",
                "gracePeriodSeconds": "INVALID",
            },
            id="Delete",
        ),
        *(
            pytest.param(
                lambda api, seconds=seconds: api.cluster.Delete(
                    pb.DeleteRequest(
                        refs=[pb.DeleteTarget(ref=ref("Pod", "p"))], grace_period_seconds=seconds
                    )
                ),
                {"gracePeriodSeconds": "INVALID"},
                id=f"Delete with a grace of {seconds}",
            )
            for seconds in (2**31, 10**13, 2**63 - 1)
        ),
        pytest.param(lambda api: api.cluster.Get(pb.GetRequest()), {"ref": "REQUIRED"}, id="Get"),
        pytest.param(
            lambda api: api.cluster.List(
                pb.ListRequest(
                    kind="Node",
                    namespace="a",
                    node_name="n",
                    unbound=True,
                    phase="Running",
                    page_size=5_001,
                    label_selector=SELECTOR,
                    group=ref("Pod", "a"),
                )
            ),
            {
                "namespace": "INVALID",
                "labelSelector.matchExpressions[0].values": "REQUIRED",
                "labelSelector.matchExpressions[1].key": "INVALID",
                "labelSelector.matchExpressions[1].operator": "NOT_SUPPORTED",
                "nodeName": "INVALID",
                "unbound": "INVALID",
                "phase": "INVALID",
                "group": "INVALID",
                "group.kind": "INVALID",
                "pageSize": "INVALID",
            },
            id="List of nodes",
        ),
        pytest.param(
            lambda api: api.cluster.List(
                pb.ListRequest(kind="Pod", node_name="n", unbound=True, phase="Gone")
            ),
            {"unbound": "INVALID", "phase": "NOT_SUPPORTED"},
            id="List of pods",
        ),
        pytest.param(
            lambda api: api.cluster.List(pb.ListRequest(page_size=-1)),
            {"kind": "REQUIRED", "pageSize": "INVALID"},
            id="List of nothing",
        ),
        pytest.param(
            lambda api: api.cluster.Watch(pb.WatchRequest(kinds=["Pod", "Job"], from_revision=-1)).read(),
            {"kinds[1]": "NOT_SUPPORTED", "fromRevision": "INVALID"},
            id="Watch",
        ),
        *(
            pytest.param(
                lambda api, namespace=namespace: api.cluster.Watch(
                    pb.WatchRequest(namespace=namespace)
                ).read(),
                {"namespace": "INVALID"},
                id=f"Watch of {namespace}",
            )
            for namespace in NO_NAMESPACES
        ),
        *(
            pytest.param(
                lambda api, namespace=namespace: api.cluster.List(
                    pb.ListRequest(kind="Pod", namespace=namespace)
                ),
                {"namespace": "INVALID"},
                id=f"List of {namespace}",
            )
            for namespace in NO_NAMESPACES
        ),
        *(
            pytest.param(
                lambda api, namespace=namespace: api.cluster.Get(
                    pb.GetRequest(ref=ref("Pod", "p", namespace=namespace))
                ),
                {"ref.namespace": "INVALID"},
                id=f"Get from {namespace}",
            )
            for namespace in NO_NAMESPACES
        ),
        pytest.param(
            lambda api: api.cluster.ReportPods(pb.ReportPodsRequest()),
            {"reports": "REQUIRED"},
            id="ReportPods",
        ),
        pytest.param(
            lambda api: api.cluster.DeleteCluster(pb.DeleteClusterRequest()),
            {"cluster": "REQUIRED"},
            id="DeleteCluster",
        ),
        pytest.param(
            lambda api: api.scheduler.Schedule(
                spb.ScheduleRequest(unit=ref("Node", "n"), wait=Duration(seconds=601))
            ),
            {"unit.kind": "INVALID", "wait": "INVALID"},
            id="Schedule",
        ),
        pytest.param(
            lambda api: api.scheduler.Preempt(spb.PreemptRequest(request_id="x" * 129)),
            {"unit": "REQUIRED", "requestId": "TOO_MANY"},
            id="Preempt",
        ),
        pytest.param(
            lambda api: api.scheduler.WatchDecisions(
                spb.WatchDecisionsRequest(
                    from_revision=-5,
                    units=[ref("PodGroup", "")],
                    codes=[0, 77],  # type: ignore[list-item]
                )
            ).read(),
            {
                "fromRevision": "INVALID",
                "units[0].name": "REQUIRED",
                "codes[0]": "NOT_SUPPORTED",
                "codes[1]": "NOT_SUPPORTED",
            },
            id="WatchDecisions",
        ),
        pytest.param(
            lambda api: api.scheduler.ListDecisions(
                spb.ListDecisionsRequest(
                    start_time=Timestamp(seconds=9), end_time=Timestamp(seconds=8), page_size=9_999
                )
            ),
            {"endTime": "INVALID", "pageSize": "INVALID"},
            id="ListDecisions",
        ),
        pytest.param(
            lambda api: api.scheduler.GetDecision(spb.GetDecisionRequest()),
            {"id": "REQUIRED"},
            id="GetDecision",
        ),
        pytest.param(
            lambda api: api.scheduler.GetQueue(spb.GetQueueRequest(states=[99])),  # type: ignore[list-item]
            {"states[0]": "NOT_SUPPORTED"},
            id="GetQueue",
        ),
    ],
)
async def test_every_fault_of_a_request_is_a_violation_with_its_path(
    api: Api, engine: FakeEngine, call: Call, fields: dict[str, str]
) -> None:
    answer = await refused(call(api))

    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answer.fields == fields
    assert not engine.calls


async def test_a_wrong_namespace_is_told_as_it_is_of_an_object(api: Api) -> None:
    answer = await refused(api.cluster.List(pb.ListRequest(kind="Pod", namespace="A b")))

    (fault,) = optional_name_faults("namespace", "A b", dns_label_fault)
    assert fault.description in answer.message


async def test_faults_of_request_and_objects_come_in_one_answer(api: Api, engine: FakeEngine) -> None:
    request = pb.ApplyRequest(request_id="x" * 129, objects=[pod("ok"), object_pb2.Object(), pod(".bad")])

    answer = await refused(api.cluster.Apply(request))

    assert set(answer.fields) >= {"requestId", "objects[1]", "objects[2].pod.metadata.name"}
    assert engine.clusters["default"].objects == {}


async def test_a_limit_alone_is_called_one(api: Api) -> None:
    answer = await refused(api.cluster.Apply(pb.ApplyRequest(request_id="x" * 129, objects=[pod("a")])))

    assert answer.reason == "LIMIT_EXCEEDED"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([pod(f"p-{index}") for index in range(20_001)], id="objects"),
        pytest.param([pod("a"), batch(f"p-{index}" for index in range(20_000))], id="names of a batch"),
    ],
)
async def test_too_many_objects_are_refused_before_anything_else(
    api: Api, engine: FakeEngine, objects: list[object_pb2.Object]
) -> None:
    answer = await refused(api.cluster.Apply(pb.ApplyRequest(cluster="Not_A_Label", objects=objects)))

    assert (answer.reason, answer.fields) == ("TOO_MANY_OBJECTS", {"objects": "TOO_MANY"})
    assert not engine.calls


async def test_twenty_thousand_names_are_taken(api: Api) -> None:
    response = await apply(api, batch(f"p-{index}" for index in range(20_000)))

    assert response.results[0].counts.created == 20_000
    assert gc.get_threshold()[0] >= MOST_YOUNG  # and no time is spent on a look through them


async def test_too_many_refs_are_refused(api: Api) -> None:
    targets = [pb.DeleteTarget(ref=ref("Pod", f"p-{index}")) for index in range(20_001)]

    answer = await refused(api.cluster.Delete(pb.DeleteRequest(refs=targets)))

    assert answer.reason == "TOO_MANY_OBJECTS"


async def test_an_empty_cluster_and_an_empty_namespace_mean_default(api: Api) -> None:
    await apply(api, pod("a"))

    got = await api.cluster.Get(pb.GetRequest(cluster="default", ref=ref("Pod", "a", namespace="default")))

    assert got.object.pod.metadata.name == "a"


async def test_a_cluster_that_nobody_made_is_not_found(api: Api) -> None:
    answer = await refused(api.cluster.List(pb.ListRequest(cluster="elsewhere", kind="Pod")))

    assert (answer.code, answer.reason) == (grpc.StatusCode.NOT_FOUND, "CLUSTER_NOT_FOUND")


async def test_another_uid_in_a_ref_is_a_conflict(api: Api) -> None:
    await apply(api, pod("a"))

    answer = await refused(api.cluster.Get(pb.GetRequest(ref=ref("Pod", "a", uid="other"))))

    assert (answer.code, answer.reason) == (grpc.StatusCode.ABORTED, "UID_MISMATCH")


async def test_reports_are_answered_one_by_one_with_messages(api: Api) -> None:
    await apply(api, pod("a"), pod("b"))
    reports = [
        pod_report_pb2.PodReport(name="a", bound=pod_report_pb2.PodBound(node_name="n")),
        pod_report_pb2.PodReport(name="b"),
        pod_report_pb2.PodReport(name="c", removed=pod_report_pb2.PodRemoved()),
    ]

    response = await api.cluster.ReportPods(pb.ReportPodsRequest(reports=reports))

    assert list(response.outcomes) == [1, 5, 4]
    assert set(response.messages) == {1, 2}


@pytest.mark.parametrize("missing_is_allowed", [True, False])
async def test_deleting_a_cluster_that_is_not_there(api: Api, missing_is_allowed: bool) -> None:
    call = api.cluster.DeleteCluster(
        pb.DeleteClusterRequest(cluster="elsewhere", allow_missing=missing_is_allowed)
    )

    if missing_is_allowed:
        assert (await call).outcome == 3
    else:
        assert (await refused(call)).reason == "CLUSTER_NOT_FOUND"


async def test_the_server_tells_its_limits_and_profiles(api: Api) -> None:
    told = await api.cluster.GetServerInfo(pb.GetServerInfoRequest())

    assert list(told.profiles) == ["default-scheduler"]
    assert (told.limits.max_objects, told.limits.max_response_bytes) == (20_000, 3 * 1024 * 1024)
    assert (told.limits.max_unary_calls, told.limits.max_watches) == (1_000, 2_000)
    assert told.eviction_mode == 1
