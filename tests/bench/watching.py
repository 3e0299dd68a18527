"""How long one watcher waits for 10 000 events that are in the log, beside reading the objects one call each."""

from __future__ import annotations

import time

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import CALL_SECONDS, Served, batch, in_loop, served

EVENTS = 10_000
ROUNDS = 10
SAMPLE = 200


async def watched(service: Served, number: int) -> float:
    """Seconds until a new watcher of all pods has so many events."""
    request = pb.WatchRequest(cluster=service.cluster, kinds=["Pod"], from_revision=0)
    started, seen = time.perf_counter(), 0
    watch = service.objects.Watch(request, timeout=CALL_SECONDS)
    async for message in watch:
        seen += len(message.events)
        if seen >= number:
            break
    took = time.perf_counter() - started
    watch.cancel()
    return took


async def one_watcher(place: Place) -> Measured:
    """Milliseconds. There are no nodes, so that pods come and nothing else happens to them."""
    async with served(place) as service:
        group, *pods = batch("gang", EVENTS)
        group.pod_group.spec.scheduling_policy.gang.min_count = EVENTS + 1
        await service.apply([group, *pods])
        before = service.cpu_seconds()
        took = [await watched(service, EVENTS) for _ in range(ROUNDS)]
        cpu = (service.cpu_seconds() - before) / ROUNDS
        started = time.perf_counter()
        for number in range(SAMPLE):
            ref = ObjectRef(kind="Pod", name=f"gang-{number}")
            await service.objects.Get(pb.GetRequest(cluster=service.cluster, ref=ref))
        plain = (time.perf_counter() - started) * EVENTS / SAMPLE
    return Measured(min(took) * 1e3, cpu, plain * 1e3)


ROWS = (
    Row("watch/10000-events", "ms", in_loop(one_watcher), f"a Get for each object, from {SAMPLE}", 25, 500),
)
