"""What is told of preemption: with whom it is possible, or the rule that forbids it."""

from __future__ import annotations

import pytest

from tests.dsl import gang, node, pod_group
from tests.explain.test_situations import assert_true
from tests.explain.world import Runner, World

NODES = (node("a", "4"), node("b", "4"))
PLAN = pod_group("g", gang(2), pods=2, cpu="3")


def busy(*runners: Runner, priority: int = 100, policy: str = "PreemptLowerPriority") -> World:
    return World(NODES, PLAN, runners, priority=priority, policy=policy)


def test_whom_a_unit_may_preempt_is_named_with_the_number_of_pods() -> None:
    told = busy(Runner("low", ("a", "b"), cpu="2")).explained()

    reason = told.root["PREEMPTION_POSSIBLE"].details
    assert (reason["units"], reason["pods"], reason["victims"]) == ("1", "2", "PodGroup default/low")


def test_a_policy_of_never_is_the_rule() -> None:
    told = busy(Runner("low", ("a",), cpu="2"), policy="Never").explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "NEVER"}


def test_nobody_lower_is_the_rule_and_who_would_have_to_go_is_a_help() -> None:
    world = busy(Runner("equal", ("a",), cpu="2", priority=100))

    told = world.explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "NOBODY_LOWER"}
    assert "remove 1 pod of Pod default/equal" in told.messages
    assert_true(world, told)


def test_a_unit_that_no_eviction_helps_is_told_so() -> None:
    world = World((node("a", "2"),), PLAN, (Runner("low", ("a",)),), priority=100)

    told = world.explained()

    assert told.root["PREEMPTION_FORBIDDEN"].details == {"rule": "UNRESOLVABLE"}
    assert not [each for each in told.messages if each.startswith("remove")]


def test_lower_units_that_are_not_enough_are_told_so() -> None:
    runners = (Runner("low", ("a",), cpu="2"), Runner("high", ("b",), cpu="2", priority=200))

    told = busy(*runners).explained()

    assert told.root["PREEMPTION_CANNOT_HELP"].details["rule"] in {"NO_FIT", "NOT_FOUND"}


@pytest.mark.parametrize("number", [1, 3])
def test_only_units_that_must_go_are_named(number: int) -> None:
    runners = tuple(Runner(f"r{i}", ("a",), cpu="1", priority=200) for i in range(4))
    world = World((node("a", "4"),), pod_group("g", gang(number), pods=number), runners, priority=100)

    told = world.explained()

    (removal,) = (each for each in told.helps if each.code.value == "REMOVE_PODS")
    assert (removal.count, len(removal.refs)) == (number, number)
    assert_true(world, told)
