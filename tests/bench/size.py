"""How large a service is with 5 000 nodes and 100 000 bound pods, and how long it takes to start with them.

Memory is that of the service and its workers, pages that they share counted once, after a new start; the plain form is a
service that holds nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from muster.v1.object_pb2 import Object
from tests.bench.place import DATABASES, Place
from tests.bench.row import Measured, Row
from tests.bench.served import Served, batch, nodes, served_on
from tests.endtoend.service import node

NODES, GANGS, PODS_A_GANG = 5_000, 10, 10_000
DECIDED_BY_A_WORKER = 1_000


@dataclass(frozen=True)
class Started:
    """What a service takes once it answers: seconds until then, MiB, CPU seconds of the start."""

    seconds: float
    mib: float
    cpu_seconds: float


@asynccontextmanager
async def starting(place: Place, store: str) -> AsyncIterator[tuple[Served, Started]]:
    """A service, and what its start took: until it has answered a question about what it holds."""
    begun = time.perf_counter()
    async with served_on(place, store) as service:
        await service.apply([probe()])
        await service.until_scheduled("probe", "Pod")
        seconds = time.perf_counter() - begun
        yield service, Started(seconds, service.pss_mib(), service.cpu_seconds())


def probe() -> Object:
    """A pod that is bound by the first start and is there in every later one."""
    [_, made] = batch("probe", 1)
    pod = Object(pod=made.pod_batch.template)
    pod.pod.metadata.name = "probe"
    pod.pod.spec.ClearField("scheduling_group")
    return pod


@lru_cache
def starts(place: Place, database: str) -> tuple[Started, Started]:
    """Of a service that holds one node and a pod, and of one that holds them all."""
    return asyncio.run(_starts(place, database))


async def _starts(place: Place, database: str) -> tuple[Started, Started]:
    with place.store(database) as store:
        async with served_on(place, store) as service:
            await service.apply([node("node-probe")])
        async with starting(place, store) as (service, empty):
            await service.apply(nodes(NODES, cpu="32"))
            for number in range(GANGS):
                name = f"gang-{number}"
                await service.schedule(service.apply_request(batch(name, PODS_A_GANG)), name)
        async with starting(place, store) as (service, full):
            # A worker has a copy of the arrays once it has decided something.
            await service.schedule(service.apply_request(batch("last", DECIDED_BY_A_WORKER)), "last")
            return empty, replace(full, mib=service.pss_mib())


def memory(place: Place, database: str) -> Measured:
    empty, full = starts(place, database)
    return Measured(full.mib, full.cpu_seconds, empty.mib)


def start(place: Place, database: str) -> Measured:
    empty, full = starts(place, database)
    return Measured(full.seconds, full.cpu_seconds, empty.seconds)


ROWS = tuple(
    row
    for database in DATABASES
    for row in (
        Row(
            f"size/{database}/memory",
            "MiB",
            partial(memory, database=database),
            "a service that holds nothing",
            400,
        ),
        Row(
            f"size/{database}/start",
            "s",
            partial(start, database=database),
            "a service that holds nothing",
            3,
        ),
    )
)
