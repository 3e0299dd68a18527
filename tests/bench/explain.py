"""What an explanation costs: of trees and gangs of 512 pods that 5 000 nodes refuse, with and without what would help.

The cluster is that of `topology`. The plain form is to decide: an explanation says why, and should cost a few decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from muster.core.decide import decide
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explain import explain
from muster.core.explain.what_would_help import what_would_help
from muster.core.observer import NullObserver
from muster.core.preemption_units import DisruptionBudgets, DisruptionUnits, units_of_rows
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import POD, POD_GROUP, ObjectKey
from tests.bench.place import Place
from tests.bench.row import Measured, Row
from tests.bench.stopwatch import best_of
from tests.bench.topology import GROUPS, PODS_A_GROUP, PROFILE, TOO_MANY, cluster, tree

SIZE = 5_000
PODS = GROUPS * PODS_A_GROUP
RUNNING = range(10**6, 10**6 + 60_000)


def told(unit: Unit) -> Callable[[Place], Measured]:
    """Milliseconds until it is said why the unit waits."""

    def measure(_: Place) -> Measured:
        snapshot = cluster(SIZE)
        best = best_of(partial(explain, snapshot, unit, PROFILE))
        return Measured(best.wall_ms, best.cpu, deciding_ms(snapshot, unit))

    return measure


def helped(unit: Unit) -> Callable[[Place], Measured]:
    """Milliseconds until it is said what would help."""

    def measure(_: Place) -> Measured:
        snapshot = cluster(SIZE)
        explanation, known = explain(snapshot, unit, PROFILE), Circumstances(running(snapshot))
        best = best_of(partial(what_would_help, snapshot, unit, PROFILE, explanation, known), 2)
        return Measured(best.wall_ms, best.cpu, deciding_ms(snapshot, unit))

    return measure


def deciding_ms(snapshot: Snapshot, unit: Unit) -> float:
    return best_of(partial(decide, snapshot, unit, PROFILE, NullObserver())).wall_ms


def running(snapshot: Snapshot) -> DisruptionUnits:
    """Every pod that runs, as a unit of its own of low priority."""
    ids = [pod for pod in RUNNING if snapshot.pods.knows_any((pod,))]
    rows = ((ObjectKey(POD, "default", f"p-{pod}"), 1, pod, (pod,)) for pod in ids)
    return units_of_rows(rows, DisruptionBudgets())


def gang(topology: str | None, number: int = PODS) -> Unit:
    pods = PendingPods(tuple(range(number)), (TOO_MANY,) * number)
    key = ObjectKey(POD_GROUP, "default", "gang")
    return Unit(GroupTree(key, is_gang=True, minimum=number, topology_key=topology, pods=pods))


UNITS = {
    "tree-that-no-rack-holds": tree(TOO_MANY),
    "gang-larger-than-a-block": gang("block"),
    "gang-larger-than-the-cluster": gang(None, 20_000),
}
ROWS = tuple(
    Row(f"explain/{what}/{name}", "ms", measure(unit), "deciding it")
    for what, measure in (("why", told), ("what-would-help", helped))
    for name, unit in UNITS.items()
)
