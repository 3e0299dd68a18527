"""Explain as a client meets it: over gRPC against a real service, and in the terminal."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import grpc
import pytest
from rich.console import Console

from muster.cli.explain import explanation_view
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.cluster_service_pb2 import ApplyRequest
from muster.v1.decision_pb2 import GroupStatus
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.queue_pb2 import UnitState
from tests.endtoend.service import Service, gang, member, node
from tests.rpc.calls import unpacked

WIDTH = 80


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("explain")
    with Service(f"sqlite:///{folder / 'muster.db'}", folder / "log") as served:
        yield served
        served.stop()


@pytest.fixture
def cluster() -> str:
    return f"c-{uuid.uuid4().hex[:8]}"


def apply(service: Service, cluster: str, *objects: Object) -> None:
    service.cluster.Apply(ApplyRequest(cluster=cluster, objects=objects))


def decided(service: Service, cluster: str, group: str) -> None:
    service.scheduler.Schedule(spb.ScheduleRequest(cluster=cluster, unit=ref(group)))


def explain(
    service: Service, cluster: str, named: ObjectRef | None, *, helps: bool = False
) -> spb.ExplainResponse:
    return service.scheduler.Explain(spb.ExplainRequest(cluster=cluster, unit=named, what_would_help=helps))


def lines_of(answer: spb.ExplainResponse) -> list[str]:
    page = StringIO()
    Console(file=page, width=WIDTH, color_system=None).print(explanation_view(answer, asked_for_helps=True))
    return page.getvalue().splitlines()


def ref(name: str, kind: str = "PodGroup") -> ObjectRef:
    return ObjectRef(kind=kind, name=name)


def test_a_gang_that_waits_is_explained_with_its_queue_state_and_what_would_help(
    service: Service, cluster: str
) -> None:
    apply(service, cluster, node("n", cpu="2"), *gang("crew", 5))
    decided(service, cluster, "crew")

    answer = explain(service, cluster, ref("crew-0", "Pod"), helps=True)

    codes = {reason.code: reason for reason in answer.result.reasons}
    assert answer.queue.state in {UnitState.UNIT_STATE_UNSCHEDULABLE, UnitState.UNIT_STATE_BACKOFF}
    assert answer.last_decision.id
    assert (answer.result.satisfied_count, answer.result.required_count) == (2, 5)
    assert codes["MISSING_ROOM"].details["missing"] == "3"
    assert codes["INSUFFICIENT_CPU"].details["examples"] == "n"
    assert {"FIRST_FAILURE", "SEARCH_PROVED", "PREEMPTION_FORBIDDEN", "NEXT_TRY"} <= set(codes)
    assert [(each.code, each.count) for each in answer.helps] == [("ADD_NODES", 2), ("LOWER_MINIMUM", 2)]


def test_a_help_that_is_carried_out_gets_the_gang_scheduled(service: Service, cluster: str) -> None:
    apply(service, cluster, node("n", cpu="2"), *gang("crew", 5))
    decided(service, cluster, "crew")
    help_ = explain(service, cluster, ref("crew"), helps=True).helps[0]

    apply(service, cluster, *(node(f"new-{number}", cpu="2") for number in range(help_.count)))
    decided(service, cluster, "crew")

    after = explain(service, cluster, ref("crew"), helps=True)
    assert after.result.status == GroupStatus.GROUP_STATUS_SUCCESS
    assert not after.HasField("queue")
    assert not after.helps
    assert [reason.code for reason in after.result.reasons] == ["NOTHING_PENDING"]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_unit_that_waits_for_its_victims_is_told_which_pods_have_to_leave(
    service: Service, cluster: str, level: int
) -> None:
    low = member("low", "")
    low.pod.spec.ClearField("scheduling_group")
    low.pod.spec.termination_grace_period_seconds = 600
    apply(service, cluster, node("n", cpu="2"), low)
    service.scheduler.Schedule(spb.ScheduleRequest(cluster=cluster, unit=ref("low", "Pod")))
    crew = below(level, *gang("crew", 2))
    for each in crew:
        getattr(each, each.WhichOneof("kind") or "").spec.priority = 5
    apply(service, cluster, *crew)
    decided(service, cluster, "crew")

    answer = explain(service, cluster, ref("crew"), helps=True)

    codes = {reason.code: reason for reason in answer.result.reasons}
    assert answer.queue.state == UnitState.UNIT_STATE_WAITING_FOR_PREEMPTION
    assert codes["WAITS_FOR_PODS"].details == {"pods": "1", "examples": "Pod default/low"}
    assert {"PREEMPTION_UNDER_WAY", "NEXT_TRY"} <= set(codes)
    assert not answer.helps
    assert lines_of(answer)[-1] == "it waits for pods to leave; no other change was tried"


def below(level: int, *objects: Object) -> list[Object]:
    """The gang `crew` on this level of a tree whose other groups need nothing else."""
    groups: list[Object] = []
    for name in ("root", "inner")[: level - 1]:
        made = Object()
        made.composite_pod_group.metadata.name = name
        spec = made.composite_pod_group.spec
        spec.scheduling_policy.gang.min_group_count = 1
        spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", name
        if groups:
            spec.parent_composite_pod_group_name = groups[-1].composite_pod_group.metadata.name
        groups.append(made)
    if groups:
        leaf = objects[0].pod_group.spec
        leaf.parent_composite_pod_group_name = groups[-1].composite_pod_group.metadata.name
        leaf.workload_ref.workload_name, leaf.workload_ref.template_name = "w", "crew"
    return [*groups, *objects]


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_unit_that_rests_is_told_what_wakes_it(service: Service, cluster: str, level: int) -> None:
    apply(service, cluster, node("n", cpu="2"), *below(level, *gang("crew", 5)))
    decided(service, cluster, "crew")

    answer = explain(service, cluster, ref("crew"))
    while answer.queue.state != UnitState.UNIT_STATE_UNSCHEDULABLE:
        answer = explain(service, cluster, ref("crew"))

    codes = {reason.code: reason for reason in answer.result.reasons}
    assert "NODE_ADDED" in codes["WAITS_FOR_EVENTS"].details["events"].split(",")
    assert codes["NEXT_TRY"].details["time"].endswith("Z")
    assert codes["FIRST_FAILURE"].details["level"] == str(level)


def test_helps_are_tried_only_if_they_are_asked_for(service: Service, cluster: str) -> None:
    apply(service, cluster, node("n", cpu="2"), *gang("crew", 5))

    assert not explain(service, cluster, ref("crew")).helps


def test_a_unit_that_does_not_exist_is_not_found(service: Service, cluster: str) -> None:
    apply(service, cluster, node("n"))

    with pytest.raises(grpc.RpcError) as caught:
        explain(service, cluster, ref("nobody"))

    assert unpacked(caught.value).code is grpc.StatusCode.NOT_FOUND  # type: ignore[arg-type]
    assert unpacked(caught.value).reason == "OBJECT_NOT_FOUND"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cluster_name", "named", "field"),
    [
        ("", None, "unit"),
        ("", ObjectRef(kind="Node", name="n"), "unit.kind"),
        ("", ObjectRef(kind="PodGroup"), "unit.name"),
        ("Not A Label", ObjectRef(kind="PodGroup", name="crew"), "cluster"),
    ],
)
def test_a_bad_request_names_its_fields(
    service: Service, cluster_name: str, named: ObjectRef | None, field: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        explain(service, cluster_name, named)

    refused = unpacked(caught.value)  # type: ignore[arg-type]
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert field in refused.fields


def test_fifty_clients_at_once_are_all_told(service: Service, cluster: str) -> None:
    apply(service, cluster, node("n", "2"), *gang("g", 3))
    decided(service, cluster, "g")

    with ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(explain, service, cluster, ref("g"), helps=True) for _ in range(50)]

    answers = [each.result() for each in asked]
    assert {answer.result.status for answer in answers} == {GroupStatus.GROUP_STATUS_UNSCHEDULABLE}
    assert all(answer.helps for answer in answers)


def test_an_explanation_fits_a_terminal(service: Service, cluster: str) -> None:
    apply(service, cluster, node("n", cpu="2"), *gang("crew", 5))
    decided(service, cluster, "crew")
    answer = explain(service, cluster, ref("crew"), helps=True)

    lines = lines_of(answer)

    assert max(map(len, lines)) <= WIDTH
    assert any("add 2 nodes like n (no fewer will do)" in line for line in lines)
    assert any(line.startswith("pg/crew  unschedulable  2/5 pods") for line in lines)
