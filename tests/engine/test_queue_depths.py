"""How many units and pods wait in each state, and that counting many of them holds up nobody."""

from __future__ import annotations

import asyncio

from muster.engine.mutation import Mutation
from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.queue_depths import SLICE, queue_depths
from muster.engine.settlement import settle_unit
from muster.model.meta import POD, POD_GROUP, ObjectKey
from muster.telemetry.facts import QueueDepth
from tests.engine.small_cluster import SmallCluster, pod, pod_group


def settle_all(mutation: Mutation, units: list[ObjectKey]) -> None:
    for unit in units:
        settle_unit(mutation, unit)


async def test_units_and_their_unbound_pods_are_counted_by_state_and_kind() -> None:
    small = SmallCluster(
        pod_group("pair", minimum=2),
        pod("pair-0", group="pair"),
        pod("pair-1", group="pair"),
        pod("pair-2", group="pair", on="somewhere"),
        pod_group("short", minimum=3),
        pod("short-0", group="short"),
        *(pod(f"alone-{number}") for number in range(3)),
    )
    keys = [ObjectKey(POD_GROUP, "default", "pair"), ObjectKey(POD_GROUP, "default", "short")]
    keys += [ObjectKey(POD, "default", f"alone-{number}") for number in range(3)]
    small.change(lambda mutation: settle_all(mutation, keys))
    small.cluster.queue.pop()

    depths, _ = await queue_depths(small.cluster)

    assert sorted(depths) == [
        QueueDepth("ACTIVE", POD, 2, 2),
        QueueDepth("ACTIVE", POD_GROUP, 1, 2),
        QueueDepth("GATED", POD_GROUP, 1, 1),
        QueueDepth("IN_FLIGHT", POD, 1, 1),
    ]


async def test_others_have_their_turn_while_a_long_queue_is_counted() -> None:
    small = SmallCluster()
    for number in range(3 * SLICE):
        key = ObjectKey(POD, "default", f"pod-{number}")
        small.cluster.queue.put(QueuedUnit(key=key, state=UnitState.ACTIVE, priority=0, since_us=1))
    counting = asyncio.create_task(queue_depths(small.cluster))
    turns = 0

    while not counting.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns > 3
    assert counting.result()[0] == [QueueDepth("ACTIVE", POD, 3 * SLICE, 3 * SLICE)]
