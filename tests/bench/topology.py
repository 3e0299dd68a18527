"""What domains cost: a tree of three levels is placed into the best block, and refused where no rack holds a group.

The tree is root(block) > 8 groups(rack) > 64 pods; racks have 40 nodes, blocks 10 racks, every node runs something
already. The plain form is the recursion with all fast paths off, which simulates one domain after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

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
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.stopwatch import best_of

NODES_A_RACK = 40
RACKS_A_BLOCK = 10
GROUPS = 8
PODS_A_GROUP = 64
PROFILE = default_profile()
WANTED, TOO_MANY = 0, 1
REQUESTS = (("4", "16Gi"), ("16", "64Gi"))
"""Of the tree that fits, and of the one of which no rack holds a group, though it would if nothing else ran there."""


@lru_cache(maxsize=1)
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


def tried_one_by_one(snapshot: Snapshot, unit: Unit) -> None:
    """The recursion alone, each candidate simulated."""
    placer = placer_of(snapshot, PROFILE)
    ledger = Ledger(snapshot, placer)
    before = ledger.mark()
    recursion = Recursion(snapshot, unit, PROFILE, placer, ledger, NullObserver(), NoRehearsal())
    trial = recursion.minimum(unit.root, CLUSTER)
    if trial.status is Status.SUCCESS:
        recursion.fill(trial, CLUSTER)
        assert trial.placed == unit.pod_count
    ledger.rollback(before)


def refused(snapshot: Snapshot, unit: Unit) -> None:
    decision = decide(snapshot, unit, PROFILE, NullObserver())
    assert decision.result is not None
    assert decision.result.status is not Status.SUCCESS
    assert decision.search.end is SearchEnd.EXHAUSTED


@lru_cache
def plain_ms(size: int) -> float:
    """What simulating a tree that fits takes, a domain after the other."""
    return best_of(partial(tried_one_by_one, cluster(size), tree(WANTED)), 1).wall_ms


def question(run: Callable[[Snapshot, Unit], None], size: int, signature: int) -> Callable[[Place], Measured]:
    def measure(_: Place) -> Measured:
        best = best_of(partial(run, cluster(size), tree(signature)))
        return Measured(best.wall_ms, best.cpu, plain_ms(size))

    return measure


def _pod(cpu: str, memory: str) -> Pod:
    resources = Resources(requests={"cpu": cpu, "memory": memory})
    return Pod(name="p", namespace="default", spec=PodSpec(containers=(Container(resources=resources),)))


PLAIN = "simulating a tree that fits, a domain after the other"
ROWS = (
    Row("topology/best-block-5000-nodes", "ms", question(placed, 5_000, WANTED), PLAIN, 10, 100),
    Row("topology/infeasible-5000-nodes", "ms", question(refused, 5_000, TOO_MANY), PLAIN, 1, 50),
    Row("topology/best-block-50000-nodes", "ms", question(placed, 50_000, WANTED), PLAIN, 50, 600),
    Row("topology/infeasible-50000-nodes", "ms", question(refused, 50_000, TOO_MANY), PLAIN, 5, 50),
)
