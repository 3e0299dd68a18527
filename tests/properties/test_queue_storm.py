"""A queue that loses nothing, whatever happens to it, in whatever order: see `queue_storm`."""

from __future__ import annotations

import os
import random

import pytest

from tests.properties.queue_storm import Storm
from tests.properties.tree_storm import TreeStorm

SEEDS = range(int(os.environ.get("MUSTER_STORM_SEEDS", "40")))
STEPS = 500
ROUNDS = 25


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [Storm, TreeStorm])
def test_invariants_hold_after_each_step_and_no_unit_sleeps_that_could_run(
    kind: type[Storm], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.backoff.SAFETY_NET_US", 10**18)
    storm = kind(random.Random(seed))
    for _ in range(ROUNDS):
        for _ in range(STEPS // ROUNDS):
            storm.step()
            faults = list(storm.faults())
            assert not faults, (faults, storm.story[-12:])
        storm.rest()
        faults = [*storm.faults(), *storm.sleepers()]
        assert not faults, (faults, storm.story[-30:])
