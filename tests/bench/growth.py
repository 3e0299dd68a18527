"""How CPU time of decisions grows with the number of nodes: the same question on 1 000, 5 000, 20 000 and 50 000 nodes.

The value is the exponent: 1 is as the nodes, 0 not at all. Nodes a rack, and what runs on a node, stay the same; so do
the units that come.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.bench import core_placement, preemption, topology
from tests.bench.place import Place
from tests.bench.row import Curve, Measured, Row
from tests.bench.stopwatch import best_of, exponent
from tests.bench.upstream.decided import Stage
from tests.bench.upstream.workload import RACK, ZONE, Workload

SIZES = (1_000, 5_000, 20_000, 50_000)
RUNS = 5
Run = Callable[[], object]


def equal_pods(size: int) -> Run:
    return partial(core_placement.placed, core_placement.cluster(size), (core_placement.gang(0, 10_000),))


def gangs_of_8(size: int) -> Run:
    return partial(core_placement.placed, core_placement.cluster(size), core_placement.gangs(100, 8))


def hopeless_gang(size: int) -> Run:
    unit = core_placement.gang(0, 8, core_placement.FITS_NOWHERE)
    return partial(core_placement.refused_afresh, core_placement.cluster(size), unit)


def best_block(size: int) -> Run:
    return partial(topology.placed, topology.cluster(size), topology.tree(topology.WANTED))


def infeasible_tree(size: int) -> Run:
    return partial(topology.refused, topology.cluster(size), topology.tree(topology.TOO_MANY))


def preempting_gang(size: int) -> Run:
    cluster = preemption.full(1, size)
    return partial(preemption.preempted, cluster, preemption.MOVING, cluster.gang(500))


def workload(made: Workload) -> Callable[[int], Run]:
    """Deciding a workload of upstream's on so many nodes."""
    return lambda size: Stage(made.on(size)).decide_all


SUBJECTS: dict[str, Callable[[int], Run]] = {
    "10000-pods": equal_pods,
    "100-gangs-of-8": gangs_of_8,
    "hopeless-gang": hopeless_gang,
    "best-block": best_block,
    "infeasible-tree": infeasible_tree,
    "preempting-gang-of-500": preempting_gang,
    "100-pods-by-themselves": workload(Workload("", 0, 100, groups=0)),
    "3-gangs-of-1000": workload(Workload("", 0, 3, pods=1_000)),
    "100-gangs-of-3": workload(Workload("", 0, 100, pods=3)),
    "100-groups-of-4-in-racks": workload(Workload("", 0, 100, pods=4, group_key=RACK)),
    "3-groups-of-500-in-racks": workload(Workload("", 0, 3, pods=500, group_key=RACK)),
    "100-trees-of-6": workload(Workload("", 0, 100, groups=2, pods=3)),
    "50-trees-of-8-in-zones-and-racks": workload(
        Workload("", 0, 50, groups=2, pods=4, root_key=ZONE, group_key=RACK)
    ),
}


def curve(subject: Callable[[int], Run], sizes: tuple[int, ...] = SIZES, runs: int = RUNS) -> Curve:
    return Curve({size: best_of(subject(size), runs).cpu * 1e3 for size in sizes})


def growing(subject: Callable[[int], Run]) -> Callable[[Place], Measured]:
    def measure(_: Place) -> Measured:
        found = curve(subject)
        times = found.milliseconds
        return Measured(exponent(times), sum(times.values()) / 1e3, 1.0, found)

    return measure


ROWS = tuple(
    Row(f"growth/{name}", "exponent", growing(subject), "time as the number of nodes", 1.1)
    for name, subject in SUBJECTS.items()
)
