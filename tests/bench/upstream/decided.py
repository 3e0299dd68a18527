"""Upstream's workloads as decisions alone: the core decides one unit after the other on what those before it took.

Units that preempt are each decided on the state as it was at the beginning, since their victims would have to leave first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from muster.core.decide import decide, decide_and_assume
from muster.core.decision import DecisionCode
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
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
from tests.bench.stopwatch import best_of
from tests.bench.upstream.workload import RACK, ZONE, Policy, Workload, rack_of, zone_of
from tests.bench.upstream.workloads import WORKLOADS

PROFILE = default_profile()
OBSERVER = NullObserver()
FIRST_UNIT = 10**6
SAMPLE = 200
RUNS = 3
PRIORITY = 100


class Stage:
    """The workload's nodes with what runs on them, and its units."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.snapshot, self._table = Snapshot(), SignatureTable()
        for number in range(workload.nodes):
            self.snapshot.apply(NodePut(_node(number, workload.nodes)))
        self._ordinals = count(1)
        self.victims = self._run_victims()
        self._run(workload.running, 100)
        self._ordinals = count(FIRST_UNIT)
        self.signature = self._signature(workload.milli_cpus)
        self.units = [self._unit(number) for number in range(workload.units)]

    def single_pods(self, number: int) -> list[Unit]:
        """Pods like those of the units, each by itself."""
        return [self._single(f"single-{each}") for each in range(number)]

    def decide_all(self) -> None:
        """Raises AssertionError if a unit comes out otherwise than it should."""
        if self.workload.victims is not None:
            for unit in self.units:
                code = decide(self.snapshot, unit, PROFILE, OBSERVER).code
                assert code is DecisionCode.WAITING_FOR_PREEMPTION, code
            return
        placed(self.snapshot, self.units)

    def _unit(self, number: int) -> Unit:
        workload = self.workload
        if not workload.groups:
            return self._single(f"pod-{number}")
        if workload.groups == 1:
            return self._of(self._leaf(f"group-{number}"))
        leaves = tuple(self._leaf(f"group-{number}-{leaf}") for leaf in range(workload.groups))
        is_gang = workload.policy is Policy.GANG
        key = ObjectKey(COMPOSITE_POD_GROUP, "default", f"root-{number}")
        minimum = len(leaves) if is_gang else 1
        return self._of(GroupTree(key, is_gang, minimum, workload.root_key, children=leaves))

    def _leaf(self, name: str) -> GroupTree:
        workload = self.workload
        is_gang = workload.policy is Policy.GANG
        minimum = workload.pods if is_gang else 1
        key = ObjectKey(POD_GROUP, "default", name)
        return GroupTree(key, is_gang, minimum, workload.group_key, pods=self._pending(workload.pods))

    def _single(self, name: str) -> Unit:
        return self._of(GroupTree(ObjectKey(POD, "default", name), pods=self._pending(1)))

    def _of(self, root: GroupTree) -> Unit:
        return Unit(root, priority=PRIORITY, victims=self.victims)

    def _pending(self, pods: int) -> PendingPods:
        return PendingPods(tuple(next(self._ordinals) for _ in range(pods)), (self.signature,) * pods)

    def _run_victims(self) -> DisruptionUnits | None:
        victims = self.workload.victims
        if victims is None:
            return None
        ids = self._run(victims.pods, victims.milli_cpus)
        size = victims.pods // victims.groups if victims.groups else 1
        kind = POD_GROUP if victims.groups else POD
        rows = (
            (ObjectKey(kind, "default", f"low-{start // size:05}"), 0, start, ids[start : start + size])
            for start in range(0, len(ids), size)
        )
        return units_of_rows(rows, DisruptionBudgets())

    def _run(self, pods: int, milli_cpus: int) -> tuple[int, ...]:
        ids = tuple(next(self._ordinals) for _ in range(pods))
        names = tuple(f"node-{pod % self.workload.nodes:05}" for pod in range(pods))
        if pods:
            self.snapshot.apply(PodsBound(ids, (self._signature(milli_cpus),) * pods, names))
        return ids

    def _signature(self, milli_cpus: int) -> int:
        requests = Resources(requests={"cpu": f"{milli_cpus}m", "memory": "500Mi"})
        spec = PodSpec(containers=(Container(resources=requests),))
        index = self._table.intern(Pod(name="p", namespace="default", spec=spec))
        self.snapshot.apply(SignaturesAdded(self._table.take_new()))
        return index


def _node(number: int, nodes: int) -> Node:
    labels = {RACK: f"rack-{rack_of(number, nodes):02}", ZONE: f"zone-{zone_of(number, nodes):02}"}
    offer = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return Node(name=f"node-{number:05}", allocatable=offer, labels=labels)


def placed(snapshot: Snapshot, units: list[Unit]) -> None:
    """All of the units, which are taken back at the end."""
    mark = snapshot.mark()
    for unit in units:
        decision = decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
        assert decision.code is DecisionCode.SCHEDULED, decision.message
        assert len(decision.assignments.pods) == unit.pod_count
    snapshot.rollback(mark)


def deciding(workload: Workload) -> Callable[[Place], Measured]:
    """Pods a second, beside those of pods that are decided each by itself."""

    def measure(_: Place) -> Measured:
        stage = Stage(workload)
        best = best_of(stage.decide_all, RUNS)
        pods = workload.units * workload.pods_a_unit
        return Measured(pods / best.wall, best.cpu, single_pods_a_second(stage))

    return measure


def single_pods_a_second(stage: Stage) -> float:
    if stage.victims is None:
        singles = stage.single_pods(SAMPLE)
        return SAMPLE / best_of(partial(placed, stage.snapshot, singles), 2).wall
    [single] = stage.single_pods(1)
    return 1 / best_of(partial(decide, stage.snapshot, single, PROFILE, OBSERVER), 2).wall


def rows() -> list[Row]:
    return [
        Row(
            f"upstream/{workload.name}/decisions",
            "pods/s",
            deciding(workload),
            "pods each by itself",
            workload.targets.decided,
        )
        for workload in WORKLOADS
    ]


ROWS = tuple(rows())
