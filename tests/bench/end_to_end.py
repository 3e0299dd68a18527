"""The whole way through a real service: from Apply to bound and durable, over gRPC, in wall and CPU time.

`python tests/bench/end_to_end.py [--store URL]` prints a gang of 10 000 pods on 5 000 nodes (full pods, and as a batch)
and 64 clients with gangs of 8 on 1 000 nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from grpc import aio

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "clients"), str(ROOT / "service")]

from muster.cli.server_process import RunningServer, serving  # noqa: E402
from muster.v1 import cluster_service_pb2 as pb  # noqa: E402
from muster.v1 import scheduler_service_pb2 as spb  # noqa: E402
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub  # noqa: E402
from muster.v1.decision_pb2 import DecisionCode  # noqa: E402
from muster.v1.meta_pb2 import ObjectRef  # noqa: E402
from muster.v1.object_pb2 import Object  # noqa: E402
from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceStub  # noqa: E402
from tests.endtoend.service import gang, node  # noqa: E402

OPTIONS = [("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 64 << 20)]
ROUNDS = 3
CLIENTS = 64
SECONDS = 5.0


def batch(name: str, size: int) -> list[Object]:
    """The same gang as one template and names."""
    group, first, *_ = gang(name, 1)
    group.pod_group.spec.scheduling_policy.gang.min_count = size
    made = Object()
    made.pod_batch.template.CopyFrom(first.pod)
    made.pod_batch.template.metadata.name = ""
    made.pod_batch.names.extend(f"{name}-{i}" for i in range(size))
    return [group, made]


def cpu_seconds(server: RunningServer) -> float:
    """User and system time of the server's process and its workers."""
    own = server.process.pid
    children = Path(f"/proc/{own}/task/{own}/children").read_text(encoding="utf-8").split()
    return sum(_cpu_ticks(pid) for pid in (str(own), *children)) / os.sysconf("SC_CLK_TCK")


def _cpu_ticks(pid: str) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


async def scheduled(channel: aio.Channel, cluster: str, objects: list[Object], name: str) -> float:
    """Seconds from Apply to the answer that the gang is scheduled, which comes once it is durable."""
    started = time.perf_counter()
    await ClusterServiceStub(channel).Apply(pb.ApplyRequest(cluster=cluster, objects=objects))
    request = spb.ScheduleRequest(cluster=cluster, unit=ObjectRef(kind="PodGroup", name=name))
    request.wait.FromSeconds(60)
    answer = await SchedulerServiceStub(channel).Schedule(request)
    if answer.decision.code != DecisionCode.DECISION_CODE_SCHEDULED:
        raise RuntimeError(answer)
    return time.perf_counter() - started


async def big_gangs(server: RunningServer) -> None:
    """One gang of 10 000 on 5 000 empty nodes, in a cluster of its own each time."""
    async with aio.insecure_channel(server.address, options=OPTIONS) as channel:
        for label, make in (("10 000 full pods", gang), ("10 000 pods as a batch", batch)):
            walls, cpus = [], []
            for turn in range(ROUNDS):
                cluster = f"big-{make.__name__}-{turn}"
                nodes = [node(f"node-{i}") for i in range(5_000)]
                await ClusterServiceStub(channel).Apply(pb.ApplyRequest(cluster=cluster, objects=nodes))
                objects = make("gang", 10_000)
                before = cpu_seconds(server)
                walls.append(await scheduled(channel, cluster, objects, "gang") * 1e3)
                cpus.append((cpu_seconds(server) - before) * 1e3)
            print(  # noqa: T201 - its purpose
                f"{label:<28} best {min(walls):7.0f} ms, median {statistics.median(walls):7.0f} ms, "
                f"server CPU {min(cpus):7.0f} ms"
            )


async def small_gangs(server: RunningServer, clients: int) -> None:
    """Clients that each give one gang of 8 after the other and wait until it is scheduled."""
    cluster = f"small-{clients}"
    async with aio.insecure_channel(server.address, options=OPTIONS) as first:
        nodes = [node(f"node-{i}", cpu="500") for i in range(1_000)]
        await ClusterServiceStub(first).Apply(pb.ApplyRequest(cluster=cluster, objects=nodes))
    times: list[float] = []
    end = time.perf_counter() + SECONDS

    async def one(number: int) -> None:
        async with aio.insecure_channel(server.address, options=[*OPTIONS, ("n", number)]) as channel:
            count = 0
            while time.perf_counter() < end:
                name = f"gang-{number}-{count}"
                times.append(await scheduled(channel, cluster, gang(name, 8), name) * 1e3)
                count += 1

    before, started = cpu_seconds(server), time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    wall = time.perf_counter() - started
    times.sort()
    print(  # noqa: T201 - its purpose
        f"{clients:>2} clients, gangs of 8        {len(times) / wall:7.0f} gangs/s, p50 {times[len(times) // 2]:6.1f} ms, "
        f"p99 {times[int(len(times) * 0.99)]:6.1f} ms, server CPU {(cpu_seconds(server) - before) / wall:.2f} cores"
    )


async def main() -> None:
    """Run all against one service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="")
    with tempfile.TemporaryDirectory() as folder:
        store = parser.parse_args().store or f"sqlite:///{folder}/muster.db"
        arguments = ["--listen", "127.0.0.1:0", "--store", store]
        async with serving(arguments, Path(folder) / "log") as server:
            await small_gangs(server, 1)
            await small_gangs(server, CLIENTS)
            await big_gangs(server)


if __name__ == "__main__":
    asyncio.run(main())
