"""The composition root: the only place that knows store, engine, telemetry and RPC at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

from muster.app.settings import Settings, is_loopback
from muster.console.application import PREFIX, closed_console, console
from muster.engine.api import SchedulingEngine
from muster.engine.telemetry_port import EngineTelemetry
from muster.rpc.auth import read_tokens
from muster.rpc.cluster_servicer import ServerIdentity
from muster.rpc.server import RpcServer, ServingOptions, TlsFiles
from muster.telemetry.metrics import Metrics
from muster.telemetry.metrics_server import MetricsServer
from muster.telemetry.service import EngineListener, RpcListener
from muster.telemetry.tracing import otlp_is_on, tracing_from_environment

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
MakeEngine = Callable[[Settings, EngineTelemetry], Awaitable[SchedulingEngine]]


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that answers. `addresses` as clients use them; `metrics_address` "" without metrics."""

    addresses: tuple[str, ...]
    metrics_address: str


@asynccontextmanager
async def running_service(settings: Settings, make_engine: MakeEngine) -> AsyncIterator[RunningService]:
    """Starts all parts, and stops them in the order in which nothing is lost: calls, engine, telemetry.

    Raises what a part raises that cannot start: AddressError, TokenFileError, ForeignStoreError, OSError, ...
    """
    options = serving_options(settings)
    metrics = Metrics()
    tracing = tracing_from_environment(version("muster"))
    is_well, servers = [True], list[RpcServer]()
    with ExitStack() as outer:
        outer.callback(tracing.close)
        if otlp_is_on("METRICS"):
            # Only then, since it loads the half of the SDK that nothing else needs.
            from muster.telemetry.metrics_export import exported_metrics  # noqa: PLC0415

            outer.enter_context(exported_metrics(metrics.registry, version("muster")))
        server = None
        if settings.metrics:
            server = MetricsServer(
                settings.metrics,
                metrics.registry,
                lambda: is_well[0] and all(each.is_serving for each in servers),
            )
            outer.enter_context(server)
        engine = await make_engine(settings, EngineListener(metrics, tracing))
        rpc = RpcServer(engine, options, RpcListener(metrics, tracing))
        try:
            await rpc.start()
            servers.append(rpc)
            if server is not None:
                _mount_console(server, settings, rpc)
            yield RunningService(tuple(rpc.addresses), server.address if server is not None else "")
        finally:
            is_well[0] = False
            await rpc.drain(settings.drain_seconds)
            await engine.drain()


def _mount_console(server: MetricsServer, settings: Settings, rpc: RpcServer) -> None:
    why = why_no_console(settings)
    # With tokens nobody reads anything by a borrowed name.
    hosts = LOOPBACK_NAMES if is_loopback(settings.metrics) and settings.token_file is None else ()
    loop = asyncio.get_running_loop()
    server.mount(PREFIX, closed_console(why) if why else console(rpc.reading, loop, hosts))


def why_no_console(settings: Settings) -> str:
    """What speaks against a console on the metrics address, which has no TLS; "" if nothing does."""
    if not settings.console:
        return "the setting `console` is off"
    if not is_loopback(settings.metrics) and not settings.insecure:
        return (
            f"{settings.metrics} is beyond loopback and without TLS: serve metrics on a loopback address, "
            "or set `insecure`"
        )
    if settings.client_ca is not None and settings.token_file is None:
        return "callers of the API show certificates, which cannot be asked for here: set a `token_file`"
    return ""


def serving_options(settings: Settings) -> ServingOptions:
    """What the RPC server needs of the settings. Raises TokenFileError."""
    tls = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        tls = TlsFiles(settings.tls_cert, settings.tls_key, settings.client_ca)
    return ServingOptions(
        listen=settings.listen,
        uds=settings.uds,
        uds_mode=int(settings.uds_mode, 8),
        tls=tls,
        tokens=read_tokens(settings.token_file) if settings.token_file is not None else None,
        reflection=settings.reflection,
        receiver=settings.receiver,
        identity=ServerIdentity(
            version=version("muster"),
            clients_evict=settings.eviction == "client",
            replica=settings.replica,
        ),
    )
