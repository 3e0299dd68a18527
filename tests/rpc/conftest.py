"""A real server on port 0 over an engine in memory, and stubs that call it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from grpc import aio

from muster.rpc.limits import ServingLimits
from muster.rpc.server import RpcServer, ServingOptions
from muster.v1 import cluster_service_pb2_grpc, scheduler_service_pb2_grpc
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import SHORT_LIMITS, Api, RecordingTelemetry


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def limits() -> ServingLimits:
    """What a test overrides to make a limit small."""
    return SHORT_LIMITS


@pytest.fixture
def telemetry() -> RecordingTelemetry:
    return RecordingTelemetry()


@pytest.fixture(params=[False, True], ids=["inside", "receiver"])
def receiver(request: pytest.FixtureRequest) -> bool:
    """Whether gRPC is spoken in a process of its own; its callers must not see which."""
    return bool(request.param)


@pytest.fixture
async def server(
    engine: FakeEngine, limits: ServingLimits, telemetry: RecordingTelemetry, receiver: bool
) -> AsyncIterator[RpcServer]:
    server = RpcServer(engine, replace(ServingOptions(receiver=receiver), limits=limits), telemetry)
    await server.start()
    yield server
    await server.drain(0)


@pytest.fixture
async def channel(server: RpcServer) -> AsyncIterator[aio.Channel]:
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
    ]
    async with aio.insecure_channel(server.addresses[0], options=options) as channel:
        yield channel


@pytest.fixture
def api(channel: aio.Channel) -> Api:
    return Api(
        cluster_service_pb2_grpc.ClusterServiceStub(channel),
        scheduler_service_pb2_grpc.SchedulerServiceStub(channel),
    )
