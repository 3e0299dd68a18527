"""The server itself: addresses, channel options, credentials, health, reflection, draining.

Decides how calls arrive; what they mean is the servicers'. Nothing here knows how the engine is made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from google.protobuf.descriptor_pool import DescriptorPool
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from muster.engine.api import PositionedUnit, SchedulingEngine
from muster.model.objects import ClusterObject
from muster.rpc.addresses import Address, AddressError, Credentials
from muster.rpc.admission import Admission
from muster.rpc.auth import Tokens
from muster.rpc.call_server import CallServer, InProcessServer
from muster.rpc.cluster_servicer import ClusterServicer, ServerIdentity
from muster.rpc.gate import Gate, Ungated
from muster.rpc.limits import MAX_REQUEST_BYTES, ServingLimits
from muster.rpc.pagination import KeptLists, PageTokens
from muster.rpc.reading import Reading
from muster.rpc.receiver.remote_server import RemoteServer
from muster.rpc.reflection import Symbols
from muster.rpc.scheduler_servicer import SchedulerServicer
from muster.rpc.telemetry_port import NullRpcTelemetry, RpcTelemetry
from muster.v1 import (
    cluster_service_pb2,
    cluster_service_pb2_grpc,
    scheduler_service_pb2,
    scheduler_service_pb2_grpc,
)

SERVICES = (
    cluster_service_pb2.DESCRIPTOR.services_by_name["ClusterService"].full_name,
    scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"].full_name,
)
REFUSING_SECONDS = 0.2

CHANNEL_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    # Responses are cut by what makes them; this is no second opinion.
    ("grpc.max_send_message_length", -1),
    # Two servers on one port would share its calls at random.
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    # Watchers whose machine went away are noticed.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files; with `client_ca` a client must show a certificate that this authority signed."""

    cert: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Where and how a server serves. `listen` is HOST:PORT (port 0 picks one) or "" for none; `uds` a socket's path.

    `uds_mode`: permissions of the socket's file. `receiver`: gRPC is spoken in a process of its own.
    """

    listen: str = "127.0.0.1:0"
    uds: Path | None = None
    uds_mode: int = 0o660
    tls: TlsFiles | None = None
    tokens: Tokens | None = None
    reflection: bool = True
    receiver: bool = False
    limits: ServingLimits = field(default_factory=ServingLimits)
    identity: ServerIdentity = field(default_factory=ServerIdentity)


class RpcServer:
    """A server on real addresses. `start`, then `drain` once; `addresses` says where it listens.

    `reading` answers what is only read, for a way in beside gRPC.
    """

    def __init__(
        self, engine: SchedulingEngine, options: ServingOptions, telemetry: RpcTelemetry | None = None
    ) -> None:
        self._options = options
        self._admission = Admission(options.limits)
        self._health = health.aio.HealthServicer()
        self._telemetry = telemetry or NullRpcTelemetry()
        # How often a client may ping; the name says less.
        pings = ("grpc.http2.min_ping_interval_without_data_ms", int(options.limits.ping_seconds * 1_000))
        self._server = self._call_server([*CHANNEL_OPTIONS, pings])
        self._page_tokens = PageTokens()
        self._units = KeptLists[PositionedUnit](
            time.monotonic, options.limits.kept_lists, options.limits.kept_list_seconds
        )
        self.reading = Reading(
            engine, self._admission, self._telemetry, options.tokens, self._page_tokens, self._units
        )
        self._register(engine)
        self.addresses: list[str] = []

    @property
    def is_serving(self) -> bool:
        """Whether callers find somebody at the addresses."""
        return self._server.is_serving

    async def start(self) -> None:
        """Listen on all addresses and answer SERVING. Raises AddressError."""
        try:
            for address in self._given_addresses():
                self.addresses.append(address.called(await self._server.listen(address)))
        except AddressError:
            await self._server.stop(0)
            raise
        await self._server.start()
        for name in SERVICES:
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def drain(self, seconds: float) -> None:
        """Stop: health NOT_SERVING, new calls and watches UNAVAILABLE, GOAWAY, at most `seconds` for what is in work."""
        await self._health.enter_graceful_shutdown()
        self._admission.draining.set()
        began = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # A call that meets the stopping server itself is CANCELLED, so those under way get to the gate first.
                await asyncio.sleep(REFUSING_SECONDS)
                await self._admission.wait_until_idle()
        has_socket = self._server.is_serving
        await self._server.stop(max(0.0, seconds - (time.monotonic() - began)))
        # What another server has is not ours to take away.
        if self._options.uds is not None and has_socket:
            self._options.uds.unlink(missing_ok=True)

    def _call_server(self, channel_options: list[tuple[str, int]]) -> CallServer:
        if self._options.receiver:
            return RemoteServer(channel_options, self._telemetry.receiver_restarted)
        return InProcessServer(channel_options)

    def _register(self, engine: SchedulingEngine) -> None:
        limits, tokens = self._options.limits, self._page_tokens
        objects = KeptLists[ClusterObject](time.monotonic, limits.kept_lists, limits.kept_list_seconds)
        cluster = ClusterServicer(
            engine, self._admission, self._options.identity, self._telemetry, objects, tokens
        )
        scheduler = SchedulerServicer(engine, self._admission, self._telemetry, self._units, tokens)
        # To the generated code a server is what has the two methods that register.
        gate = Gate(self._server, self._admission, self._telemetry, self._options.tokens)
        cluster_service_pb2_grpc.add_ClusterServiceServicer_to_server(cluster, cast("aio.Server", gate))
        scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server(scheduler, cast("aio.Server", gate))
        ungated = cast("aio.Server", Ungated(self._server))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, ungated)
        if self._options.reflection:
            names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
            # To reflection a pool is what finds by name.
            servicer = reflection.aio.ReflectionServicer(names, pool=cast("DescriptorPool", Symbols()))
            reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, ungated)  # type: ignore[no-untyped-call]

    def _given_addresses(self) -> Iterator[Address]:
        if self._options.listen:
            credentials = None if self._options.tls is None else _credentials(self._options.tls)
            yield Address(self._options.listen, credentials)
        if self._options.uds is not None:
            yield Address(f"unix:{self._options.uds}", mode=self._options.uds_mode)


def _credentials(files: TlsFiles) -> Credentials:
    """Raises AddressError if a file cannot be read."""
    try:
        authority = files.client_ca.read_bytes() if files.client_ca is not None else None
        return Credentials(files.key.read_bytes(), files.cert.read_bytes(), authority)
    except OSError as error:
        raise AddressError(f"cannot read the TLS files: {error}") from error
