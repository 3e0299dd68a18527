"""What placement costs in the core alone: `python tests/bench/core_placement.py`.

Each line has the best of some runs in wall and CPU milliseconds, so that a busy machine shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from muster.core.decide import decide, decide_and_assume
from muster.core.deltas import NodePut, SignaturesAdded
from muster.core.observer import NullObserver
from muster.core.recheck import first_conflict
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile

PROFILE = default_profile()
OBSERVER = NullObserver()
RUNS = 5


def main() -> None:
    """Print the figures of the rows that the core answers for."""
    small, large = cluster(5_000), cluster(50_000)
    report("10 000 pods on 5 000 nodes", lambda: placed(small, gang(0, 10_000)))
    report("100 000 pods on 50 000 nodes", lambda: placed(large, gang(0, 100_000)))
    report("1 250 gangs of 8 on 5 000 nodes", lambda: placed(small, *(gang(i, 8) for i in range(1_250))))
    report("hopeless gang on 5 000 nodes", lambda: refused(small, gang(0, 8, signature=1)))
    report("re-check 10 000 pods on 5 000 nodes", rechecked(small, gang(0, 10_000)))
    report("undo 64 pods on 50 000 nodes", undone(large, gang(0, 64)))


def cluster(size: int) -> Snapshot:
    """Equal nodes and two signatures: one fits, one nowhere."""
    snapshot, table = Snapshot(), SignatureTable()
    offer = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for number in range(size):
        labels = {"kubernetes.io/hostname": f"node-{number}", "rack": f"rack-{number // 40}"}
        snapshot.apply(NodePut(Node(name=f"node-{number}", allocatable=offer, labels=labels)))
    for cpu in ("1", "33"):
        requests = Resources(requests={"cpu": cpu, "memory": "2Gi"})
        table.intern(
            Pod(name="p", namespace="default", spec=PodSpec(containers=(Container(resources=requests),)))
        )
    snapshot.apply(SignaturesAdded(table.take_new()))
    return snapshot


def gang(number: int, size: int, signature: int = 0) -> Unit:
    pods = PendingPods(tuple(range(number * size, (number + 1) * size)), (signature,) * size)
    key = ObjectKey(POD_GROUP, "default", f"gang-{number}")
    return Unit(GroupTree(key, is_gang=True, minimum=size, pods=pods))


def placed(snapshot: Snapshot, *units: Unit) -> None:
    mark = snapshot.mark()
    for unit in units:
        decision = decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
        assert len(decision.assignments.pods) == unit.pod_count
    snapshot.rollback(mark)


def refused(snapshot: Snapshot, unit: Unit) -> None:
    assert not decide(snapshot, unit, PROFILE, OBSERVER).assignments.pods


def rechecked(snapshot: Snapshot, unit: Unit) -> Callable[[], None]:
    assigned = decide(snapshot, unit, PROFILE, OBSERVER).assignments
    names = [assigned.nodes[place] for place in assigned.node_index]

    def run() -> None:
        assert first_conflict(snapshot, PROFILE, unit.root.pods.signatures, names) is None

    return run


def undone(snapshot: Snapshot, unit: Unit) -> Callable[[], tuple[float, float]]:
    def run() -> tuple[float, float]:
        mark = snapshot.mark()
        decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
        wall, cpu = time.perf_counter(), time.process_time()
        snapshot.rollback(mark)
        return time.perf_counter() - wall, time.process_time() - cpu

    return run


def report(name: str, run: Callable[[], object]) -> None:
    """Time the call, or take the seconds that it measured itself."""
    walls, cpus = [], []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        own = run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if isinstance(own, tuple):
            wall, cpu = own
        walls.append(wall)
        cpus.append(cpu)
    print(f"{name:40} wall {min(walls) * 1e3:9.3f} ms   cpu {min(cpus) * 1e3:9.3f} ms")  # noqa: T201


if __name__ == "__main__":
    main()
