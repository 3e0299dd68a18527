"""What is told of preemption: with whom it is possible, or the rule that forbids it."""

from __future__ import annotations

import pytest

from tests.dsl import gang, node, pod_group
from tests.explain.situations import LEVELS, on_level
from tests.explain.test_situations import assert_true
from tests.explain.world import Runner, World

NODES = (node("a", "4"), node("b", "4"))
PLAN = pod_group("g", gang(2), pods=2, cpu="3")


levels = pytest.mark.parametrize("level", LEVELS)


def busy(*runners: Runner, level: int, priority: int = 100, policy: str = "PreemptLowerPriority") -> World:
    return World(NODES, on_level(PLAN, level), runners, priority=priority, policy=policy)


@levels
def test_whom_a_unit_may_preempt_is_named_with_the_number_of_pods(level: int) -> None:
    told = busy(Runner("low", ("a", "b"), cpu="2"), level=level).explained()

    reason = told.root["PREEMPTION_POSSIBLE"].details
    assert (reason["units"], reason["pods"], reason["victims"]) == ("1", "2", "PodGroup default/low")


@levels
def test_a_policy_of_never_is_the_rule(level: int) -> None:
    told = busy(Runner("low", ("a",), cpu="2"), level=level, policy="Never").explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "NEVER"}


@levels
def test_nobody_lower_is_the_rule_and_who_would_have_to_go_is_a_help(level: int) -> None:
    world = busy(Runner("equal", ("a",), cpu="2", priority=100), level=level)

    told = world.explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "NOBODY_LOWER"}
    assert "remove 1 pod of Pod default/equal" in told.messages
    assert_true(world, told)


@levels
def test_a_unit_that_no_eviction_helps_is_told_so(level: int) -> None:
    world = World((node("a", "2"),), on_level(PLAN, level), (Runner("low", ("a",)),), priority=100)

    told = world.explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "UNRESOLVABLE"}
    assert not [each for each in told.messages if each.startswith("remove")]


@levels
def test_lower_units_that_are_not_enough_are_told_so(level: int) -> None:
    runners = (Runner("low", ("a",), cpu="2"), Runner("high", ("b",), cpu="2", priority=200))

    told = busy(*runners, level=level).explained()

    assert told.root["PREEMPTION_CANNOT_HELP"].details["rule"] in {"NO_FIT", "NOT_FOUND"}


@pytest.mark.parametrize("number", [1, 3])
def test_only_units_that_must_go_are_named(number: int) -> None:
    runners = tuple(Runner(f"r{i}", ("a",), cpu="1", priority=200) for i in range(4))
    world = World((node("a", "4"),), pod_group("g", gang(number), pods=number), runners, priority=100)

    told = world.explained()

    (removal,) = (each for each in told.helps if each.code.value == "REMOVE_PODS")
    assert (removal.count, len(removal.refs)) == (number, number)
    assert_true(world, told)
