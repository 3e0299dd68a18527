"""A unit of the queue as calls show it: with its place in line, and with what is known of it now."""

from __future__ import annotations

from muster.engine.api import PositionedUnit
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import unbound_pods, why_gated
from muster.engine.ports import QueuedUnit, UnitState
from muster.model.variations import varied


def positioned(cluster: Cluster, row: QueuedUnit, position: int) -> PositionedUnit:
    """The unit at this place among the active ones. A gated one tells what it is short of at present."""
    if row.state is UnitState.GATED:
        row = varied(row, message=why_gated(cluster.state, row.key))
    pending = sum(unbound_pods(cluster.state, row.key))
    return PositionedUnit(row, position, pending, cluster.reservations.reason(row.key))
