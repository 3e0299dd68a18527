"""Preemption through the cycles of a real engine whose workers answer late: what changed meanwhile counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.core.decision import DecisionCode
from muster.engine import registry
from muster.engine.ports import DecisionRecord, UnitState
from tests.engine.held_pool import BusyPool, HeldPool
from tests.engine.tree_cluster import leaf, node, pods
from tests.properties.tree_engine import MOST_STEPS, TreeEngine, all_pods

LOW = [replace(pod, group="") for pod in pods(leaf("low"), 2, priority=1, on="n")]
HIGH = leaf("high", 2, priority=10)
MEMBERS = pods(HIGH, 2, priority=10)


@pytest.fixture
async def engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[TreeEngine]:
    """A node that two pods of low priority fill, and a gang that a worker has in hand, or that waits for one."""
    monkeypatch.setattr(registry, "WorkerPool", getattr(request, "param", HeldPool))
    running = TreeEngine(str(tmp_path))
    await running.start()
    await running.apply([node("n", cpu=2), *LOW])
    await running.apply([HIGH, *MEMBERS])
    await until_held(running)
    yield running
    await running.stop()
    assert running.faults == []


async def until_held(engine: TreeEngine) -> None:
    for _ in range(MOST_STEPS):
        if engine.pool.held:
            return
        await asyncio.sleep(0)
    raise AssertionError("no worker was asked")


def last(engine: TreeEngine) -> DecisionRecord | None:
    return engine.service.cluster.last_decisions.get(HIGH.key)


def bound(engine: TreeEngine) -> set[str]:
    return {pod.name for pod in all_pods(engine.state) if pod.node_name}


async def test_victims_go_once_the_worker_has_answered(engine: TreeEngine) -> None:
    before = bound(engine)

    await engine.rest()

    assert before == {"low-0", "low-1"}
    assert bound(engine) == {"high-0", "high-1"}


async def test_a_pod_that_took_the_name_of_a_victim_is_not_evicted_in_its_place(engine: TreeEngine) -> None:
    await engine.delete([LOW[0].key], force=True)
    [safe] = pods(leaf("low"), 1, priority=50, on="n")
    await engine.apply([replace(safe, group="")])

    await engine.rest()

    record = last(engine)
    assert record is not None
    assert record.decision.code is DecisionCode.UNSCHEDULABLE
    assert bound(engine) == {"low-0", "low-1"}


async def test_a_victim_that_is_gone_meanwhile_is_not_waited_for(engine: TreeEngine) -> None:
    await engine.delete([pod.key for pod in LOW], force=True)

    await engine.rest()

    record = last(engine)
    assert record is not None
    assert record.decision.code is DecisionCode.SCHEDULED
    assert bound(engine) == {"high-0", "high-1"}


async def test_a_preemptor_that_is_deleted_meanwhile_evicts_nobody(engine: TreeEngine) -> None:
    await engine.delete([HIGH.key, *(pod.key for pod in MEMBERS)], force=True)

    await engine.rest()

    assert bound(engine) == {"low-0", "low-1"}
    assert engine.service.cluster.waits.units() == []


async def test_a_preemptor_that_falls_short_meanwhile_evicts_nobody(engine: TreeEngine) -> None:
    await engine.delete([MEMBERS[0].key], force=True)

    await engine.rest()

    row = engine.service.cluster.queue.get(HIGH.key)
    assert row is not None
    assert row.state is UnitState.GATED
    assert bound(engine) == {"low-0", "low-1"}


async def test_a_restart_in_the_middle_decides_again(engine: TreeEngine) -> None:
    await engine.restart()

    await engine.rest()

    assert bound(engine) == {"high-0", "high-1"}


@pytest.mark.parametrize("engine", [BusyPool], indirect=True)
async def test_a_unit_that_waits_for_its_worker_lets_a_higher_one_go_first_and_is_not_evicted_for_it(
    engine: TreeEngine,
) -> None:
    top = leaf("top", 2, priority=20)
    await engine.apply([top, *pods(top, 2, priority=20)])
    await engine.delete([pod.key for pod in LOW], force=True)

    await engine.rest()

    assert bound(engine) == {"top-0", "top-1"}
    assert {pod.name for pod in all_pods(engine.state)} == {"top-0", "top-1", "high-0", "high-1"}
