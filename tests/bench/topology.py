"""What domains cost: `python tests/bench/topology.py` places and refuses a tree of three levels on clusters of four sizes.

The tree is root(block) > 8 groups(rack) > 64 pods; racks have 40 nodes, blocks 10 racks, every node runs something
already. Wall and CPU time are the best of some runs, so that a busy machine shows; the exponent says how they grow
with the number of nodes. The smallest cluster is placed by the plain recursion too, with all fast paths off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from muster.core.decide import decide
from muster.core.decision import SearchEnd, Status
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
from muster.core.domains import CLUSTER
from muster.core.lockstep import NoRehearsal
from muster.core.observer import NullObserver
from muster.core.pod_placement import placer_of
from muster.core.recursion import Recursion
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.core.trial import Ledger
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile

SIZES = (1_000, 5_000, 20_000, 50_000)
NODES_A_RACK = 40
RACKS_A_BLOCK = 10
GROUPS = 8
PODS_A_GROUP = 64
RUNS = 5
PROFILE = default_profile()
WANTED, TOO_MANY = 0, 1
REQUESTS = (("4", "16Gi"), ("16", "64Gi"))
"""Of the tree that fits, and of the one of which no rack holds a group, though it would if nothing else ran there."""


@dataclass(frozen=True)
class Timing:
    """Best of the runs, in milliseconds."""

    wall: float
    cpu: float


def main() -> None:
    """Print a line per question and size, then how the times grow."""
    best: dict[int, Timing] = {}
    infeasible: dict[int, Timing] = {}
    for size in SIZES:
        snapshot = cluster(size)
        best[size] = timed(partial(placed, snapshot, tree(WANTED)))
        show("best block", size, best[size])
        if size == min(SIZES):
            show("best block, one by one", size, timed(partial(placed_one_by_one, snapshot, tree(WANTED))))
        infeasible[size] = timed(partial(refused, snapshot, tree(TOO_MANY)))
        show("prove that tree infeasible", size, infeasible[size])
    say(f"{'best block':30} grows as nodes^{exponent(best):.2f}")
    say(f"{'prove that tree infeasible':30} grows as nodes^{exponent(infeasible):.2f}")


def cluster(size: int) -> Snapshot:
    """Nodes of 32 cpu of which some run pods, more of them in some racks than in others."""
    snapshot, table = Snapshot(), SignatureTable()
    offer = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for number in range(size):
        rack = number // NODES_A_RACK
        labels = {"rack": f"rack-{rack}", "block": f"block-{rack // RACKS_A_BLOCK}"}
        snapshot.apply(NodePut(Node(name=f"node-{number:05}", allocatable=offer, labels=labels)))
    indexes = [table.intern(_pod(cpu, memory)) for cpu, memory in (*REQUESTS, ("1", "3Gi"))]
    snapshot.apply(SignaturesAdded(table.take_new()))
    names = [
        f"node-{number:05}"
        for number in range(size)
        for _ in range((number * 7 + number // NODES_A_RACK) % 11)
    ]
    snapshot.apply(
        PodsBound(tuple(range(10**6, 10**6 + len(names))), (indexes[-1],) * len(names), tuple(names))
    )
    return snapshot


def tree(signature: int) -> Unit:
    groups = tuple(
        GroupTree(
            ObjectKey(POD_GROUP, "default", f"workers-{number}"),
            is_gang=True,
            minimum=PODS_A_GROUP,
            topology_key="rack",
            pods=PendingPods(
                tuple(range(number * PODS_A_GROUP, (number + 1) * PODS_A_GROUP)), (signature,) * PODS_A_GROUP
            ),
        )
        for number in range(GROUPS)
    )
    key = ObjectKey(COMPOSITE_POD_GROUP, "default", "root")
    return Unit(GroupTree(key, is_gang=True, minimum=GROUPS, topology_key="block", children=groups))


def placed(snapshot: Snapshot, unit: Unit) -> None:
    decision = decide(snapshot, unit, PROFILE, NullObserver())
    assert len(decision.assignments.pods) == unit.pod_count


def placed_one_by_one(snapshot: Snapshot, unit: Unit) -> None:
    """The recursion alone, each candidate simulated."""
    placer = placer_of(snapshot, PROFILE)
    ledger = Ledger(snapshot, placer)
    before = ledger.mark()
    recursion = Recursion(snapshot, unit, PROFILE, placer, ledger, NullObserver(), NoRehearsal())
    trial = recursion.minimum(unit.root, CLUSTER)
    recursion.fill(trial, CLUSTER)
    assert trial.placed == unit.pod_count
    ledger.rollback(before)


def refused(snapshot: Snapshot, unit: Unit) -> None:
    decision = decide(snapshot, unit, PROFILE, NullObserver())
    assert decision.result is not None
    assert decision.result.status is not Status.SUCCESS
    assert decision.search.end is SearchEnd.EXHAUSTED


def timed(run: Callable[[], object]) -> Timing:
    walls, cpus = [], []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(min(walls) * 1e3, min(cpus) * 1e3)


def exponent(timings: dict[int, Timing]) -> float:
    """The slope of time over size, both as logarithms, by least squares."""
    points = [(math.log(size), math.log(timing.wall)) for size, timing in timings.items()]
    middle = sum(x for x, _ in points) / len(points)
    height = sum(y for _, y in points) / len(points)
    return sum((x - middle) * (y - height) for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


def show(name: str, size: int, timing: Timing) -> None:
    say(f"{name:30} {size:6} nodes   wall {timing.wall:9.3f} ms   cpu {timing.cpu:9.3f} ms")


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def _pod(cpu: str, memory: str) -> Pod:
    resources = Resources(requests={"cpu": cpu, "memory": memory})
    return Pod(name="p", namespace="default", spec=PodSpec(containers=(Container(resources=resources),)))


if __name__ == "__main__":
    main()
