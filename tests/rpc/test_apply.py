"""Apply, its replay, and ApplyStream."""

import asyncio
import time

import grpc
import pytest
from grpc import aio

from muster.model.meta import ObjectKey
from muster.model.pod import Pod
from muster.rpc.server import RpcServer
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import cluster_service_pb2_grpc
from muster.v1.object_pb2 import Object
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import PATIENCE_SECONDS, Api, apply, batch, pod, ref, refused

UNREAD_SECONDS = 1.5
"""Long enough for all three requests to be dealt with, and longer than a server may hope that somebody reads at last."""


async def test_results_come_in_order_with_outcomes(api: Api) -> None:
    await apply(api, pod("b"), pod("c"))

    response = await apply(api, pod("a"), pod("b"), pod("c", {"x": "y"}), batch(["d", "e"]))

    assert [each.outcome for each in response.results] == [1, 3, 2, 1]
    assert [each.uid for each in response.results] == ["uid-a", "uid-b", "uid-c", ""]
    assert [each.HasField("counts") for each in response.results] == [False, False, False, True]
    assert response.results[3].counts.created == 2


async def test_pods_in_a_row_are_taken_as_they_are_one_by_one(api: Api, engine: FakeEngine) -> None:
    def in_group(sent: Object, group: str) -> Object:
        sent.pod.spec.scheduling_group.pod_group_name = group
        return sent

    of_node = Object()
    of_node.node.metadata.name = "n"
    sent = [
        *(in_group(pod(f"a-{number}"), "g") for number in range(10, 40)),
        of_node,
        *(in_group(pod(f"b-{number}"), "h") for number in range(10, 16)),
        *(in_group(pod(f"c-{number}", {"x": "y"}), "h") for number in range(10, 16)),
        *(pod(f"d-{number}") for number in range(5, 15)),
        batch(["e", "f"]),
        *(pod(f"h-{number}") for number in range(5)),
    ]

    response = await apply(api, *sent)

    names = [each.pod.metadata.name or each.node.metadata.name for each in sent]
    assert [each.uid for each in response.results] == [f"uid-{name}" if name else "" for name in names]
    held = engine.clusters["default"].objects
    pods = [each.pod for each in sent if each.HasField("pod")]
    for each in pods:
        stored = held[ObjectKey("Pod", "default", each.metadata.name)]
        assert isinstance(stored, Pod)
        assert stored.group == each.spec.scheduling_group.pod_group_name
        assert stored.labels == each.metadata.labels


async def test_a_repeated_request_id_gets_the_first_answer(api: Api, engine: FakeEngine) -> None:
    first = await api.cluster.Apply(pb.ApplyRequest(objects=[pod("a", {"k": "v", "l": "w"})], request_id="r"))
    await apply(api, pod("b"))

    again = await api.cluster.Apply(
        pb.ApplyRequest(objects=[pod("a", {"l": "w", "k": "v"})], request_id="r", cluster="default")
    )

    assert again == first
    assert engine.calls["apply"] == 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pb.ApplyRequest(objects=[pod("b")], request_id="r"), id="another object"),
        pytest.param(pb.ApplyRequest(objects=[pod("a"), pod("b")], request_id="r"), id="one more"),
        pytest.param(pb.ApplyRequest(objects=[pod("a")], request_id="r", validate_only=True), id="a flag"),
    ],
)
async def test_a_request_id_is_not_taken_for_another_request(api: Api, other: pb.ApplyRequest) -> None:
    await api.cluster.Apply(pb.ApplyRequest(objects=[pod("a")], request_id="r"))

    answer = await refused(api.cluster.Apply(other))

    assert answer.reason == "REQUEST_ID_REUSED"


async def test_delete_and_reports_are_replayed_too(api: Api, engine: FakeEngine) -> None:
    await apply(api, pod("a"))
    request = pb.DeleteRequest(refs=[pb.DeleteTarget(ref=ref("Pod", "a"))], request_id="r")
    first = await api.cluster.Delete(request)

    again = await api.cluster.Delete(request)

    assert again == first
    assert engine.calls["delete"] == 1


