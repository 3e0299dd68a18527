"""Bytes that are no request of their method are refused as any wrong request is, by every method."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import RecordingTelemetry, Refused, pod, refused

METHODS = [
    method
    for file, service in ((pb, "ClusterService"), (spb, "SchedulerService"))
    for method in file.DESCRIPTOR.services_by_name[service].methods
]
STREAM = "/muster.v1.ClusterService/ApplyStream"
NO_MESSAGE, NO_TEXT = b"\xff\xff\xff", b"\x0a\x01\xff"


async def one(sent: bytes) -> AsyncIterator[bytes]:
    yield sent


async def answer_to(channel: Any, method: MethodDescriptor, sent: bytes) -> Refused:
    path = f"/{method.containing_service.full_name}/{method.name}"
    if method.client_streaming:
        return await refused(channel.stream_stream(path)(one(sent)).read())
    if method.server_streaming:
        return await refused(channel.unary_stream(path)(sent).read())
    return await refused(channel.unary_unary(path)(sent))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_bytes_that_are_no_message_are_an_invalid_request(
    channel: Any, engine: FakeEngine, telemetry: RecordingTelemetry, method: MethodDescriptor
) -> None:
    answer = await answer_to(channel, method, NO_MESSAGE)

    assert (answer.code, answer.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert answer.message.startswith(f"what was sent is no request of {method.name}: ")
    assert not engine.calls
    assert telemetry.ended == [(method.name, "INVALID_ARGUMENT")]


async def test_a_text_that_is_not_utf_8_is_told_as_that(channel: Any) -> None:
    answer = await refused(channel.unary_unary("/muster.v1.ClusterService/Apply")(NO_TEXT))

    assert "UTF-8" in answer.message


async def test_an_unreadable_request_ends_its_stream_once_those_before_it_were_answered(
    channel: Any, engine: FakeEngine
) -> None:
    call = channel.stream_stream(STREAM, response_deserializer=pb.ApplyStreamResponse.FromString)()
    for sent in (pb.ApplyRequest(objects=[pod("a")]).SerializeToString(), NO_MESSAGE):
        await call.write(sent)

    first = await call.read()
    answer = await refused(call.read())

    assert first.sequence == 1
    assert answer.reason == "INVALID_REQUEST"
    assert [key.name for key in engine.clusters["default"].objects] == ["a"]
