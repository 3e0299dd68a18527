"""What a thousand units that cannot start cost a stream of small gangs that can, in CPU time of the server.

`python tests/bench/hopeless_units.py [--units N] [--turns N]` runs the stream in turns on two servers, one of which has
the hopeless units: pods that are too large for any node, gangs too large for what is free, and pods that no node's
labels please. Each gang of the stream is applied, bound and deleted again, so that room comes and goes all the time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from grpc import aio

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "clients"), str(ROOT / "service")]

from muster.cli.server_process import RunningServer, serving  # noqa: E402
from muster.v1 import cluster_service_pb2 as pb  # noqa: E402
from muster.v1.cluster_service_pb2_grpc import ClusterServiceStub  # noqa: E402
from muster.v1.meta_pb2 import ObjectRef  # noqa: E402
from muster.v1.object_pb2 import Object  # noqa: E402
from tests.bench.end_to_end import OPTIONS, cpu_seconds, scheduled  # noqa: E402
from tests.endtoend.service import gang, node  # noqa: E402

NODES = 500
CLIENTS = 4
GANGS_A_TURN = 160
GANG_SIZE = 8
MEMBERS_OF_HOPELESS_GANG = 20
WARM_UP_SECONDS = 30


def hopeless(number: int) -> Iterator[list[Object]]:
    """Units, one third of each kind."""
    for index in range(number):
        name = f"hopeless-{index}"
        if index % 3 == 1:
            objects = gang(name, MEMBERS_OF_HOPELESS_GANG)
            for member in objects[1:]:
                _ask_for(member, f"{5 + index % 3}")
            yield objects
        else:
            _, member = gang(name, 1)
            member.pod.spec.ClearField("scheduling_group")
            if index % 3:
                member.pod.spec.node_selector["disk"] = f"none-{index}"
            else:
                _ask_for(member, f"{100 + index}")
            yield [member]


def _ask_for(member: Object, cpu: str) -> None:
    for container in member.pod.spec.containers:
        container.resources.requests["cpu"] = cpu


@dataclass(eq=False)
class Stream:
    """One server, and the gangs that it was given."""

    server: RunningServer
    channel: aio.Channel
    made: int = 0

    async def prepare(self, units: int) -> None:
        """Nodes with four cores free on each, and units that cannot start."""
        cluster = ClusterServiceStub(self.channel)
        nodes = [node(f"node-{i}", cpu="8" if i < 8 else "4") for i in range(NODES)]
        await cluster.Apply(pb.ApplyRequest(objects=nodes))
        for objects in hopeless(units):
            await cluster.Apply(pb.ApplyRequest(objects=objects))

    async def turn(self) -> float:
        """Milliseconds of the server's CPU time for each gang of a turn."""
        before = cpu_seconds(self.server)
        await asyncio.gather(*(self._client(number) for number in range(CLIENTS)))
        return (cpu_seconds(self.server) - before) * 1e3 / GANGS_A_TURN

    async def _client(self, number: int) -> None:
        cluster = ClusterServiceStub(self.channel)
        for count in range(GANGS_A_TURN // CLIENTS):
            name = f"small-{number}-{self.made}-{count}"
            objects = gang(name, GANG_SIZE)
            await scheduled(self.channel, "default", objects, name)
            refs = [ObjectRef(kind="Pod", name=f"{name}-{i}") for i in range(GANG_SIZE)]
            refs.append(ObjectRef(kind="PodGroup", name=name))
            await cluster.Delete(pb.DeleteRequest(refs=[pb.DeleteTarget(ref=ref) for ref in refs]))
        self.made += 1


async def main() -> None:
    """Run both streams, turn by turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        streams: dict[int, Stream] = {}
        for units in (0, given.units):
            arguments = ["--listen", "127.0.0.1:0", "--store", f"sqlite:///{folder}/{units}.db"]
            server = await stack.enter_async_context(serving(arguments, Path(folder) / f"{units}.log"))
            channel = await stack.enter_async_context(aio.insecure_channel(server.address, options=OPTIONS))
            streams[units] = Stream(server, channel)
            await streams[units].prepare(units)
        await asyncio.sleep(WARM_UP_SECONDS)
        costs: dict[int, list[float]] = {units: [] for units in streams}
        for turn in range(given.turns + 1):
            for units, stream in streams.items():
                cost = await stream.turn()
                if turn:
                    costs[units].append(cost)
    without, with_them = (statistics.median(each) for each in costs.values())
    print(  # noqa: T201 - its purpose
        f"CPU time a gang of {GANG_SIZE}: {without:.2f} ms alone, {with_them:.2f} ms beside {given.units} hopeless units, "
        f"{100 * (with_them / without - 1):+.1f} %"
    )


if __name__ == "__main__":
    asyncio.run(main())
