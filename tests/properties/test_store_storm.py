"""An engine that loses nothing, whatever its store does: see `store_storm`."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from tests.engine.held_pool import HeldPool
from tests.properties.faulty_store import Fault
from tests.properties.store_storm import StoreStorm
from tests.properties.tree_engine import fresh_folder

SEEDS = range(int(os.environ.get("MUSTER_STORM_SEEDS", "20")))
STEPS = 200
ROUNDS = 8


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers answer when they are told, reloads wait for nobody, and the safety net is out of reach."""
    monkeypatch.setattr("muster.engine.registry.WorkerPool", HeldPool)
    monkeypatch.setattr("muster.engine.registry.RELOAD_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("muster.engine.deciding.INLINE_PODS", 0)
    monkeypatch.setattr("muster.engine.backoff.SAFETY_NET_US", 10**18)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_and_nothing_told_was_otherwise_while_the_store_fails(seed: int) -> None:
    with fresh_folder() as folder:
        struck = asyncio.run(stormed(folder, seed))

    assert struck.total() > 0


@pytest.mark.usefixtures("hurried")
def test_storms_meet_every_fault() -> None:
    struck = Counter[Fault]()
    for seed in range(1_000, 1_003):
        with fresh_folder() as folder:
            struck += asyncio.run(stormed(folder, seed))

    assert set(struck) == set(Fault)


async def stormed(folder: str, seed: int) -> Counter[Fault]:
    """Which faults struck how often."""
    storm = StoreStorm(folder, seed)
    await storm.start()
    for _ in range(ROUNDS):
        for _ in range(STEPS // ROUNDS):
            await storm.step_once()
            assert not storm.faults, (storm.faults, storm.story[-12:])
        faults = await storm.rest_and_judge()
        assert not faults, (faults, storm.story[-30:])
    await storm.restart()
    await storm.stop()
    return storm.struck
