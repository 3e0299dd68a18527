"""Reflection: what clients that have no protos are told of services, methods and messages."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from muster.rpc.server import SERVICES, RpcServer, ServingOptions
from tests.fakes.engine import FakeEngine


async def reflected(channel: aio.Channel) -> set[str]:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]
    messages: Any = reflection_pb2
    request = messages.ServerReflectionRequest(list_services="")
    async for answer in stub.ServerReflectionInfo(iter([request])):
        return {each.name for each in answer.list_services_response.service}
    return set()


async def test_reflection_lists_the_services(channel: aio.Channel) -> None:
    assert await reflected(channel) >= {*SERVICES, "grpc.health.v1.Health"}


async def asked_by_reflection(address: str, *symbols: str) -> list[str]:
    """The files that a client of the reflection service is told to hold the symbols."""

    def ask() -> list[str]:
        with grpc.insecure_channel(address) as channel:
            database: Any = ProtoReflectionDescriptorDatabase(channel)
            return [database.FindFileContainingSymbol(symbol).name for symbol in symbols]

    return await asyncio.to_thread(ask)


async def test_reflection_finds_methods_by_name(server: RpcServer) -> None:
    files = await asked_by_reflection(
        server.addresses[0],
        "muster.v1.ClusterService.Apply",
        "muster.v1.SchedulerService.Explain",
        "muster.v1.ClusterService",
        "muster.v1.Pod",
    )

    services = ["muster/v1/cluster_service.proto", "muster/v1/scheduler_service.proto"]
    assert files == [*services, services[0], "muster/v1/pod.proto"]


@pytest.mark.parametrize(
    "symbol", ["muster.v1.ClusterService.None", "muster.v1.None.Apply", "muster.v1.Pod.spec.x", ""]
)
async def test_reflection_finds_nothing_that_is_not_there(server: RpcServer, symbol: str) -> None:
    with pytest.raises(KeyError):
        await asked_by_reflection(server.addresses[0], symbol)


async def test_a_client_calls_a_method_that_reflection_alone_told_it_of(server: RpcServer) -> None:
    def call() -> str:
        with grpc.insecure_channel(server.addresses[0]) as channel:
            pool: Any = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
            method = pool.FindMethodByName("muster.v1.ClusterService.GetServerInfo")
            request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
            ask = channel.unary_unary(
                "/muster.v1.ClusterService/GetServerInfo", request.SerializeToString, response.FromString
            )
            return str(ask(request()))

    response = await asyncio.to_thread(call)

    assert "limits" in response


async def test_reflection_can_be_switched_off(engine: FakeEngine, receiver: bool) -> None:
    server = RpcServer(engine, ServingOptions(receiver=receiver, reflection=False))
    await server.start()
    async with aio.insecure_channel(server.addresses[0]) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await reflected(channel)
    await server.drain(0)

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
