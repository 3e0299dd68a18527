"""Pods that come and go at a steady rate, half of them in gangs, half alone with labels of their own; and how long calls take."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.bench.served import CALL_SECONDS, Served, batch
from tests.endtoend.service import member

PODS_A_SECOND = 500
CALLS_A_SECOND = 10
GANG = 25
STAY_SECONDS = 20


@dataclass
class Churn:
    """apply_seconds: of each Apply. late: calls that began more than a second after their time."""

    service: Served
    apply_seconds: list[float] = field(default_factory=list)
    late: int = 0
    _living: deque[pb.DeleteRequest] = field(default_factory=deque)

    async def run(self, seconds: float) -> None:
        """Give and take until the time is over; the calls of a moment do not wait for those of another."""
        started = time.perf_counter()
        async with asyncio.TaskGroup() as calls:
            for number in range(int(seconds * CALLS_A_SECOND)):
                begin = started + number / CALLS_A_SECOND
                await asyncio.sleep(max(0.0, begin - time.perf_counter()))
                self.late += time.perf_counter() - begin > 1
                calls.create_task(self._turn(number))

    async def _turn(self, number: int) -> None:
        """Some pods come, as many that have been there for their time go."""
        objects = arriving(number)
        apply = self.service.apply_request(objects)
        began = time.perf_counter()
        await self.service.objects.Apply(apply, timeout=CALL_SECONDS)
        self.apply_seconds.append(time.perf_counter() - began)
        self._living.append(leaving(self.service.cluster, objects))
        if len(self._living) > STAY_SECONDS * CALLS_A_SECOND:
            await self.service.objects.Delete(self._living.popleft(), timeout=CALL_SECONDS)


def arriving(number: int) -> list[Object]:
    """One call's pods: a gang, and pods without a group whose labels nobody else has."""
    alone = [member(f"alone-{number}-{place}", "") for place in range(PODS_A_SECOND // CALLS_A_SECOND - GANG)]
    for made in alone:
        made.pod.spec.ClearField("scheduling_group")
        made.pod.metadata.labels["own"] = made.pod.metadata.name
    return [*batch(f"gang-{number}", GANG), *alone]


def leaving(cluster: str, objects: list[Object]) -> pb.DeleteRequest:
    """The call that takes away what an Apply gave."""
    request = pb.DeleteRequest(cluster=cluster)
    for made in objects:
        kind = made.WhichOneof("kind")
        if kind == "pod_batch":
            names = [("Pod", name) for name in made.pod_batch.names]
        elif kind == "pod_group":
            names = [("PodGroup", made.pod_group.metadata.name)]
        else:
            names = [("Pod", made.pod.metadata.name)]
        for of_kind, name in names:
            request.refs.add(ref=ObjectRef(kind=of_kind, name=name))
    return request
