"""The storms on the queue as a state machine of Hypothesis, which looks for short stories with a bad end: see `queue_storm`."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import randoms

from tests.properties.queue_storm import Storm
from tests.properties.tree_storm import TreeStorm

RULES = 250
STEPS_AT_ONCE = 4
"""So that the noise lasts for a while before it stops: either goes on with the same chance."""
STORIES = int(os.environ.get("MUSTER_STORM_SEEDS", "40"))
PARTS = 4
"""Stories are told by so many tests of each kind, which run beside each other."""

chances = randoms(use_true_random=True)
"""Chance as it is: what Hypothesis draws prefers the ends, and a store that crashes at every tenth step loses all that happens."""


class QueueMachine(RuleBasedStateMachine):
    """What must hold is looked at after each step, and that nobody sleeps who could run whenever the noise stops."""

    kind: type[Storm] = Storm
    storm: Storm

    @initialize(chance=chances)
    def begin(self, chance: random.Random) -> None:
        self.storm = self.kind(chance)

    @rule(chance=chances)
    def go_on(self, chance: random.Random) -> None:
        self.storm.random = chance
        for _ in range(STEPS_AT_ONCE):
            self.storm.step()
            self.nothing_is_wrong()

    @rule()
    def rest(self) -> None:
        self.storm.rest()
        sleepers = list(self.storm.sleepers())
        assert not sleepers, (sleepers, self.storm.story)

    @invariant()
    def nothing_is_wrong(self) -> None:
        faults = list(self.storm.faults()) if hasattr(self, "storm") else []
        assert not faults, (faults, self.storm.story)


class TreeMachine(QueueMachine):
    kind = TreeStorm


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("machine", [QueueMachine, TreeMachine])
def test_no_story_ends_badly(machine: type[QueueMachine], part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.engine.backoff.SAFETY_NET_US", 10**18)
    told = seed(part)(type(f"{machine.__name__}{part}", (machine,), {}))
    run_state_machine_as_test(
        told,
        settings=settings(
            max_examples=STORIES // PARTS,
            stateful_step_count=RULES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