async def test_other_calls_are_answered_while_a_large_apply_is_decoded(api: Api) -> None:
    await apply(api, pod("a"))
    large = pb.ApplyRequest(
        objects=[pod(f"p-{index}", {f"k{key}": "v" for key in range(10)}) for index in range(10_000)],
        request_id="r",
    )
    applying = asyncio.ensure_future(api.cluster.Apply(large))
    longest, count = 0.0, 0

    while not applying.done():
        started = time.perf_counter()
        await api.cluster.Get(pb.GetRequest(ref=ref("Pod", "a")))
        longest, count = max(longest, time.perf_counter() - started), count + 1

    assert len((await applying).results) == 10_000
    assert count > 3


async def test_a_stream_is_answered_in_order(api: Api) -> None:
    requests = [pb.ApplyRequest(objects=[pod(f"p-{index}")]) for index in range(20)]

    answers = [each async for each in api.cluster.ApplyStream(iter(requests))]

    assert [each.sequence for each in answers] == list(range(1, 21))
    assert [each.response.results[0].uid for each in answers] == [f"uid-p-{index}" for index in range(20)]


async def test_a_stream_has_at_most_four_in_work_and_then_stops_reading(api: Api, engine: FakeEngine) -> None:
    engine.gate = asyncio.Event()
    stream = api.cluster.ApplyStream()
    for index in range(8):
        await stream.write(pb.ApplyRequest(objects=[pod(f"p-{index}")]))
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(4):
            await engine.entered.acquire()
    await apply_nothing(api)

    engine.gate.set()
    await stream.done_writing()
    answers = [each async for each in stream]

    assert len(answers) == 8
    assert engine.most_in_work == 4


async def apply_nothing(api: Api) -> None:
    """A round trip, after which the server has had every chance to read on."""
    await api.cluster.GetServerInfo(pb.GetServerInfoRequest())


async def test_the_first_refused_request_ends_the_stream(api: Api, engine: FakeEngine) -> None:
    stream = api.cluster.ApplyStream()
    await stream.write(pb.ApplyRequest(objects=[pod("a")]))
    first = await stream.read()
    await stream.write(pb.ApplyRequest(objects=[pod(".bad")]))

    answer = await refused(stream.read())

    assert isinstance(first, pb.ApplyStreamResponse)
    assert first.sequence == 1
    assert answer.fields == {"objects[0].pod.metadata.name": "INVALID"}


async def test_a_slow_reader_gets_all_answers_before_the_refusal(server: RpcServer) -> None:
    window = [("grpc.http2.bdp_probe", 0), ("grpc.max_receive_message_length", -1)]
    large = pb.ApplyRequest(objects=[pod(f"p-{index}") for index in range(5_000)], validate_only=True)
    async with aio.insecure_channel(server.addresses[0], options=window) as channel:
        stub = cluster_service_pb2_grpc.ClusterServiceStub(channel)
        stream = stub.ApplyStream(iter([large, large, pb.ApplyRequest()]))
        await asyncio.sleep(UNREAD_SECONDS)
        read = [await stream.read(), await stream.read()]
        answer = await refused(stream.read())

    assert [each.sequence for each in read if isinstance(each, pb.ApplyStreamResponse)] == [1, 2]
    assert answer.reason == "INVALID_REQUEST"


async def test_requests_of_a_stream_reach_the_engine_in_their_order(api: Api, engine: FakeEngine) -> None:
    slow_to_decode = [pod(f"p-{index}") for index in range(3_000)]
    requests = [
        pb.ApplyRequest(objects=slow_to_decode),
        pb.ApplyRequest(objects=[pod("p-0", {"last": "yes"})]),
    ]

    answers = [each async for each in api.cluster.ApplyStream(iter(requests))]

    assert [each.response.revision for each in answers] == [2, 3]
    assert answers[1].response.results[0].outcome == 2


async def test_an_empty_stream_ends_well(api: Api) -> None:
    answers = api.cluster.ApplyStream(iter([]))

    assert [each async for each in answers] == []
    assert await answers.code() is grpc.StatusCode.OK


async def test_a_draining_server_ends_a_stream_after_what_is_in_work(
    api: Api, engine: FakeEngine, server: RpcServer
) -> None:
    engine.gate = asyncio.Event()
    stream = api.cluster.ApplyStream()
    await stream.write(pb.ApplyRequest(objects=[pod("a")]))
    await engine.entered.acquire()

    draining = asyncio.ensure_future(server.drain(PATIENCE_SECONDS))
    engine.gate.set()
    answer = await stream.read()
    refusal = await refused(stream.read())
    await draining

    assert isinstance(answer, pb.ApplyStreamResponse)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")
