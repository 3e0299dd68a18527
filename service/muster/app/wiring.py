"""The composition root: the only place that knows store, engine, telemetry and RPC at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

from muster.app.settings import Settings
from muster.engine.api import SchedulingEngine
from muster.engine.telemetry_port import EngineTelemetry
from muster.rpc.auth import read_tokens
from muster.rpc.cluster_servicer import ServerIdentity
from muster.rpc.server import RpcServer, ServingOptions, TlsFiles
from muster.telemetry.metrics import Metrics
from muster.telemetry.metrics_export import exported_metrics
from muster.telemetry.metrics_server import MetricsServer
from muster.telemetry.service import EngineListener, RpcListener
from muster.telemetry.tracing import tracing_from_environment

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
    serving = [True]
    with ExitStack() as outer:
        outer.callback(tracing.close)
        outer.enter_context(exported_metrics(metrics.registry, version("muster")))
        metrics_address = ""
        if settings.metrics:
            server = MetricsServer(settings.metrics, metrics.registry, lambda: serving[0])
            metrics_address = outer.enter_context(server).address
        engine = await make_engine(settings, EngineListener(metrics, tracing))
        rpc = RpcServer(engine, options, RpcListener(metrics, tracing))
        try:
            await rpc.start()
            yield RunningService(tuple(rpc.addresses), metrics_address)
        finally:
            serving[0] = False
            await rpc.drain(settings.drain_seconds)
            await engine.drain()


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
        identity=ServerIdentity(
            version=version("muster"),
            clients_evict=settings.eviction == "client",
            replica=settings.replica,
        ),
    )
