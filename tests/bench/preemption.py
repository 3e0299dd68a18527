"""What preemption costs in the core alone: `python tests/bench/preemption.py`.

A full cluster of 5 000 nodes runs 20 000 pods of lower priority in 2 500 groups that go whole. Each line has the best of
some runs in wall and CPU milliseconds, so that a busy machine shows, and how many groups had to go.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from muster.core.decide import decide
from muster.core.decision import Decision, DecisionCode
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
from muster.core.framework import PreemptionSettings, Profile
from muster.core.observer import NullObserver
from muster.core.preemption_units import DisruptionBudgets, DisruptionUnits, units_of_rows
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile

RUNS = 5
NODES, NODES_A_RACK, RACKS_A_BLOCK = 5_000, 20, 25
VICTIMS, GROUP = 20_000, 8
PRIORITIES = 5
ROOM = 32
MOVING = default_profile()
FIXED = replace(MOVING, preemption=PreemptionSettings())


def main() -> None:
    """Print the figures of the rows that preemption answers for."""
    equal, mixed = Full(shapes=1), Full(shapes=10)
    report("gang of 500, placement fixed", equal, FIXED, equal.gang(500))
    report("gang of 500, may move", equal, MOVING, equal.gang(500))
    report("tree of 3 levels, 500 pods, 10 shapes", mixed, MOVING, mixed.tree())


class Full:
    """The full cluster; victims of so many shapes, each group spread over nodes drawn by a fixed seed."""

    def __init__(self, shapes: int) -> None:
        self.snapshot, self.table = Snapshot(), SignatureTable()
        self._chance = np.random.default_rng(5710)
        for number in range(NODES):
            rack = number // NODES_A_RACK
            labels = {"rack": f"r{rack}", "block": f"b{rack // RACKS_A_BLOCK}"}
            offer = {"cpu": str(ROOM), "memory": "128Gi", "pods": "110"}
            self.snapshot.apply(NodePut(Node(name=f"node-{number:05}", allocatable=offer, labels=labels)))
        self.victims = self._run_victims(shapes)

    def _run_victims(self, shapes: int) -> DisruptionUnits:
        slots = np.repeat(np.arange(NODES), VICTIMS // NODES)
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
        ids = tuple(range(1, VICTIMS + 1))
        signatures = tuple(self._signature(cpu) for cpu in chosen)
        self.snapshot.apply(PodsBound(ids, signatures, tuple(f"node-{slot:05}" for slot in slots.tolist())))
        groups = VICTIMS // GROUP
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

    def gang(self, size: int) -> Unit:
        pods = PendingPods(tuple(range(10**6, 10**6 + size)), (self._signature(8),) * size)
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

    def _signature(self, cpus: int) -> int:
        requests = Resources(requests={"cpu": str(cpus), "memory": "1Gi"})
        spec = PodSpec(containers=(Container(resources=requests),))
        index = self.table.intern(Pod(name="p", namespace="default", spec=spec))
        self.snapshot.apply(SignaturesAdded(self.table.take_new()))
        return index


def report(name: str, full: Full, profile: Profile, unit: Unit) -> None:
    """Time the decision, and say whom it evicts."""
    walls, cpus = [], []
    decision = decide(full.snapshot, unit, profile, NullObserver())
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        decision = decide(full.snapshot, unit, profile, NullObserver())
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    groups, pods = evicted(decision)
    print(  # noqa: T201
        f"{name:40} wall {min(walls) * 1e3:9.3f} ms   cpu {min(cpus) * 1e3:9.3f} ms   {groups} groups, {pods} pods go"
    )


def evicted(decision: Decision) -> tuple[int, int]:
    """How many groups and pods go."""
    assert decision.code is DecisionCode.WAITING_FOR_PREEMPTION, decision.message
    assert decision.preemption is not None
    victims = decision.preemption.victims
    return len(victims), sum(len(victim.pods) for victim in victims)


if __name__ == "__main__":
    main()
