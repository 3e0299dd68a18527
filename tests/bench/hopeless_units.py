"""What a thousand units that cannot start cost a stream of small gangs that can, in CPU time of the service.

Two services serve the stream in turns, one of which has the hopeless units: pods that are too large for any node, gangs
too large for what is free, and pods that no node's labels please.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from tests.bench.interleaved import GangStream, in_turns, measured_cpu_seconds, more_percent
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import CALL_SECONDS, Served, in_loop, served
from tests.endtoend.service import gang, node

NODES = 500
UNITS = 1_000
MEMBERS = 20
TURNS, GANGS_A_TURN = 16, 90
WARM_UP_SECONDS = 66
"""By then the gangs among the hopeless units, which each stir wakes, have a backoff of a minute, as in the long run."""


def hopeless(number: int) -> Iterator[list[Object]]:
    """Units, one third of each kind."""
    for index in range(number):
        name = f"hopeless-{index}"
        if index % 3 == 1:
            objects = gang(name, MEMBERS)
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


async def prepare(service: Served, units: int) -> GangStream:
    """Nodes with four cores free on each, and units that cannot start."""
    await service.apply([node(f"node-{number}", cpu="8" if number < 8 else "4") for number in range(NODES)])
    for objects in hopeless(units):
        await service.apply(objects)
    return GangStream(service)


async def stir(service: Served) -> None:
    """Every second, give back the room of a pod on a node that one pod of a hopeless gang would fit on."""
    waker = gang("waker", 1)[1]
    waker.pod.spec.ClearField("scheduling_group")
    waker.pod.spec.node_name = "node-0"
    target = pb.DeleteTarget(ref=ObjectRef(kind="Pod", name=waker.pod.metadata.name))
    for _ in range(WARM_UP_SECONDS):
        await service.apply([waker])
        request = pb.DeleteRequest(cluster=service.cluster, refs=[target])
        await service.objects.Delete(request, timeout=CALL_SECONDS)
        await asyncio.sleep(1)


async def beside_hopeless_units(place: Place) -> Measured:
    """Percent of CPU time that the stream costs more."""
    async with served(place) as first, served(place) as second:
        alone, beside = await prepare(first, 0), await prepare(second, UNITS)
        await asyncio.gather(stir(first), stir(second))
        await in_turns((alone, beside), TURNS, GANGS_A_TURN)
    return Measured(more_percent(beside, alone), measured_cpu_seconds(beside, GANGS_A_TURN))


ROWS = (
    Row("queue/beside-1000-hopeless-units", "%", in_loop(beside_hopeless_units), "the same without them"),
)
