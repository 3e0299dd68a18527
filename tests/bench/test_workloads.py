"""Every workload of upstream's names runs, in a small size, decided alone and through a service."""

import pytest

from muster.v1.object_pb2 import Object
from tests.bench.place import opened_place
from tests.bench.served import Served, batch, nodes, served
from tests.bench.upstream.decided import Stage
from tests.bench.upstream.through_grpc import Way, run
from tests.bench.upstream.workload import Workload
from tests.bench.upstream.workloads import SMALL
from tests.endtoend.service import gang

PODS = 300


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name.partition("/")[0])
def test_every_unit_of_a_workload_is_decided_as_it_should(workload: Workload) -> None:
    stage = Stage(workload)

    stage.decide_all()

    assert not stage.snapshot.has_assumptions


async def test_every_unit_of_every_workload_is_bound_through_a_service() -> None:
    in_pairs = Way("in-pairs", units_an_apply=2)
    with opened_place() as place:
        async with served(place) as service:
            done = {each.name: await run(service.on(cluster_of(each)), each, in_pairs) for each in SMALL}

    assert {name: each.pods for name, each in done.items()} == {
        each.name: each.units * each.pods_a_unit for each in SMALL
    }


async def test_a_gang_in_one_message_costs_a_third_of_one_in_a_message_for_each_object() -> None:
    with opened_place() as place:
        async with served(place) as service:
            await service.apply(nodes(200))
            await service.schedule(service.apply_request(batch("warm", PODS)), "warm")

            together = await cost(service, [batch("together", PODS)], "together")

            apart = await cost(service, [[each] for each in gang("apart", PODS)], "apart")

    assert apart > 3 * together


async def cost(service: Served, calls: list[list[Object]], name: str) -> float:
    """CPU seconds of the service until a gang is bound."""
    before = service.cpu_seconds()
    for objects in calls:
        await service.apply(objects)
    await service.until_scheduled(name)
    return service.cpu_seconds() - before


def cluster_of(workload: Workload) -> str:
    return workload.name.partition("/")[0].lower()
