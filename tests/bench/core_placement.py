"""What placement costs in the core alone: equal pods, gangs, one that fits nowhere, and taking it all back.

Nodes are equal and have 32 cpus. A cluster is made once for its size, as everything measured leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from muster.core.decide import decide, decide_and_assume
from muster.core.deltas import NodePut, PodsBound, PodsUnbound, SignaturesAdded
from muster.core.observer import NullObserver
from muster.core.recheck import first_conflict
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Container, Pod, PodSpec, Resources
from muster.plugins.profile import default_profile
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.stopwatch import Stopwatch, Timing, best_of, least, settled_memory

PROFILE = default_profile()
OBSERVER = NullObserver()
FITS, FITS_NOWHERE = 0, 1
SAMPLE_PODS = 500
SAMPLE_GANGS = 50
GANGS = 1_250
UNDONE_PODS = 64
UNDO_RUNS = 40


@lru_cache(maxsize=1)
def cluster(size: int) -> Snapshot:
    """Equal nodes and two signatures: one fits, one nowhere."""
    snapshot, table = Snapshot(), SignatureTable()
    offer = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for number in range(size):
        labels = {"kubernetes.io/hostname": f"node-{number}", "rack": f"rack-{number // 40}"}
        snapshot.apply(NodePut(Node(name=f"node-{number}", allocatable=offer, labels=labels)))
    for cpu in ("1", "33"):
        requests = Resources(requests={"cpu": cpu, "memory": "2Gi"})
        spec = PodSpec(containers=(Container(resources=requests),))
        table.intern(Pod(name="p", namespace="default", spec=spec))
    snapshot.apply(SignaturesAdded(table.take_new()))
    return snapshot


def gang(number: int, size: int, signature: int = FITS) -> Unit:
    """A gang whose pods have ordinals of its own among gangs of the same size."""
    pods = PendingPods(tuple(range(number * size, (number + 1) * size)), (signature,) * size)
    key = ObjectKey(POD_GROUP, "default", f"gang-{number}")
    return Unit(GroupTree(key, is_gang=True, minimum=size, pods=pods))


def gangs(number: int, size: int) -> tuple[Unit, ...]:
    return tuple(gang(each, size) for each in range(number))


def placed(snapshot: Snapshot, units: Sequence[Unit]) -> None:
    """One unit after the other, all of which are taken back at the end."""
    mark = snapshot.mark()
    for unit in units:
        decision = decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
        assert len(decision.assignments.pods) == unit.pod_count
    snapshot.rollback(mark)


def placed_afresh(snapshot: Snapshot, units: Sequence[Unit]) -> None:
    """As `placed`, with nothing kept from one unit to the next."""
    mark = snapshot.mark()
    for unit in units:
        snapshot.derived.clear()
        decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
    snapshot.rollback(mark)


def refused(snapshot: Snapshot, unit: Unit) -> None:
    assert not decide(snapshot, unit, PROFILE, OBSERVER).assignments.pods


def refused_afresh(snapshot: Snapshot, unit: Unit) -> None:
    snapshot.derived.clear()
    refused(snapshot, unit)


def one_pod_at_a_time(snapshot: Snapshot, number: int) -> Timing:
    """What it takes to place so many equal pods each by itself, from a sample of them."""
    units = gangs(min(number, SAMPLE_PODS), 1)
    return best_of(partial(placed, snapshot, units), 2).scaled(number / len(units))


def equal_pods(nodes: int, pods: int) -> Callable[[Place], Measured]:
    def measure(_: Place) -> Measured:
        snapshot, unit = cluster(nodes), gang(0, pods)
        best = best_of(partial(placed, snapshot, (unit,)))
        return Measured(best.wall_ms, best.cpu, one_pod_at_a_time(snapshot, pods).wall_ms)

    return measure


def many_gangs(_: Place) -> Measured:
    snapshot, units = cluster(5_000), gangs(GANGS, 8)
    best = best_of(partial(placed, snapshot, units))
    plain = best_of(partial(placed_afresh, snapshot, units[:SAMPLE_GANGS]), 2).scaled(GANGS / SAMPLE_GANGS)
    return Measured(best.wall_ms, best.cpu, plain.wall_ms)


def hopeless(_: Place) -> Measured:
    snapshot, unit = cluster(5_000), gang(0, 8, FITS_NOWHERE)
    best = best_of(partial(refused, snapshot, unit))
    return Measured(best.wall_ms, best.cpu, best_of(partial(refused_afresh, snapshot, unit)).wall_ms)


def recheck(_: Place) -> Measured:
    snapshot, unit = cluster(5_000), gang(0, 10_000)
    assigned = decide(snapshot, unit, PROFILE, OBSERVER).assignments
    names = [assigned.nodes[place] for place in assigned.node_index]

    def run() -> None:
        assert first_conflict(snapshot, PROFILE, unit.root.pods.signatures, names) is None

    best = best_of(run)
    return Measured(best.wall_ms, best.cpu, best_of(partial(placed, snapshot, (unit,))).wall_ms)


def undo(nodes: int) -> Callable[[Place], Measured]:
    def measure(_: Place) -> Measured:
        snapshot, unit = cluster(nodes), gang(0, UNDONE_PODS)
        with settled_memory():
            best = least([_undone(snapshot, unit) for _ in range(UNDO_RUNS)])
            plain = least([_unbound(snapshot, unit) for _ in range(UNDO_RUNS)])
        return Measured(best.wall * 1e6, best.cpu, plain.wall * 1e6)

    return measure


def _undone(snapshot: Snapshot, unit: Unit) -> Timing:
    mark = snapshot.mark()
    decide_and_assume(snapshot, unit, PROFILE, OBSERVER)
    watch = Stopwatch()
    snapshot.rollback(mark)
    return watch.stop()


def _unbound(snapshot: Snapshot, unit: Unit) -> Timing:
    """Of taking the pods away again after they were bound where the unit would be placed."""
    assigned = decide(snapshot, unit, PROFILE, OBSERVER).assignments
    names = tuple(assigned.nodes[place] for place in assigned.node_index)
    snapshot.apply(PodsBound(assigned.pods, (FITS,) * len(names), names))
    watch = Stopwatch()
    snapshot.apply(PodsUnbound(assigned.pods))
    return watch.stop()


ROWS = (
    Row(
        "placement/10000-pods-5000-nodes",
        "ms",
        equal_pods(5_000, 10_000),
        f"one pod at a time, from {SAMPLE_PODS}",
        12,
        100,
    ),
    Row(
        "placement/100000-pods-50000-nodes",
        "ms",
        equal_pods(50_000, 100_000),
        f"one pod at a time, from {SAMPLE_PODS}",
        150,
        1_000,
    ),
    Row(
        "placement/1250-gangs-of-8",
        "ms",
        many_gangs,
        f"nothing kept between gangs, from {SAMPLE_GANGS}",
        200,
        1_000,
    ),
    Row("placement/hopeless-gang", "ms", hopeless, "nothing kept from earlier units", 5, 50),
    Row("placement/recheck-10000-pods", "ms", recheck, "placing them again"),
    Row("placement/undo-64-pods-5000-nodes", "us", undo(5_000), "unbinding pods that were bound", 25, 100),
    Row("placement/undo-64-pods-50000-nodes", "us", undo(50_000), "unbinding pods that were bound", 25, 100),
)
