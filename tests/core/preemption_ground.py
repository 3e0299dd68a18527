"""The ground that preemption simulates on, as it is when a unit's cycle begins to preempt."""

from __future__ import annotations

from muster.core.lockstep import Lockstep
from muster.core.observer import NullObserver
from muster.core.pod_placement import placer_of
from muster.core.preemption.ground import Ground
from muster.core.preemption.victims import victims_of
from muster.core.recursion import Recursion
from muster.core.search.packing import Budget
from muster.core.tree import Unit
from muster.core.trial import Ledger
from tests.dsl.preemption import BusyCluster

ENOUGH = 10**6


def ground_on(cluster: BusyCluster, unit: Unit, steps: int = ENOUGH) -> Ground:
    """The unit over its potential victims, with so many steps to spend."""
    assert unit.victims is not None
    snapshot = cluster.snapshot
    placer = placer_of(snapshot, cluster.profile)
    rehearsal = Lockstep(snapshot, unit, cluster.profile, placer)
    recursion = Recursion(
        snapshot, unit, cluster.profile, placer, Ledger(snapshot, placer), NullObserver(), rehearsal
    )
    return Ground(recursion, victims_of(snapshot, unit.victims), Budget(steps))
