"""What a list of clusters says of each."""

from __future__ import annotations

from muster.store.store import SqlStore
from tests.engine.started_engine import applying, started_engine
from tests.engine.tree_cluster import leaf, node
from tests.fakes.clock import FakeClock


async def test_kinds_of_which_there_is_nothing_are_left_out(store_url: str, clock: FakeClock) -> None:
    engine = await started_engine(SqlStore(store_url), clock)
    await engine.apply(applying([node("m"), node("n"), leaf("g")], "east"))

    told = {each.name: each.counts for each in await engine.list_clusters()}

    assert told["east"] == {"Node": 2, "PodGroup": 1}
    await engine.drain()
