"""The whole way through a real service: from Apply to bound and durable, over gRPC.

A gang of 10 000 pods on 5 000 nodes, as full pods and as one template with names, and gangs of 8 on 1 000 nodes from one
client and from 64. Plain forms send an object a call, or come from one client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from grpc import aio

from muster.v1.object_pb2 import Object
from tests.bench.place import POSTGRESQL, SQLITE, Place
from tests.bench.row import Measured, Row
from tests.bench.served import OPTIONS, WITH_RECEIVER, Measuring, Served, batch, in_loop, nodes, served
from tests.bench.stopwatch import percentile
from tests.endtoend.service import gang

ROUNDS = 4
PODS = 10_000
SAMPLE_PODS = 200
SAMPLE_GANGS = 30
SECONDS = 5.0
CLIENTS = 64


async def object_by_object(service: Served, objects: Sequence[Object], name: str) -> float:
    """Seconds until a gang is scheduled that comes one object a call."""
    started = time.perf_counter()
    for each in objects:
        await service.apply([each])
    await service.until_scheduled(name)
    return time.perf_counter() - started


def big_gang(make: Callable[[str, int], list[Object]], database: str) -> Measuring:
    """One gang on empty nodes, in a cluster of its own each time; the first one, which warms up, is not counted."""

    async def measure(place: Place) -> Measured:
        async with served(place, database) as service:
            walls, cpus = [], []
            for turn in range(ROUNDS + 1):
                here = service.on(f"turn-{turn}")
                await here.apply(nodes(5_000))
                request = here.apply_request(make("gang", PODS))
                before = service.cpu_seconds()
                walls.append(await here.schedule(request, "gang") * 1e3)
                cpus.append(service.cpu_seconds() - before)
            plain = await object_by_object(service.on("turn-0"), gang("plain", SAMPLE_PODS), "plain")
        return Measured(min(walls[1:]), min(cpus[1:]), plain * 1e3 * PODS / SAMPLE_PODS)

    return measure


@dataclass(frozen=True)
class Stream:
    """Seconds that each gang of a stream took, of all clients; and what the whole took."""

    times: tuple[float, ...]
    wall: float
    cpu_seconds: float

    def percentile_ms(self, share: float) -> float:
        return percentile(self.times, share) * 1e3

    @property
    def gangs_a_second(self) -> float:
        return len(self.times) / self.wall


async def small_gangs(service: Served, clients: int, seconds: float = SECONDS) -> Stream:
    """Clients, each on a connection of its own, that give one gang of 8 after the other and wait until it is scheduled."""
    here = service.on(f"small-{clients}")
    await here.apply(nodes(1_000, cpu="900"))
    times: list[float] = []

    async def client(number: int) -> None:
        async with aio.insecure_channel(service.address, options=[*OPTIONS, ("n", number)]) as channel:
            mine, count = Served(service.address, service.pid, channel, here.cluster), 0
            while time.perf_counter() < end:
                name = f"gang-{number}-{count}"
                times.append(await mine.schedule(mine.apply_request(gang(name, 8)), name))
                count += 1

    end = time.perf_counter() + seconds
    before, started = service.cpu_seconds(), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    wall = time.perf_counter() - started
    return Stream(tuple(times), wall, service.cpu_seconds() - before)


def latency(share: float, database: str) -> Measuring:
    """Milliseconds of a gang of 8 from one client."""

    async def measure(place: Place) -> Measured:
        async with served(place, database) as service:
            await small_gangs(service.on("warm"), 2, 1.0)
            stream = await small_gangs(service, 1)
            single = [
                await object_by_object(service.on("small-1"), gang(f"plain-{each}", 8), f"plain-{each}")
                for each in range(SAMPLE_GANGS)
            ]
        cpu = stream.cpu_seconds / len(stream.times)
        return Measured(stream.percentile_ms(share), cpu, percentile(single, share) * 1e3)

    return measure


def throughput(database: str, arguments: Sequence[str] = ()) -> Measuring:
    """Gangs of 8 a second from 64 clients, beside one client."""

    async def measure(place: Place) -> Measured:
        async with served(place, database, arguments) as service:
            await small_gangs(service, 2, 1.0)
            alone = await small_gangs(service, 1, 2.0)
            many = await small_gangs(service, CLIENTS)
        return Measured(many.gangs_a_second, many.cpu_seconds, alone.gangs_a_second)

    return measure


def rows_on(database: str, full_pods_ms: float, batch_ms: float) -> Iterator[Row]:
    start, each = f"end-to-end/{database}", f"an object a call, from {SAMPLE_PODS} pods"
    full, by_name = in_loop(big_gang(gang, database)), in_loop(big_gang(batch, database))
    yield Row(f"{start}/gang-of-10000", "ms", full, each, full_pods_ms, 1_000)
    yield Row(f"{start}/gang-of-10000-as-batch", "ms", by_name, each, batch_ms, 500)
    single = "an object a call"
    yield Row(f"{start}/gang-of-8-p50", "ms", in_loop(latency(0.5, database)), single, 2.5, 10)
    yield Row(f"{start}/gang-of-8-p99", "ms", in_loop(latency(0.99, database)), single, 6, 50)
    many, plain = f"{start}/gangs-of-8-from-64-clients", "one client"
    yield Row(many, "gangs/s", in_loop(throughput(database)), plain, 1_000, 200)
    received = in_loop(throughput(database, WITH_RECEIVER))
    yield Row(f"{many}-with-receiver", "gangs/s", received, plain, 1_000, 200)


ROWS = (*rows_on(SQLITE, 150, 100), *rows_on(POSTGRESQL, 250, 180))
