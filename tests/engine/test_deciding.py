"""Where a unit is decided, and how often the same work is done for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision
from muster.core.framework import Profile
from muster.core.observer import Observer
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.engine.deciding import Decider, Verdict
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.pod import Container, Pod, Resources
from tests.engine.held_pool import HeldPool
from tests.engine.preempting_cluster import full_cluster
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, node, pods
from tests.fakes.clock import FakeClock

LARGE = leaf("large", 4)


class Placing:
    """Counts how often a unit is placed in the event loop."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, snapshot: Snapshot, unit: Unit, profile: Profile, observer: Observer) -> Decision:
        self.times += 1
        return decide_and_assume(snapshot, unit, profile, observer)


@pytest.fixture
def placing(monkeypatch: pytest.MonkeyPatch) -> Placing:
    counted = Placing()
    monkeypatch.setattr("muster.engine.deciding.decide_and_assume", counted)
    return counted


async def test_a_unit_that_waits_for_its_search_is_not_placed_greedily_again_until_something_changed(
    placing: Placing, clock: FakeClock
) -> None:
    trees, pool = unsearched(), HeldPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())

    first = await asked(decider, trees)
    second = await asked(decider, trees)
    assert placing.times == 1
    trees.apply(node("another", cpu=1))
    third = await asked(decider, trees)

    assert placing.times == 2
    pool.answer()
    decided = [(await each).decision for each in (first, second, third)]
    assert decided[0] == decided[1]


async def test_a_dry_run_of_a_unit_that_preempts_shares_the_answer_of_its_own_cycle(clock: FakeClock) -> None:
    trees, group = full_cluster()
    pool = WorkerPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())
    unit = build_unit(trees.cluster, group.key)

    first, second = await asyncio.gather(decider.verdict(unit), decider.verdict(unit))
    await pool.close()

    assert first.decision.preemption is not None
    assert second.decision.preemption is first.decision.preemption


def unsearched() -> TreeCluster:
    """Sizes that go together in room only for a search: ten cores for ten, and each pod finds room of its own."""
    trees = TreeCluster(*(node(f"node-{i}", cpu=cpu) for i, cpu in enumerate((4, 4, 2))))
    some = pods(LARGE, 4)
    trees.apply(LARGE, *sized(some[:2], "3"), *sized(some[2:], "2"))
    return trees


def sized(some: list[Pod], cpu: str) -> list[Pod]:
    containers = (Container(resources=Resources(requests={"cpu": cpu})),)
    return [replace(each, spec=replace(each.spec, containers=containers)) for each in some]


async def asked(decider: Decider, trees: TreeCluster) -> asyncio.Task[Verdict]:
    """A verdict that waits for its worker by now."""
    task = asyncio.create_task(decider.verdict(build_unit(trees.cluster, LARGE.key)))
    await asyncio.sleep(0)
    assert not task.done()
    return task
