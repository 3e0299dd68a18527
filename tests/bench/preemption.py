"""What preemption costs in the core alone.

A full cluster runs four pods of lower priority on each node, in groups of eight that go whole: on 5 000 nodes 20 000 pods
in 2 500 groups. Or it runs sixteen on each, each of them by itself. The plain form puts every unit back by itself and
places the preemptor anew each time: what that takes is reckoned from one placement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from muster.core.decide import decide
from muster.core.decision import DecisionCode
from muster.core.deltas import NodePut, PodsBound, PodsUnbound, SignaturesAdded
from muster.core.framework import PreemptionSettings, Profile
from muster.core.observer import NullObserver
from muster.core.preemption_units import DisruptionBudgets, DisruptionUnits, units_of_rows
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.stopwatch import Timing, best_of

NODES, NODES_A_RACK, RACKS_A_BLOCK = 5_000, 20, 25
VICTIMS_A_NODE, GROUP = 4, 8
SINGLE_PODS_A_NODE = 16
MOST_OF_A_NODE = 30
PRIORITIES = 5
ROOM = 32
MOVING = default_profile()
FIXED = replace(MOVING, preemption=PreemptionSettings())


class Full:
    """The full cluster; victims of so many shapes, each group spread over nodes drawn by a fixed seed."""

    def __init__(self, shapes: int, nodes: int = NODES) -> None:
        self.nodes, self.count = nodes, nodes * VICTIMS_A_NODE
        self.snapshot, self.table = Snapshot(), SignatureTable()
        self._chance = np.random.default_rng(5710)
        for number in range(nodes):
            rack = number // NODES_A_RACK
            labels = {"rack": f"r{rack}", "block": f"b{rack // RACKS_A_BLOCK}"}
            offer = {"cpu": str(ROOM), "memory": "128Gi", "pods": "110"}
            self.snapshot.apply(NodePut(Node(name=f"node-{number:05}", allocatable=offer, labels=labels)))
        self.victims = self._run_victims(shapes)

    def _run_victims(self, shapes: int) -> DisruptionUnits:
        slots = np.repeat(np.arange(self.nodes), VICTIMS_A_NODE)
        self._chance.shuffle(slots)
        # Four pods a node; pairs of shapes add up to half a node.
        cpus = [8] if shapes == 1 else [4, 12, 5, 11, 6, 10, 7, 9, 3, 13]
        of_node: dict[int, list[int]] = {}
        chosen = []
        for slot in slots.tolist():
            left = of_node.setdefault(slot, [])
            if not left and shapes > 1:
                pairs = self._chance.integers(0, len(cpus) // 2, 2).tolist()
                left += [cpus[2 * pair + which] for pair in pairs for which in (0, 1)]
            chosen.append(left.pop() if left else cpus[0])
        ids = tuple(range(1, self.count + 1))
        signatures = tuple(self._signature(cpu) for cpu in chosen)
        self.snapshot.apply(PodsBound(ids, signatures, tuple(f"node-{slot:05}" for slot in slots.tolist())))
        groups = self.count // GROUP
        rows = (
            (
                ObjectKey(POD_GROUP, "default", f"low-{number:05}"),
                10 * int(level),
                number,
                ids[number * GROUP : (number + 1) * GROUP],
            )
            for number, level in enumerate(self._chance.integers(0, PRIORITIES, groups))
        )
        return units_of_rows(rows, DisruptionBudgets())

    def gang(self, size: int, cpus: int = 8) -> Unit:
        pods = PendingPods(tuple(range(10**6, 10**6 + size)), (self._signature(cpus),) * size)
        root = GroupTree(ObjectKey(POD_GROUP, "default", "gang"), True, size, pods=pods)
        return Unit(root, priority=100, victims=self.victims)

    def tree(self) -> Unit:
        """root(block) > 20 replicas > 2 leaves (rack), one of 5 large and one of 20 small pods."""
        first = 10**6
        replicas = []
        for replica in range(20):
            leaves = []
            for leaf, (cpu, size) in enumerate(((12, 5), (4, 20))):
                pods = PendingPods(tuple(range(first, first + size)), (self._signature(cpu),) * size)
                first += size
                key = ObjectKey(POD_GROUP, "default", f"leaf-{replica}-{leaf}")
                leaves.append(GroupTree(key, True, size, "rack", pods=pods))
            key = ObjectKey(COMPOSITE_POD_GROUP, "default", f"replica-{replica}")
            replicas.append(GroupTree(key, True, len(leaves), children=tuple(leaves)))
        root = GroupTree(
            ObjectKey(COMPOSITE_POD_GROUP, "default", "root"),
            True,
            len(replicas),
            "block",
            children=tuple(replicas),
        )
        return Unit(root, priority=100, victims=self.victims)

    def emptied(self) -> Full:
        """The same without its victims; only it is left."""
        self.snapshot.apply(PodsUnbound(tuple(range(1, self.count + 1))))
        return self

    def _signature(self, cpus: int) -> int:
        requests = Resources(requests={"cpu": str(cpus), "memory": "1Gi"})
        spec = PodSpec(containers=(Container(resources=requests),))
        index = self.table.intern(Pod(name="p", namespace="default", spec=spec))
        self.snapshot.apply(SignaturesAdded(self.table.take_new()))
        return index


class FullOfSinglePods(Full):
    """The full cluster with pods that go one by one, all alike but for their names, drawn over all nodes."""

    def __init__(self, nodes: int = NODES) -> None:
        super().__init__(1, nodes)

    def _run_victims(self, shapes: int) -> DisruptionUnits:
        self.count = self.nodes * SINGLE_PODS_A_NODE
        slots = np.repeat(np.arange(self.nodes), SINGLE_PODS_A_NODE)
        self._chance.shuffle(slots)
        ids = tuple(range(1, self.count + 1))
        signatures = (self._signature(ROOM // SINGLE_PODS_A_NODE),) * self.count
        self.snapshot.apply(PodsBound(ids, signatures, tuple(f"node-{slot:05}" for slot in slots.tolist())))
        rows = ((ObjectKey(POD, "default", f"low-{number:05}"), 0, 0, (number,)) for number in ids)
        return units_of_rows(rows, DisruptionBudgets())


@lru_cache(maxsize=1)
def full(shapes: int, nodes: int = NODES) -> Full:
    return Full(shapes, nodes)


def preempted(cluster: Full, profile: Profile, unit: Unit) -> None:
    decision = decide(cluster.snapshot, unit, profile, NullObserver())
    assert decision.code is DecisionCode.WAITING_FOR_PREEMPTION, decision.message


def placing_anew(unit: Unit, profile: Profile, cluster: Full) -> Timing:
    """Of one placement in the cluster, which is emptied for it."""
    empty = cluster.emptied()
    return best_of(partial(decide, empty.snapshot, replace(unit, victims=None), profile, NullObserver()))


def preempting(shapes: int, profile: Profile, unit_of: Callable[[Full], Unit]) -> Callable[[Place], Measured]:
    """How long it takes to find whom the unit evicts."""

    def measure(_: Place) -> Measured:
        cluster = full(shapes)
        unit = unit_of(cluster)
        best = best_of(partial(preempted, cluster, profile, unit))
        groups = cluster.count // GROUP
        return Measured(best.wall_ms, best.cpu, groups * placing_anew(unit, profile, Full(shapes)).wall_ms)

    return measure


def among_single_pods(_: Place) -> Measured:
    """How long it takes to find whom a gang of 8, of which each takes most of a node, evicts of 80 000 pods."""
    cluster = FullOfSinglePods()
    unit = cluster.gang(8, MOST_OF_A_NODE)
    best = best_of(partial(preempted, cluster, MOVING, unit))
    return Measured(best.wall_ms, best.cpu, cluster.count * placing_anew(unit, MOVING, cluster).wall_ms)


def gang_of_500(cluster: Full) -> Unit:
    return cluster.gang(500)


PLAIN = "placing anew for each of 2 500 groups, from one"
ROWS = (
    Row("preemption/gang-of-500-fixed", "ms", preempting(1, FIXED, gang_of_500), PLAIN, 15, 500),
    Row("preemption/gang-of-500-may-move", "ms", preempting(1, MOVING, gang_of_500), PLAIN, 80, 500),
    Row("preemption/tree-of-500-pods-10-shapes", "ms", preempting(10, MOVING, Full.tree), PLAIN),
    Row(
        "preemption/gang-of-8-among-80000-pods",
        "ms",
        among_single_pods,
        "placing anew for each of 80 000 pods, from one",
    ),
)
