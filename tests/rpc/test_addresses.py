"""Addresses: sockets and ports that are listened on, and those that cannot be."""

import socket
import stat
from pathlib import Path

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2

from muster.rpc.addresses import AddressError
from muster.rpc.server import RpcServer, ServingOptions
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import status_of


async def test_a_unix_socket_serves_all_and_goes_with_the_server(
    engine: FakeEngine, tmp_path: Path, receiver: bool
) -> None:
    path = tmp_path / "muster.sock"
    server = RpcServer(engine, ServingOptions(receiver=receiver, listen="", uds=path))
    await server.start()
    async with aio.insecure_channel(server.addresses[0]) as channel:
        status = await status_of(channel)
        mode = stat.S_IMODE(path.stat().st_mode)
    await server.drain(0)

    assert server.addresses == [f"unix://{path}"]
    assert (status, mode) == (health_pb2.HealthCheckResponse.SERVING, 0o660)
    assert not path.exists()


async def test_a_socket_that_somebody_listens_on_is_left_alone(
    engine: FakeEngine, tmp_path: Path, receiver: bool
) -> None:
    options = ServingOptions(receiver=receiver, listen="", uds=tmp_path / "muster.sock")
    first, second = RpcServer(engine, options), RpcServer(engine, options)
    await first.start()

    with pytest.raises(AddressError, match="another server does"):
        await second.start()
    await second.drain(0)
    async with aio.insecure_channel(first.addresses[0]) as channel:
        status = await status_of(channel)
    await first.drain(0)

    assert status == health_pb2.HealthCheckResponse.SERVING


async def test_a_socket_file_that_a_dead_server_left_is_taken_over(
    engine: FakeEngine, tmp_path: Path, receiver: bool
) -> None:
    path = tmp_path / "muster.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    server = RpcServer(engine, ServingOptions(receiver=receiver, listen="", uds=path))

    await server.start()
    async with aio.insecure_channel(server.addresses[0]) as channel:
        status = await status_of(channel)
    await server.drain(0)

    assert status == health_pb2.HealthCheckResponse.SERVING


async def test_a_port_in_use_is_an_address_error(
    engine: FakeEngine, server: RpcServer, receiver: bool
) -> None:
    second = RpcServer(engine, ServingOptions(receiver=receiver, listen=server.addresses[0]))

    with pytest.raises(AddressError, match=f"cannot listen on {server.addresses[0]}: Address already in use"):
        await second.start()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("192.0.2.1:50051", "Cannot assign requested address"),
        ("no-such-host.invalid:50051", "cannot listen on no-such-host.invalid:50051: "),
    ],
)
async def test_an_address_that_is_not_ours_is_an_address_error(
    engine: FakeEngine, address: str, why: str, receiver: bool
) -> None:
    server = RpcServer(engine, ServingOptions(receiver=receiver, listen=address))

    with pytest.raises(AddressError, match=why):
        await server.start()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::]"])
async def test_any_way_to_write_a_host_is_listened_on(engine: FakeEngine, host: str, receiver: bool) -> None:
    server = RpcServer(engine, ServingOptions(receiver=receiver, listen=f"{host}:0"))
    await server.start()
    port = server.addresses[0].rpartition(":")[2]
    async with aio.insecure_channel(f"localhost:{port}") as channel:
        status = await status_of(channel)
    await server.drain(0)

    assert status == health_pb2.HealthCheckResponse.SERVING


async def test_a_socket_without_a_folder_is_an_address_error(
    engine: FakeEngine, tmp_path: Path, receiver: bool
) -> None:
    server = RpcServer(
        engine, ServingOptions(receiver=receiver, listen="", uds=tmp_path / "no" / "muster.sock")
    )

    with pytest.raises(AddressError, match="there is no folder"):
        await server.start()
