"""What an explanation costs: `python tests/bench/explain.py` explains trees of 500 pods on 5 000 nodes, with and without helps.

The cluster is that of `topology`; times are the best of some runs, wall and CPU.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explain import explain
from muster.core.explain.what_would_help import what_would_help
from muster.core.preemption_units import DisruptionBudgets, DisruptionUnits, units_of_rows
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import POD, POD_GROUP, ObjectKey
from tests.bench.topology import GROUPS, PODS_A_GROUP, PROFILE, TOO_MANY, WANTED, cluster, say, timed, tree

SIZE = 5_000
PODS = GROUPS * PODS_A_GROUP


def main() -> None:
    """Print a line for each unit, then how many helps were found."""
    snapshot = cluster(SIZE)
    others = running(snapshot)
    report("a tree that no rack holds", snapshot, tree(TOO_MANY), others)
    report("a gang larger than a block", snapshot, gang(TOO_MANY, "block"), others)
    report("a gang larger than the cluster", snapshot, gang(TOO_MANY, None, 20_000), others)
    report("a tree that fits", snapshot, tree(WANTED), others)


def report(name: str, snapshot: Snapshot, unit: Unit, others: DisruptionUnits) -> None:
    """Times of one unit."""
    told = explain(snapshot, unit, PROFILE)
    known = Circumstances(others)
    helps = what_would_help(snapshot, unit, PROFILE, told, known)
    show(name, lambda: explain(snapshot, unit, PROFILE))
    show(f"  {len(helps)} helps", lambda: what_would_help(snapshot, unit, PROFILE, told, known))
    for help_ in helps:
        say(f"    {help_.message[:100]}")


def show(name: str, run: Callable[[], object]) -> None:
    timing = timed(run)
    say(f"{name:34} wall {timing.wall:9.3f} ms   cpu {timing.cpu:9.3f} ms")


def running(snapshot: Snapshot) -> DisruptionUnits:
    """Every pod that runs, as a unit of its own of low priority."""
    ids = [pod for pod in range(10**6, 10**6 + 60_000) if snapshot.pods.knows_any((pod,))]
    rows = ((ObjectKey(POD, "default", f"p-{pod}"), 1, pod, (pod,)) for pod in ids)
    return units_of_rows(rows, DisruptionBudgets())


def gang(signature: int, topology: str | None, number: int = PODS) -> Unit:
    pods = PendingPods(tuple(range(number)), (signature,) * number)
    key = ObjectKey(POD_GROUP, "default", "gang")
    return Unit(GroupTree(key, is_gang=True, minimum=number, topology_key=topology, pods=pods))


if __name__ == "__main__":
    main()
