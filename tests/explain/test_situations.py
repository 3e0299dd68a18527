"""Explain names the true cause with its numbers, on every level of a tree, and what it says would help does."""

from __future__ import annotations

import pytest

from muster.core.decision import Status
from tests.dsl import node, pod
from tests.explain.applied import applied, one_less
from tests.explain.situations import LEAF, LEVELS, SITUATIONS, Situation
from tests.explain.world import Explained, World

EVERYWHERE = [(each, level) for each in SITUATIONS for level in LEVELS]
everywhere = pytest.mark.parametrize(
    ("situation", "level"), EVERYWHERE, ids=[f"{each.name}, level {level}" for each, level in EVERYWHERE]
)


@everywhere
def test_the_group_that_fails_first_is_named_with_its_level_and_counts(
    situation: Situation, level: int
) -> None:
    told = situation.world(level).explained()

    first = told.root["FIRST_FAILURE"].details
    leaf = told.group(LEAF)
    assert (first["name"], first["level"]) == (LEAF, str(level))
    assert first["required"] == str(leaf.required) == str(situation.leaf.policy.minimum)
    assert int(first["satisfied"]) + int(first["remaining"]) <= leaf.required
    assert leaf.status in {Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE}


@everywhere
def test_the_reason_has_its_code_nodes_and_numbers(situation: Situation, level: int) -> None:
    told = situation.world(level).explained()

    reason = told.reasons(LEAF)[situation.code]
    assert reason.node_count == situation.node_count
    assert {key: reason.details.get(key) for key in situation.details} == situation.details


@everywhere
def test_the_expected_helps_are_told(situation: Situation, level: int) -> None:
    told = situation.world(level).explained()

    missing = [each for each in situation.helps if each not in told.messages]
    assert not missing, told.messages


@everywhere
def test_each_help_lets_the_unit_be_scheduled_and_one_less_does_not(situation: Situation, level: int) -> None:
    world = situation.world(level)

    told = world.explained()

    assert not world.schedules()
    assert_true(world, told)


def assert_true(world: World, told: Explained) -> None:
    """Carry out each help by itself, and then one less of it."""
    for help_ in told.helps:
        assert applied(world, help_).schedules(), help_.message
        if help_.proved:
            for less in one_less(world, help_):
                assert not less.schedules(), f"one less than: {help_.message}"


def test_a_pod_without_a_group_is_explained_like_a_group() -> None:
    nodes = (node("a", "1"), node("b", "4", unschedulable=True))
    world = World(nodes, pod("p", cpu="2"))

    told = world.explained()

    assert told.root["FIRST_FAILURE"].details["kind"] == "Pod"
    assert told.root["MISSING_ROOM"].details["missing"] == "1"
    assert told.messages == ["make 1 node schedulable again: b", "add 1 schedulable node like b"]
    assert_true(world, told)
