"""From a process to a service and back: start, the line that says so, signals, draining, the exit status."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

from muster.app.collector import Collector
from muster.app.engine_start import started_engine
from muster.app.settings import Settings
from muster.app.wiring import MakeEngine, running_service
from muster.engine.ports import FencedError, ForeignStoreError, StoreUnavailableError
from muster.rpc.addresses import AddressError
from muster.rpc.auth import TokenFileError
from muster.rpc.event_loop import new_event_loop
from muster.telemetry.logs import set_up_logs

SWITCH_SECONDS = 0.001
READY = "serving on"
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# What keeps a service from starting, and is the operator's to mend: one line, no traceback.
START_FAULTS = (AddressError, TokenFileError, ForeignStoreError, StoreUnavailableError, FencedError, OSError)

_log = logging.getLogger(__name__)


def serve(settings: Settings, make_engine: MakeEngine = started_engine) -> int:
    """Serve until SIGTERM or SIGINT and return the exit status: 0, or 1 if the service could not start.

    Prints `serving on ADDRESS` on stdout, a line an address, once calls are answered.
    """
    set_up_logs(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(settings, make_engine))


async def _serve(settings: Settings, make_engine: MakeEngine) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopping.set)
    started = False
    try:
        async with running_service(settings, make_engine) as service:
            started = True
            collector = Collector()
            collector.begin()
            collecting = asyncio.create_task(collector.run(), name="collector")
            # The loop and the writer's thread take turns: neither waits long for the other in the midst of its work.
            sys.setswitchinterval(SWITCH_SECONDS)
            if service.metrics_address:
                _log.info("metrics", extra={"metrics_address": service.metrics_address})
            for address in service.addresses:
                print(READY, address, flush=True)  # noqa: T201
            await stopping.wait()
            collecting.cancel()
            _log.info("draining", extra={"seconds": settings.drain_seconds})
    except START_FAULTS as error:
        if started:
            raise
        print(f"muster: {' '.join(str(error).split())}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
    return 0
