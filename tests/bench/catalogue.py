"""All rows, in the order in which they run: the core first, then the store, then whole services."""

from __future__ import annotations

from tests.bench import (
    core_placement,
    end_to_end,
    explain,
    explain_served,
    growth,
    hopeless_units,
    preemption,
    search_families,
    simulation,
    size,
    store_commit,
    topology,
    tracing,
    watching,
)
from tests.bench.upstream import decided, through_grpc

ROWS = (
    *core_placement.ROWS,
    *topology.ROWS,
    *preemption.ROWS,
    *search_families.ROWS,
    *explain.ROWS,
    *growth.ROWS,
    *store_commit.ROWS,
    *end_to_end.ROWS,
    *watching.ROWS,
    *explain_served.ROWS,
    *simulation.ROWS,
    *size.ROWS,
    *hopeless_units.ROWS,
    *tracing.ROWS,
    *decided.ROWS,
    *through_grpc.ROWS,
)
