"""What is told of domains: why each failed and by how much, on every level, and which one came closest."""

from __future__ import annotations

import pytest

from muster.core.decision import Status
from muster.core.explain.telling_recursion import MOST_DOMAINS
from tests.dsl import block, composite, gang, node, pod, pod_group, rack
from tests.dsl.groups import GroupPlan
from tests.explain.situations import LEAF, LEVELS, constrained, crew
from tests.explain.test_situations import assert_true
from tests.explain.world import World

NAMES = {1: "root", 2: "inner", 3: LEAF}
levels = pytest.mark.parametrize("level", LEVELS)


@levels
def test_every_domain_is_told_with_what_it_lacks_the_closest_first(level: int) -> None:
    told = constrained(level).explained()

    reasons = [each for each in told.group(NAMES[level]).reasons if each.code == "DOMAIN_RULED_OUT"]
    lacks = {each.details["value"]: (each.details["pods"], each.details["missing"]) for each in reasons}
    assert list(lacks.items()) == [("r2", ("1", "1")), ("r1", ("2", "2")), ("r3", ("3", "3"))]
    assert told.reasons(NAMES[level])["CLOSEST_DOMAIN"].details["value"] == "r2"


@levels
def test_helps_for_a_constrained_group_name_the_domain_and_are_true(level: int) -> None:
    world = constrained(level)

    told = world.explained()

    kind = "PodGroup" if level == 3 else "CompositePodGroup"
    assert f"drop the topology constraint rack of {kind} default/{NAMES[level]}" in told.messages
    assert "add 1 node like node-r2 with rack=r2" in told.messages
    assert f"lower the minimum of PodGroup default/{LEAF} from 4 to 3" in told.messages
    assert_true(world, told)


@levels
def test_a_domain_that_capacity_does_not_rule_out_is_tried_and_told_with_the_group_to_blame(
    level: int,
) -> None:
    leaf = crew(3, lambda name: pod(name, cpu="2" if name.endswith(("0", "1")) else "1500m"))
    nodes = tuple(node(name, "3", labels={"rack": "r1"}) for name in ("a", "b"))

    told = constrained(level, leaf=leaf, nodes=nodes).explained()

    reason = told.reasons(NAMES[level])["DOMAIN_FAILED"]
    assert reason.details["value"] == "r1"
    assert reason.details.get("blamed", LEAF) == LEAF
    assert {key: reason.details[key] for key in ("pods", "needed", "free", "largest")} == {
        "pods": "1",
        "needed": "1500m",
        "free": "2",
        "largest": "1",
    }
    assert told.group(NAMES[level]).tried == 1


def test_the_closest_domain_is_the_one_that_holds_most_of_the_group_though_capacity_rules_it_out() -> None:
    sizes = {"r1": ("3500m", "3500m", "1"), "r2": ("3", "2", "2")}
    nodes = tuple(
        node(f"{name}-{i}", cpu, labels={"rack": name})
        for name, cpus in sizes.items()
        for i, cpu in enumerate(cpus)
    )
    children = [pod_group(f"g{i}", gang(1), pods=1, cpu=cpu) for i, cpu in enumerate(("3", "2", "2", "1"))]

    told = World(nodes, composite("root", gang(4), *children, same="rack")).explained()

    assert told.root["CLOSEST_DOMAIN"].details["value"] == "r2"
    held = [
        (r.details["value"], r.details["held"]) for r in told.group("root").reasons if "held" in r.details
    ]
    assert held == [("r2", "3"), ("r1", "2")]
    assert told.group("root").satisfied == 3


@levels
def test_domains_beyond_the_closest_are_counted(level: int) -> None:
    nodes = tuple(each for number in range(20) for each in rack(f"r{number:02}", free=1 + number % 3))

    told = constrained(level, nodes=nodes).explained()

    more = told.reasons(NAMES[level])["MORE_DOMAINS"].details
    assert (more["domains"], more["ruledOut"]) == (str(20 - MOST_DOMAINS), str(20 - MOST_DOMAINS))


@levels
def test_a_label_that_no_node_has_is_named(level: int) -> None:
    world = constrained(level, same="zone")

    told = world.explained()

    assert told.reasons(NAMES[level])["NO_DOMAIN"].details == {"key": "zone"}
    assert told.root["FIRST_FAILURE"].details["name"] == NAMES[level]
    assert_true(world, told)


@levels
def test_members_in_two_domains_are_named_with_their_nodes(level: int) -> None:
    members = ("node-r1", "node-r2")
    leaf = pod_group(LEAF, gang(4), pods=2, bound=members)
    world = constrained(level, leaf=leaf, members=members)

    told = world.explained()

    reason = told.reasons(NAMES[level])["PINNED_APART"]
    assert reason.details == {"key": "rack", "node_names": "node-r1,node-r2"}
    assert_true(world, told)


def two_blocks() -> tuple[World, GroupPlan]:
    nodes = (*block("A", rack("A1", free=3), rack("A2", free=5)), *block("B", rack("B1", free=4)))
    plan = composite(
        "root",
        gang(2),
        composite(
            "inner",
            gang(2),
            pod_group("pg-1", gang(5), pods=5, same="rack"),
            pod_group("pg-2", gang(4), pods=4, same="rack"),
        ),
        pod_group("pg-3", gang(1), pods=1),
        same="block",
    )
    return World(nodes, plan), plan


def test_the_way_to_the_first_failure_shows_where_earlier_siblings_went() -> None:
    world, _ = two_blocks()

    told = world.explained()

    assert told.root["FIRST_FAILURE"].details | {"name": "pg-2", "level": "3", "satisfied": "3"} == (
        told.root["FIRST_FAILURE"].details
    )
    assert told.group("pg-1").domain_value == "A2"
    of_a1, of_a2 = (each for each in told.group("pg-2").reasons if each.code == "DOMAIN_RULED_OUT")
    assert (of_a1.details["value"], of_a1.details["pods"], of_a1.details["free"]) == ("A1", "1", "0")
    assert (of_a2.details["value"], of_a2.details["pods"], of_a2.details["free"]) == ("A2", "4", "0")


def test_helps_for_a_tree_over_two_labels_are_true() -> None:
    world, _ = two_blocks()

    told = world.explained()

    assert "add 1 node like node-A1 with block=A,rack=A1" in told.messages
    assert "lower the minimum of CompositePodGroup default/inner from 2 to 1" in told.messages
    assert_true(world, told)


def test_a_domain_is_blamed_on_the_group_below_that_fails_in_it() -> None:
    world, _ = two_blocks()

    told = world.explained()

    of_b = next(
        each
        for each in told.group("root").reasons
        if each.code.startswith("DOMAIN_") and each.details["value"] == "B"
    )
    assert of_b.details["blamed"] == "pg-1"
    assert (of_b.details["pods"], of_b.details["missing"]) == ("1", "1")


def test_groups_that_fail_beside_those_that_hold_are_told_in_a_tree_that_is_scheduled() -> None:
    plan = composite("root", gang(1), pod_group("fits", gang(2), pods=2), pod_group("large", gang(3), pods=3))

    told = World((node("a", "4"),), plan).explained()

    assert told.group("root").status is Status.SUCCESS
    assert told.reasons("large")["MISSING_ROOM"].details["missing"] == "1"
    assert "FIRST_FAILURE" not in told.root
    assert not told.helps


def test_pods_beyond_the_minimum_are_told_with_what_they_lack() -> None:
    told = World((node("a", "2"),), pod_group("g", gang(1), pods=5)).explained()

    assert told.group("g").satisfied == 2
    assert told.reasons("g")["MISSING_ROOM"].details["pods"] == "3"
