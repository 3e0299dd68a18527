"""What a thousand units that cannot start cost a stream of small gangs that can, in CPU time of the service.

Two services serve the stream in turns, one of which has the hopeless units: pods that are too large for any node, gangs
too large for what is free, and pods that no node's labels please.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from muster.v1.object_pb2 import Object
from tests.bench.interleaved import GangStream, in_turns, measured_cpu_seconds, more_percent
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.served import Served, in_loop, served
from tests.endtoend.service import gang, node

NODES = 500
UNITS = 1_000
MEMBERS = 20
TURNS, GANGS_A_TURN = 9, 160
WARM_UP_SECONDS = 30
"""By then the hopeless units have been tried often enough for their backoff to be what it is in the long run."""


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


async def beside_hopeless_units(place: Place) -> Measured:
    """Percent of CPU time that the stream costs more."""
    async with served(place) as first, served(place) as second:
        alone, beside = await prepare(first, 0), await prepare(second, UNITS)
        await asyncio.sleep(WARM_UP_SECONDS)
        await in_turns((alone, beside), TURNS, GANGS_A_TURN)
    return Measured(more_percent(beside, alone), measured_cpu_seconds(beside, GANGS_A_TURN))


ROWS = (
    Row("queue/beside-1000-hopeless-units", "%", in_loop(beside_hopeless_units), "the same without them"),
)
