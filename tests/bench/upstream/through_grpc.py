"""Upstream's workloads through a real service: applied over gRPC, decided, committed durably, told to a watcher.

The rate counts pods from the first Apply until the last unit's decision has reached a watcher of decisions, which is told
of it once it is durable. A workload that takes too long is cut off, and the rate is that of what was bound by then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from grpc.aio import UnaryStreamCall

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.object_pb2 import Object
from tests.bench.place import POSTGRESQL, SQLITE, Place
from tests.bench.row import Measured, Row
from tests.bench.served import CALL_SECONDS, WITH_RECEIVER, Measuring, Served, in_loop, served
from tests.bench.upstream.objects import node_objects, root_of, running_objects, unit_objects
from tests.bench.upstream.workload import Workload
from tests.bench.upstream.workloads import WORKLOADS

Decisions: TypeAlias = "UnaryStreamCall[spb.WatchDecisionsRequest, spb.WatchDecisionsResponse]"
IN_WORK = 32
IN_WORK_WITH_RECEIVER = 64
SAMPLE = 50
MOST_SECONDS = 60.0
HUNDRED = 100


@dataclass(frozen=True)
class Run:
    """Pods that were bound, and what it took."""

    pods: int
    seconds: float
    cpu_seconds: float

    @property
    def pods_a_second(self) -> float:
        return self.pods / self.seconds


@dataclass(frozen=True)
class Way:
    """How a workload is given to which service: `in_work` is how many calls are at most."""

    name: str
    database: str = SQLITE
    units_an_apply: int = 1
    in_work: int = IN_WORK
    arguments: tuple[str, ...] = ()


ONE_BY_ONE = Way("sqlite")
BY_HUNDREDS = Way("sqlite-by-hundreds", units_an_apply=HUNDRED)
RECEIVED = Way("sqlite-with-receiver", in_work=IN_WORK_WITH_RECEIVER, arguments=WITH_RECEIVER)
ON_POSTGRESQL = Way("postgresql", POSTGRESQL)


async def run(service: Served, workload: Workload, way: Way) -> Run:
    """Apply all units and wait until the last is bound."""
    await service.apply(node_objects(workload))
    await service.apply(running_objects(workload))
    requests = list(requests_of(service, workload, way.units_an_apply))
    awaited = {root_of(workload, number) for number in range(workload.units)}
    watching = await watched(service)
    before, started = service.cpu_seconds(), time.perf_counter()
    last = asyncio.create_task(all_told(watching, awaited))
    try:
        async with asyncio.timeout(MOST_SECONDS):
            await applied(service, requests, way.in_work)
            await last
    except TimeoutError:
        last.cancel()
    finally:
        watching.cancel()
    seconds = time.perf_counter() - started
    bound = (workload.units - len(awaited)) * workload.pods_a_unit
    return Run(bound, seconds, service.cpu_seconds() - before)


def requests_of(service: Served, workload: Workload, units_an_apply: int) -> Iterator[pb.ApplyRequest]:
    """Units in their order, so many in each call."""
    for start in range(0, workload.units, units_an_apply):
        numbers = range(start, min(start + units_an_apply, workload.units))
        objects: list[Object] = [each for number in numbers for each in unit_objects(workload, number)]
        yield service.apply_request(objects)


async def watched(service: Served) -> Decisions:
    """A watch that has begun: what is decided from now on reaches it."""
    revision = (
        await service.objects.List(pb.ListRequest(cluster=service.cluster, kind="Node", page_size=1))
    ).revision
    codes = [DecisionCode.DECISION_CODE_SCHEDULED]
    request = spb.WatchDecisionsRequest(cluster=service.cluster, from_revision=revision, codes=codes)
    return service.scheduler.WatchDecisions(request)


async def all_told(watching: Decisions, awaited: set[tuple[str, str]]) -> None:
    """Return once each unit was said to be scheduled; takes them out of the set."""
    async for message in watching:
        awaited.difference_update((each.unit.kind, each.unit.name) for each in message.decisions)
        if not awaited:
            return


async def applied(service: Served, requests: Sequence[pb.ApplyRequest], in_work: int) -> None:
    """All of the calls, in their order, up to so many in work."""
    waiting = iter(requests)

    async def client() -> None:
        for request in waiting:
            await service.objects.Apply(request, timeout=CALL_SECONDS)

    await asyncio.gather(*(client() for _ in range(in_work)))


async def single_pods_a_second(service: Served) -> float:
    """Pods by themselves, each applied once the one before is bound, on nodes of their own."""
    plain = Workload("", nodes=10, units=SAMPLE, groups=0)
    await service.apply(node_objects(plain))
    started = time.perf_counter()
    for number in range(SAMPLE):
        await service.apply(unit_objects(plain, number))
        await service.until_scheduled(f"pod-{number}", "Pod")
    return SAMPLE / (time.perf_counter() - started)


def serving(workload: Workload, way: Way) -> Measuring:
    async def measure(place: Place) -> Measured:
        async with served(place, way.database, way.arguments) as service:
            plain = await single_pods_a_second(service.on("plain"))
            done = await run(service, workload, way)
        return Measured(done.pods_a_second, done.cpu_seconds, plain)

    return measure


def rows_of(workload: Workload) -> Iterator[Row]:
    targets = workload.targets

    def row(way: Way, target: float | None) -> Row:
        measure = in_loop(serving(workload, way))
        name = f"upstream/{workload.name}/{way.name}"
        return Row(name, "pods/s", measure, "pods one after the other", target)

    yield row(ONE_BY_ONE, targets.served)
    if workload.is_large or workload.victims is not None:
        yield row(ON_POSTGRESQL, targets.served_on_postgresql)
    else:
        yield row(RECEIVED, targets.served)
        yield row(BY_HUNDREDS, targets.served_by_hundreds)


ROWS = tuple(row for workload in WORKLOADS for row in rows_of(workload))
