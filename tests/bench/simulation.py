"""What simulations on a large live cluster take, and what readers and writers notice of them.

The cluster has 5 000 nodes and 100 000 running pods. The first simulation is the one that makes the copy. What a tree
of 64 pods takes is set beside placing it for real; what 20 simulations at once cost those who apply, and a long one
those who read, beside doing the same alone.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from statistics import median

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import CALL_SECONDS, Served, in_loop, served
from tests.bench.stopwatch import percentile
from tests.endtoend.load import single
from tests.endtoend.service import gang, member, node

NODES, RUNNING, RACK = 5_000, 100_000, 25
AT_ONCE = 20
APPLIES = 200
LATER = 10
UNITS_OF_LONG_ONE = 1_000
READ_SECONDS = 6.0
PAUSE_SECONDS = 0.002


def racked_nodes(count: int) -> Iterator[Object]:
    for number in range(count):
        made = node(f"n{number:05}", "64")
        made.node.metadata.labels.update({"rack": f"r{number // RACK}", "block": f"b{number // (8 * RACK)}"})
        yield made


def running(count: int, on: int) -> Iterator[Object]:
    for number in range(count):
        pod = single(f"p{number:06}")
        pod.pod.spec.node_name = f"n{number % on:05}"
        yield pod


def tree(name: str, groups: int = 4, pods: int = 16, cpu: str = "1") -> list[Object]:
    """Gangs of pods that are alike, each in a rack, all in a block."""
    root = Object()
    root.composite_pod_group.metadata.name = name
    spec = root.composite_pod_group.spec
    spec.workload_ref.workload_name, spec.workload_ref.template_name = "w", "root"
    spec.scheduling_policy.gang.min_group_count = groups
    spec.scheduling_constraints.topology.add(key="block")
    made = [root]
    for number in range(groups):
        group = Object()
        group.pod_group.metadata.name = f"{name}-{number}"
        leaf = group.pod_group.spec
        leaf.parent_composite_pod_group_name = name
        leaf.workload_ref.workload_name, leaf.workload_ref.template_name = "w", "leaf"
        leaf.scheduling_policy.gang.min_count = pods
        leaf.scheduling_constraints.topology.add(key="rack")
        made.append(group)
        for index in range(pods):
            pod = member(f"{name}-{number}-{index}", f"{name}-{number}")
            pod.pod.spec.containers[0].resources.requests["cpu"] = cpu
            made.append(pod)
    return made


@asynccontextmanager
async def filled(place: Place, count: int = NODES, pods: int = RUNNING) -> AsyncIterator[Served]:
    async with served(place) as service:
        await service.apply([*racked_nodes(count), *running(pods, count)])
        yield service


async def simulate(service: Served, name: str) -> float:
    """Seconds of one simulation of an added tree, which must be scheduled."""
    units = [ObjectRef(kind="CompositePodGroup", name=name)]
    overlay = spb.Overlay(objects=tree(name))
    request = spb.SimulateRequest(cluster=service.cluster, units=units, overlay=overlay)
    started = time.perf_counter()
    answer = await service.scheduler.Simulate(request, timeout=CALL_SECONDS)
    took = time.perf_counter() - started
    assert answer.totals.scheduled_units == 1, answer.decisions[0].message
    return took


async def apply_gated(service: Served, name: str) -> float:
    """Seconds of the Apply of one gated pod."""
    pod = single(name)
    pod.pod.spec.scheduling_gates.add(name="wait")
    started = time.perf_counter()
    await service.apply([pod])
    return time.perf_counter() - started


async def first(place: Place) -> Measured:
    async with filled(place) as service:
        before = service.cpu_seconds()
        took = await simulate(service, "first")
        cpu = service.cpu_seconds() - before
        return Measured(took * 1e3, cpu, await for_real(service) * 1e3)


async def later(place: Place) -> Measured:
    async with filled(place) as service:
        await simulate(service, "first")
        before = service.cpu_seconds()
        took = median([await simulate(service, f"later-{number}") for number in range(LATER)])
        cpu = (service.cpu_seconds() - before) / LATER
        return Measured(took * 1e3, cpu, await for_real(service) * 1e3)


async def for_real(service: Served) -> float:
    """Seconds until such a tree is bound."""
    started = time.perf_counter()
    await service.apply(tree("real"))
    await service.until_scheduled("real", "CompositePodGroup")
    return time.perf_counter() - started


async def applies_beside(place: Place) -> Measured:
    """Milliseconds of an Apply, in the median, while 20 simulations are always in work."""
    async with filled(place) as service:
        alone = median([await apply_gated(service, f"alone-{number}") for number in range(APPLIES)])
        before = service.cpu_seconds()
        async with always(AT_ONCE, lambda name: simulate(service, name)):
            beside = median([await apply_gated(service, f"beside-{number}") for number in range(APPLIES)])
        cpu = service.cpu_seconds() - before
    return Measured(beside * 1e3, cpu, alone * 1e3)


@asynccontextmanager
async def always(number: int, act: Callable[[str], Awaitable[object]]) -> AsyncIterator[None]:
    """So many of an act are in work, one after the other, until the block ends; it begins once one has ended."""
    is_going = asyncio.Event()

    async def go_on(place: int) -> None:
        for turn in itertools.count():
            await act(f"always-{place}-{turn}")
            is_going.set()

    going = [asyncio.create_task(go_on(place)) for place in range(number)]
    try:
        await is_going.wait()
        yield
    finally:
        for each in going:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each


async def reads_beside(place: Place) -> Measured:
    """Milliseconds that 99 of 100 reads take at most while simulations of a second and more run one after the other."""
    async with served(place) as service:
        await service.apply(list(racked_nodes(NODES)))
        waiting = [gang(f"gang-{number}", 4) for number in range(UNITS_OF_LONG_ONE)]
        units = [ObjectRef(kind="PodGroup", name=objects[0].pod_group.metadata.name) for objects in waiting]
        overlay = spb.Overlay(objects=[each for objects in waiting for each in objects])
        request = spb.SimulateRequest(cluster=service.cluster, units=units, overlay=overlay)

        async def compute(_: str) -> None:
            await service.scheduler.Simulate(request, timeout=CALL_SECONDS)

        alone = await reads(service)
        before = service.cpu_seconds()
        async with always(1, compute):
            beside = await reads(service)
        cpu = service.cpu_seconds() - before
    return Measured(percentile(beside, 0.99) * 1e3, cpu, percentile(alone, 0.99) * 1e3)


async def reads(service: Served) -> list[float]:
    """Seconds of each Get, for some time."""
    request = pb.GetRequest(cluster=service.cluster, ref=ObjectRef(kind="Node", name="n00000"))
    took: list[float] = []
    end = time.perf_counter() + READ_SECONDS
    while (started := time.perf_counter()) < end:
        await service.objects.Get(request)
        took.append(time.perf_counter() - started)
        await asyncio.sleep(PAUSE_SECONDS)
    return took


ROWS = (
    Row("simulation/first-on-100000-pods", "ms", in_loop(first), "placing the tree for real"),
    Row("simulation/later-on-100000-pods", "ms", in_loop(later), "placing the tree for real", 300, 3_000),
    Row("simulation/apply-beside-20", "ms", in_loop(applies_beside), "an Apply alone"),
    Row("reads/p99-beside-a-computation", "ms", in_loop(reads_beside), "reads alone", 8, 50),
)
