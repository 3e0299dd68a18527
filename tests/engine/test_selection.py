"""What List and Watch select: all of one moment, in order, while other calls get their turn."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from operator import attrgetter

import pytest

from muster.engine import selection
from muster.engine.api import ObjectFilter
from muster.engine.cluster_state import ClusterState
from muster.engine.errors import UnavailableError
from muster.engine.listing import listed
from muster.engine.selection import select
from muster.model.meta import POD
from muster.model.pod import Pod
from muster.store.store import SqlStore
from tests.engine.started_registry import OVER, break_half_way, put, started_with_a_node, until_available
from tests.fakes.clock import FakeClock

PODS = ObjectFilter(kinds=frozenset([POD]))


def state_of(names: list[tuple[str, str]]) -> ClusterState:
    state = ClusterState("default", frozenset())
    for ordinal, (namespace, name) in enumerate(names):
        pod = Pod(name=name, namespace=namespace, ordinal=ordinal)
        state.put(pod.key, pod)
    return state


@pytest.mark.parametrize("seed", range(20))
async def test_many_objects_come_in_the_order_of_namespace_and_name(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(selection, "SLICE", chance.choice([1, 2, 7, 50]))
    namespaces = [f"space-{each}" for each in range(chance.randint(1, 4))]
    skewed = chance.random() < 0.5
    names = {
        (chance.choice(namespaces), "a" * chance.randint(1, 3) if skewed else f"n{chance.random()}")
        for _ in range(chance.choice([0, 1, 3, 200]))
    }
    mixed = sorted(names)
    chance.shuffle(mixed)

    found = await select(state_of(mixed), PODS)

    assert list(map(attrgetter("namespace", "name"), found)) == sorted(names)


async def test_what_changes_while_many_are_looked_at_is_not_seen() -> None:
    names = [("default", f"pod-{each:05}") for each in range(5 * selection.SLICE)]
    state = state_of(names)
    selecting = asyncio.ensure_future(select(state, PODS))
    turns = 0
    while not selecting.done():
        await asyncio.sleep(0)
        pod = Pod(name=f"new-{turns}", namespace="default", ordinal=len(names) + turns)
        state.put(pod.key, pod)
        if turns < 5:
            state.remove(Pod(name=f"pod-{turns:05}", namespace="default").key)
        turns += 1

    assert [item.name for item in selecting.result()] == [name for _, name in names]
    assert turns > 10


async def test_what_may_have_been_lost_while_it_was_looked_at_is_not_listed(
    sqlite_database: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "SLICE", 1)
    registry, service = await started_with_a_node(SqlStore(sqlite_database), clock)
    for each in range(8):
        service.write(partial(put, name=f"node-{each}"))
    await service.durable()
    listing = asyncio.ensure_future(listed(service, ObjectFilter(kinds=frozenset(["Node"]))))
    await asyncio.sleep(0)

    with pytest.raises(ZeroDivisionError):
        service.write(break_half_way)

    with pytest.raises(UnavailableError):
        await listing
    await until_available(service)
    assert len((await listed(service, ObjectFilter(kinds=frozenset(["Node"])))).objects) == 9
    await registry.close(OVER)
