"""All rows, in the order in which they run: the core first, then the store, then whole services."""

from __future__ import annotations

from tests.bench import core_placement, explain, preemption, store_commit, topology
from tests.bench.upstream import decided

ROWS = (
    *core_placement.ROWS,
    *topology.ROWS,
    *preemption.ROWS,
    *explain.ROWS,
    *store_commit.ROWS,
    *decided.ROWS,
)
