"""What traces cost a service in CPU time: exported to a collector, and switched on but sampled out.

Three services serve the same stream in turns: without tracing, with it, and with a sampler that declines everything.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache

from tests.bench.interleaved import GangStream, in_turns, measured_cpu_seconds, more_percent
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import nodes, served
from tests.endtoend.collector import running_collector

TURNS, GANGS_A_TURN = 60, 100
NODES = 200
SAMPLED_OUT = {"OTEL_TRACES_SAMPLER": "always_off"}
NO_METRICS = {"OTEL_METRICS_EXPORTER": "none"}


async def turns(place: Place, number: int, gangs: int) -> tuple[GangStream, ...]:
    """Streams on a service without tracing, with it, and with all of it sampled out."""
    with running_collector() as collector:
        traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, **NO_METRICS}
        async with (
            served(place) as silent,
            served(place, environment=traced) as telling,
            served(place, environment=traced | SAMPLED_OUT) as sampling,
        ):
            streams = tuple(map(GangStream, (silent, telling, sampling)))
            for stream in streams:
                await stream.service.apply(nodes(NODES))
            await in_turns(streams, number, gangs)
        assert collector.spans
    return streams


@lru_cache
def costs(place: Place) -> tuple[Measured, Measured]:
    """Percent more with tracing, and sampled out; measured once for both."""
    silent, *others = asyncio.run(turns(place, TURNS, GANGS_A_TURN))
    telling, sampling = (
        Measured(more_percent(each, silent), measured_cpu_seconds(each, GANGS_A_TURN)) for each in others
    )
    return telling, sampling


ROWS = (
    Row("tracing/on", "%", lambda place: costs(place)[0], "no tracing", 5, 20),
    Row("tracing/sampled-out", "%", lambda place: costs(place)[1], "no tracing", 1, 20),
)
