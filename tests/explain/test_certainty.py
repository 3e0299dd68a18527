"""What is told of the whole unit, wherever in its tree the cause is: how sure the verdict is, and whose room is kept."""

from __future__ import annotations

import pytest

from muster.plugins.profile import make_profile
from tests.dsl import composite, gang, node, pod, pod_group, rack
from tests.explain.situations import LEVELS, on_level
from tests.explain.test_situations import assert_true
from tests.explain.world import World

levels = pytest.mark.parametrize("level", LEVELS)
PORTS = tuple(pod(name, cpu=cpu, host_port=80) for name, cpu in (("x", "1"), ("y", "2"), ("z", "3")))
RIVALS = pod_group("rivals", gang(3), pods=PORTS)
TWO = (node("a", "9"), node("b", "9"))


@levels
def test_that_no_placement_exists_is_said_where_it_is_proved(level: int) -> None:
    world = World(TWO, on_level(RIVALS, level))

    told = world.explained()

    assert "SEARCH_PROVED" in told.root
    assert_true(world, told)


@levels
def test_a_search_that_spends_its_budget_is_told_with_it(level: int) -> None:
    racks = (*rack("r1", free=4), *rack("r2", free=4))
    groups = [pod_group(f"pg-{i}", gang(size), pods=size, same="rack") for i, size in enumerate((3, 2, 3))]
    profile = make_profile({"name": "p", "search": {"nodeBudget": 100}})

    told = World(racks, on_level(composite("crowd", gang(3), *groups), level), profile=profile).explained()

    assert told.root["SEARCH_UNDECIDED"].details["budget"] == "100"
    assert int(told.root["SEARCH_UNDECIDED"].details["steps"]) >= 100


@levels
def test_a_profile_that_never_searches_is_told_so(level: int) -> None:
    told = World(
        TWO, on_level(RIVALS, level), profile=make_profile({"name": "p", "greedyOnly": True})
    ).explained()

    assert "SEARCH_NOT_MADE" in told.root


@levels
def test_room_that_is_kept_for_others_is_counted_and_no_more_of_it_than_needed_is_asked_for(
    level: int,
) -> None:
    pair = pod_group("pair", gang(2), pods=2, cpu="2")
    world = World((node("a", "4"),), on_level(pair, level), promised=("a", "a"))

    told = world.explained()

    assert told.root["ROOM_PROMISED"].details == {"pods": "2"}
    assert "give up the room that is kept for 2 pods of other units" in told.messages
    assert_true(world, told)
