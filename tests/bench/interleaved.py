"""The same stream of small gangs on several services in turns, so that a busy machine is the same for all of them.

Each gang is applied, bound and deleted again, so that room comes and goes all the time. What counts is CPU time of the
service: for each service the median, over pairs of turns, of its ratio to the first service in the same two. The second
turn of a pair goes through the services the other way round, so that a machine that slows down wrongs none of them.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from tests.bench.served import CALL_SECONDS, Served
from tests.endtoend.service import gang

CLIENTS = 4
GANG_SIZE = 8


@dataclass(eq=False)
class GangStream:
    """One service, and what a gang cost it in each turn, in seconds."""

    service: Served
    costs: list[float] = field(default_factory=list)
    _made: int = 0

    async def turn(self, gangs: int) -> float:
        """Seconds of the service's CPU time for each gang of a turn."""
        before = self.service.cpu_seconds()
        await asyncio.gather(*(self._client(number, gangs // CLIENTS) for number in range(CLIENTS)))
        self._made += 1
        return (self.service.cpu_seconds() - before) / (gangs // CLIENTS * CLIENTS)

    async def _client(self, number: int, gangs: int) -> None:
        for count in range(gangs):
            name = f"small-{number}-{self._made}-{count}"
            await self.service.schedule(self.service.apply_request(gang(name, GANG_SIZE)), name)
            refs = [ObjectRef(kind="Pod", name=f"{name}-{each}") for each in range(GANG_SIZE)]
            targets = [pb.DeleteTarget(ref=ref) for ref in (*refs, ObjectRef(kind="PodGroup", name=name))]
            request = pb.DeleteRequest(cluster=self.service.cluster, refs=targets)
            await self.service.objects.Delete(request, timeout=CALL_SECONDS)


async def in_turns(streams: Sequence[GangStream], turns: int, gangs: int) -> None:
    """Fill the costs of all streams. First ones, in which everything is made for the first time, do not count."""
    for stream in streams:
        await stream.turn(gangs)
    for turn in range(turns):
        for stream in reversed(streams) if turn % 2 else streams:
            stream.costs.append(await stream.turn(gangs))


def more_percent(stream: GangStream, first: GangStream) -> float:
    """How much more CPU time the stream took than the first one, in percent."""
    ratios = [
        cost / other for cost, other in zip(_by_pairs(stream.costs), _by_pairs(first.costs), strict=True)
    ]
    return 100 * (statistics.median(ratios) - 1)


def _by_pairs(costs: Sequence[float]) -> list[float]:
    return [one + other for one, other in zip(costs[::2], costs[1::2], strict=True)]


def measured_cpu_seconds(stream: GangStream, gangs: int) -> float:
    return sum(stream.costs) * gangs
