"""Apply with `wait`: which units it is about, what it refuses, and what is told of them."""

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from muster.core.decision import Decision, DecisionCode
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.model.meta import ObjectKey
from muster.rpc.apply_wait import MAX_UNITS_WAITED_FOR, awaited_units
from muster.rpc.codec import decode_object
from muster.rpc.limits import MAX_RESPONSE_BYTES
from muster.rpc.request_checks import RequestFaults
from muster.v1 import cluster_service_pb2 as pb
from muster.v1.object_pb2 import Object
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, batch, names, pod, pod_group, refused

WAIT = Duration(seconds=1)


def in_group(sent: Object, group: str) -> Object:
    template = sent.pod if sent.HasField("pod") else sent.pod_batch.template
    template.spec.scheduling_group.pod_group_name = group
    return sent


def below(sent: Object, parent: str) -> Object:
    sent.pod_group.spec.parent_composite_pod_group_name = parent
    return sent


def composite(name: str, parent: str = "") -> Object:
    made = Object()
    made.composite_pod_group.metadata.name = name
    made.composite_pod_group.spec.parent_composite_pod_group_name = parent
    return made


def decided(kind: str, name: str, nodes: tuple[str, ...] = ()) -> DecisionRecord:
    key = ObjectKey(kind, "default", name)
    columns = AssignmentColumns("default", nodes, nodes, nodes, tuple(range(len(nodes))))
    return DecisionRecord("", 0, 0, Decision(key, DecisionCode.SCHEDULED), columns)


@pytest.mark.parametrize(
    ("objects", "units"),
    [
        pytest.param([pod("a"), batch(["b", "c"])], ["Pod a", "Pod b", "Pod c"], id="pods without a group"),
        pytest.param(
            [in_group(pod("a"), "g"), in_group(pod("b"), "g"), pod_group("g")], ["PodGroup g"], id="a gang"
        ),
        pytest.param(
            [in_group(pod("a"), "g"), in_group(pod("b"), "g")],
            ["Pod a"],
            id="pods of a group that is not sent",
        ),
        pytest.param([in_group(batch(["a", "b"]), "g")], ["Pod a"], id="a batch of such a group"),
        pytest.param(
            [in_group(pod("a"), "g"), in_group(pod("b"), "h"), pod("c"), pod("d"), in_group(pod("e"), "g")],
            ["Pod a", "Pod b", "Pod c", "Pod d"],
            id="pods of two groups, and pods without one between them",
        ),
        pytest.param(
            [below(pod_group("g"), "c"), composite("c", "r"), composite("r"), in_group(pod("a"), "g")],
            ["CompositePodGroup r"],
            id="a tree",
        ),
        pytest.param(
            [below(pod_group("g"), "elsewhere")], ["PodGroup g"], id="below a group that is not sent"
        ),
        pytest.param(
            [composite("a", "b"), composite("b", "a")],
            ["CompositePodGroup b", "CompositePodGroup a"],
            id="groups in a circle",
        ),
        pytest.param([Object()], [], id="nothing"),
    ],
)
def test_a_call_is_about_the_units_that_its_objects_are_part_of(
    objects: list[Object], units: list[str]
) -> None:
    found = awaited_units([decode_object(each, "")[0] for each in objects], RequestFaults())

    assert [f"{key.kind} {key.name}" for key in found] == units


async def test_decisions_come_in_the_order_of_the_call(api: Api, engine: FakeEngine) -> None:
    for kind, name in (("Pod", "b"), ("PodGroup", "g"), ("Pod", "a")):
        engine.add_decision(decided(kind, name))

    response = await api.cluster.Apply(
        pb.ApplyRequest(objects=[pod("a"), pod_group("g"), pod("b"), pod("c")], wait=WAIT)
    )

    assert [each.unit.name for each in response.decisions] == ["a", "g", "b"]
    assert len(response.results) == 4
    assert engine.calls["schedule"] == 4


async def test_without_wait_nothing_is_asked(api: Api, engine: FakeEngine) -> None:
    engine.add_decision(decided("Pod", "a"))

    response = await api.cluster.Apply(pb.ApplyRequest(objects=[pod("a")]))

    assert not response.decisions
    assert engine.calls["schedule"] == 0


async def test_a_repeat_is_told_what_became_of_the_units_by_then(api: Api, engine: FakeEngine) -> None:
    request = pb.ApplyRequest(objects=[pod("a")], wait=WAIT, request_id="r")
    first = await api.cluster.Apply(request)
    engine.add_decision(decided("Pod", "a"))

    again = await api.cluster.Apply(request)

    assert (first.results, list(first.decisions)) == (again.results, [])
    assert [each.unit.name for each in again.decisions] == ["a"]
    assert engine.calls["apply"] == 1


async def test_another_wait_is_another_request(api: Api) -> None:
    await api.cluster.Apply(pb.ApplyRequest(objects=[pod("a")], wait=WAIT, request_id="r"))

    answer = await refused(api.cluster.Apply(pb.ApplyRequest(objects=[pod("a")], request_id="r")))

    assert answer.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(
            pb.ApplyRequest(objects=[pod("a")], wait=Duration(seconds=601)), "INVALID", id="too long"
        ),
        pytest.param(pb.ApplyRequest(objects=[pod("a")], wait=Duration(nanos=-1)), "INVALID", id="negative"),
        pytest.param(
            pb.ApplyRequest(objects=[pod("a")], wait=WAIT, validate_only=True), "INVALID", id="a dry run"
        ),
        pytest.param(
            pb.ApplyRequest(objects=[batch(f"p-{n}" for n in range(MAX_UNITS_WAITED_FOR + 1))], wait=WAIT),
            "TOO_MANY",
            id="too many units",
        ),
    ],
)
async def test_a_wrong_wait_is_refused_and_nothing_is_stored(
    api: Api, request_: pb.ApplyRequest, reason: str
) -> None:
    answer = await refused(api.cluster.Apply(request_))

    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answer.fields == {"wait": reason}
    assert not names((await api.cluster.List(pb.ListRequest(kind="Pod"))).objects)


async def test_many_large_decisions_still_fit_in_a_response(api: Api, engine: FakeEngine) -> None:
    count, nodes = 40, tuple(f"node-{place}-{'x' * 200}" for place in range(500))
    for number in range(count):
        engine.add_decision(decided("Pod", f"p-{number}", nodes))

    response = await api.cluster.Apply(
        pb.ApplyRequest(objects=[pod(f"p-{number}") for number in range(count)], wait=WAIT)
    )

    assert len(response.decisions) == count
    assert all(each.assignments_omitted for each in response.decisions)
    assert response.ByteSize() <= MAX_RESPONSE_BYTES
