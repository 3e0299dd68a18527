"""Helps for groups that are not ready: members that are missing, gates, a lower minimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.dsl import composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.explain.test_situations import assert_true
from tests.explain.world import World

NODES = (node("a", "8"),)
SHORT = replace(pod_group("g", gang(4), pods=2), admissible=False)


def nested(leaf: GroupPlan, level: int) -> GroupPlan:
    for above in ("inner", "root")[: level - 1]:
        leaf = replace(composite(above, gang(1), leaf), admissible=False)
    return leaf


@pytest.mark.parametrize("level", [1, 2, 3])
def test_members_to_add_or_a_lower_minimum_help_a_gang_that_is_short(level: int) -> None:
    world = World(NODES, nested(SHORT, level))

    told = world.explained()

    assert "add 2 members to PodGroup default/g" in told.messages
    assert "lower the minimum of PodGroup default/g from 4 to 2" in told.messages
    assert_true(world, told)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_gates_to_remove_help_a_gang_that_they_hold(level: int) -> None:
    gated = {"g": (pod("g-8"), pod("g-9"))}
    world = World(NODES, nested(SHORT, level), gated=gated)

    told = world.explained()

    assert "remove the scheduling gates of 2 pods of PodGroup default/g" in told.messages
    assert_true(world, told)


def test_members_beyond_what_a_unit_may_have_are_no_help_and_none_is_made() -> None:
    huge = replace(pod_group("g", gang(2**31 - 1), pods=2), admissible=False)

    told = World(NODES, huge).explained()

    assert told.messages == [f"lower the minimum of PodGroup default/g from {2**31 - 1} to 2"]


def test_members_for_which_there_is_no_room_are_no_help() -> None:
    told = World((node("a", "3"),), SHORT).explained()

    assert told.messages == ["lower the minimum of PodGroup default/g from 4 to 2"]


def test_two_short_gangs_that_are_both_needed_are_completed_together() -> None:
    leaves = (replace(SHORT, name="one"), replace(SHORT, name="two"))
    plan = replace(composite("root", gang(2), *leaves), admissible=False)

    told = World(NODES, plan).explained()

    assert "add 4 members to PodGroup default/one, PodGroup default/two" in told.messages
