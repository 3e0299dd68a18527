"""How many units and pods wait in each state of a queue, as the metrics show it.

Counted from the live queue, in slices between which others have their turn: a queue may hold a hundred thousand units.
When it is counted is the registry's.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from muster.engine.cluster import Cluster
from muster.engine.hierarchy import unbound_pods
from muster.engine.ports import UnitState
from muster.model.meta import POD
from muster.telemetry.facts import QueueDepth

SLICE = 500


async def queue_depths(cluster: Cluster) -> tuple[list[QueueDepth], float]:
    """The depth of each state by kind of unit, and the seconds that counting took of the event loop.

    A unit that comes, goes or moves while they are counted may be in it as it was or as it is.
    """
    units: Counter[tuple[UnitState, str]] = Counter()
    pods: Counter[tuple[UnitState, str]] = Counter()
    keys, worked = list(cluster.queue.rows), 0.0
    for start in range(0, len(keys), SLICE):
        began = time.monotonic()
        for key in keys[start : start + SLICE]:
            row = cluster.queue.get(key)
            if row is not None:
                place = (row.state, key.kind)
                units[place] += 1
                # A pod that is a unit of its own is in the queue for as long as it has no node.
                pods[place] += 1 if key.kind == POD else sum(unbound_pods(cluster.state, key))
        worked += time.monotonic() - began
        await asyncio.sleep(0)
    depths = [
        QueueDepth(state.name, kind, count, pods[state, kind]) for (state, kind), count in units.items()
    ]
    return depths, worked
