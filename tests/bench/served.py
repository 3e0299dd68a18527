"""A service in a process of its own, as benchmarks ask it: what is applied, what it cost in CPU time and memory.

The service and its workers are measured together; a database server beside it is not. Requests are made before anything is
timed, so that what is measured is the service and not who asks.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpc import aio

from muster.cli.server_process import serving
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceStub
from tests.bench.place import SQLITE, Place
from tests.bench.row import Measured
from tests.endtoend.service import gang, node

if TYPE_CHECKING:
    from muster.v1.cluster_service_pb2_grpc import ClusterServiceAsyncStub
    from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceAsyncStub

OPTIONS = [("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 64 << 20)]
LOCAL = ("--listen", "127.0.0.1:0")
WITH_RECEIVER = ("--receiver",)
CALL_SECONDS = 120.0
WAIT_SECONDS = 60
OBJECTS_A_CALL = 10_000
PSS_KIB = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
TICKS = os.sysconf("SC_CLK_TCK")
SERVED_CLUSTER = "bench"


@dataclass(frozen=True)
class Served:
    """A service that answers at `address`, by the process `pid`; `cluster` is the one that its calls are about."""

    address: str
    pid: int
    channel: aio.Channel
    cluster: str = SERVED_CLUSTER

    @cached_property
    def objects(self) -> ClusterServiceAsyncStub:
        return ClusterServiceStub(self.channel)

    @cached_property
    def scheduler(self) -> SchedulerServiceAsyncStub:
        return SchedulerServiceStub(self.channel)

    def on(self, cluster: str) -> Served:
        """The same service, asked about another cluster."""
        return Served(self.address, self.pid, self.channel, cluster)

    def apply_request(self, objects: Sequence[Object]) -> pb.ApplyRequest:
        return pb.ApplyRequest(cluster=self.cluster, objects=objects)

    async def apply(self, objects: Sequence[Object]) -> None:
        """All of them, in as many calls as their number takes."""
        for start in range(0, len(objects), OBJECTS_A_CALL):
            request = self.apply_request(objects[start : start + OBJECTS_A_CALL])
            await self.objects.Apply(request, timeout=CALL_SECONDS)

    async def until_scheduled(self, name: str, kind: str = "PodGroup") -> None:
        """Return once a unit is bound, which is told when it is durable. Raises RuntimeError if it is not."""
        request = spb.ScheduleRequest(cluster=self.cluster, unit=ObjectRef(kind=kind, name=name))
        request.wait.FromSeconds(WAIT_SECONDS)
        answer = await self.scheduler.Schedule(request, timeout=CALL_SECONDS)
        if answer.decision.code != DecisionCode.DECISION_CODE_SCHEDULED:
            raise RuntimeError(answer)

    async def schedule(self, request: pb.ApplyRequest, name: str) -> float:
        """Seconds from an Apply, which waits, to the answer that the unit of that name, alone in it, is scheduled and durable."""
        request.wait.FromSeconds(WAIT_SECONDS)
        started = time.perf_counter()
        answer = await self.objects.Apply(request, timeout=CALL_SECONDS)
        took = time.perf_counter() - started
        told = [(each.unit.name, each.code) for each in answer.decisions]
        if told != [(name, DecisionCode.DECISION_CODE_SCHEDULED)]:
            raise RuntimeError(answer.decisions)
        return took

    def cpu_seconds(self) -> float:
        """User and system time of the service, its workers, and processes that these had and ended, so far."""
        return sum(_ticks(pid) for pid in self.processes()) / TICKS

    def pss_mib(self) -> float:
        """Memory of the service and its workers, pages that they share counted once."""
        return sum(_pss_kib(pid) for pid in self.processes()) / 1024

    def processes(self) -> list[int]:
        """The service's process and all below it."""
        found, unread = [], [self.pid]
        while unread:
            pid = unread.pop()
            found.append(pid)
            for path in Path(f"/proc/{pid}/task").glob("*/children"):
                unread += map(int, path.read_text(encoding="utf-8").split())
        return found


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15]))


def _pss_kib(pid: int) -> int:
    found = PSS_KIB.search(Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


@asynccontextmanager
async def served(
    place: Place,
    database: str = SQLITE,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Served]:
    """A service on an empty store of a kind."""
    with place.store(database) as url:
        async with served_on(place, url, arguments, environment) as service:
            yield service


@asynccontextmanager
async def served_on(
    place: Place, store: str, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> AsyncIterator[Served]:
    """A service on a store that may hold something already."""
    with tempfile.NamedTemporaryFile(dir=place.folder) as log:
        command = [*LOCAL, "--store", store, *arguments]
        async with (
            serving(command, Path(log.name), environment) as server,
            aio.insecure_channel(server.address, options=OPTIONS) as channel,
        ):
            yield Served(server.address, server.process.pid, channel)


Measuring = Callable[[Place], Coroutine[Any, Any, Measured]]


def in_loop(measure: Measuring) -> Callable[[Place], Measured]:
    """A measurement that awaits, as a row wants it."""
    return lambda place: asyncio.run(measure(place))


def nodes(count: int, cpu: str = "16") -> list[Object]:
    return [node(f"node-{number}", cpu) for number in range(count)]


def batch(name: str, size: int) -> list[Object]:
    """A gang as one template and names."""
    group, first, *_ = gang(name, 1)
    group.pod_group.spec.scheduling_policy.gang.min_count = size
    made = Object()
    made.pod_batch.template.CopyFrom(first.pod)
    made.pod_batch.template.metadata.name = ""
    made.pod_batch.names.extend(f"{name}-{index}" for index in range(size))
    return [group, made]
