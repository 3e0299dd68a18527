"""Which event wakes which unit: every reason against everything that may happen, with the safety net out of reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muster.core.pins import PINNED_OUTSIDE
from muster.engine.layouts import TOO_MANY_GROUPS
from muster.engine.ports import UnitState
from muster.engine.queueing_hints import HINTS, INSUFFICIENT, EventKind, Help, help_of, hints_for, may_help
from muster.engine.unit_faults import UNIT_TOO_LARGE
from muster.plugins.profile import default_profile
from tests import dsl
from tests.engine.queue_worlds import (
    ACTS,
    TAINT,
    WORLDS,
    QueueWorld,
    busy,
    deleted,
    node,
    ours,
    outcome_in_flight,
    outcome_of,
    unit,
)
from tests.engine.tree_cluster import leaf
from tests.engine.tree_worlds import TREE_WORLDS

IN_VAIN = {
    "HOST_PORTS": {"the node grows", "the node is labelled", "the node moves to another zone"},
    "TOPOLOGY_SPREAD": {
        "a node comes that takes nothing",
        "the node grows",
        "the node is labelled",
        "the node is tainted",
        "the node goes",
    },
    "POD_AFFINITY": {
        "a good node comes",
        "a node comes that takes nothing",
        "the node grows",
        "the node is labelled",
        "the node moves to another zone",
        "the node goes",
        "the pod is deleted",
        "the pod finishes",
    },
    "POD_ANTI_AFFINITY": {
        "the node grows",
        "the node is labelled",
        "the node moves to another zone",
        "the node goes",
    },
    "PINNED_APART": {"a good node comes", "the node grows", "the node is labelled", "the node goes"},
    "NO_DOMAIN": {"the node grows", "the node moves to another zone"},
}
"""What does not cure the reason in that world, though another of the kind may."""

IN_VAIN |= {
    "INSUFFICIENT_DOMAIN by affinity": IN_VAIN["POD_AFFINITY"],
    "INSUFFICIENT_DOMAIN of a tree by affinity": IN_VAIN["POD_AFFINITY"],
    "INSUFFICIENT_DOMAIN by anti-affinity": IN_VAIN["POD_ANTI_AFFINITY"],
    "INSUFFICIENT_DOMAIN of a tree by anti-affinity": IN_VAIN["POD_ANTI_AFFINITY"],
    "INSUFFICIENT_DOMAIN by spread": IN_VAIN["TOPOLOGY_SPREAD"]
    | {"the pod is deleted", "the pod finishes", "the pod is leaving", "the pod gets other labels"},
}
ALL_WORLDS = WORLDS | TREE_WORLDS
INCURABLE = {code for code, hints in HINTS.items() if not hints}
"""Faults of the unit itself: what happens around it is of no use."""

UNREACHED = {PINNED_OUTSIDE, TOO_MANY_GROUPS, UNIT_TOO_LARGE}
"""Every domain of an ancestor that a tree is tried in holds all members that run below it; the others take a large unit."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "queue.md"
_SIGNS = {Help.NEVER: "", Help.WHERE_ADMITTED: "node", Help.WHERE_SELECTED: "pod", Help.ALWAYS: "yes"}
_SIGNS[Help.WHERE_ADMITTED | Help.WHERE_SELECTED] = "node or pod"


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("world", ALL_WORLDS)
def test_an_event_that_cures_a_reason_has_the_unit_placed_and_one_that_cannot_help_leaves_it_alone(
    world: str, act: str
) -> None:
    outcome = outcome_of(ALL_WORLDS[world](), act)

    assert outcome.placed == outcome.cured
    assert outcome.attempts == (outcome.cured or act in IN_VAIN.get(world, ()))


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("world", ALL_WORLDS)
def test_an_event_that_cures_a_reason_while_the_unit_is_being_decided_is_not_missed(
    world: str, act: str
) -> None:
    outcome = outcome_in_flight(ALL_WORLDS[world](), act)

    assert outcome.placed == outcome.cured


@pytest.mark.parametrize("world", ALL_WORLDS)
def test_a_unit_fails_for_the_reason_that_its_world_is_named_for_and_for_none_without_hints(
    world: str,
) -> None:
    made = ALL_WORLDS[world]()

    made.to_second_failure()

    reasons = made.cluster.queue.rows[made.unit].reasons
    assert world.split(maxsplit=1)[0] in reasons
    assert {code for code in reasons if not code.startswith(INSUFFICIENT)} <= set(HINTS)


def test_there_is_a_world_for_every_reason_that_has_hints() -> None:
    assert {world.split()[0] for world in ALL_WORLDS} >= set(HINTS) - UNREACHED


def test_every_reason_but_faults_of_the_unit_has_a_cure_among_the_events() -> None:
    cured = {
        world for world, made in ALL_WORLDS.items() if any(outcome_of(made(), act).cured for act in ACTS)
    }

    assert set(ALL_WORLDS) - cured == INCURABLE - UNREACHED


def test_after_the_first_failure_an_event_that_helps_has_the_unit_tried_at_once() -> None:
    world = WORLDS["INSUFFICIENT_CPU"]()
    world.cycles()

    deleted("busy")(world)
    world.cycles()

    assert world.bound() == {"unit"}


def test_room_that_is_too_little_for_one_pod_wakes_nobody() -> None:
    small = ours(dsl.pod("small", cpu="1"), on="n")
    world = QueueWorld(node(), busy("3"), small, unit("2"))
    world.cycles()
    before = world.attempts

    world.delete(small)
    world.cycles()

    assert world.attempts == before


def test_room_that_is_enough_with_those_gone_that_may_be_preempted_wakes_the_unit() -> None:
    """Evicting for it alone would not have been enough before."""
    low = ours(dsl.pod("low", cpu="1", priority=1), on="n")
    equal = ours(dsl.pod("equal", cpu="3", priority=5), on="n")
    world = QueueWorld(node(), low, equal, unit("4", priority=5))
    world.cycles()

    world.delete(equal)
    world.cycles()
    world.cycles()

    assert world.bound() == {"unit"}


def test_a_gang_of_several_kinds_is_woken_by_what_its_reasons_do_not_name() -> None:
    """The first kind takes the only node that the second can use, and its own is cordoned: no reason tells of that."""
    gang = leaf("unit", 2, workload="")
    any_disk = ours(dsl.pod("a", cpu="4"), group="unit")
    only_ssd = ours(dsl.pod("b", cpu="3", node_selector={"disk": "ssd"}), group="unit")
    other = node("other", labels={"disk": "hdd"}, unschedulable=True)
    world = QueueWorld(node(labels={"disk": "ssd"}), other, gang, any_disk, only_ssd)
    world.cycles()

    world.apply(replace(other, unschedulable=False))
    world.cycles()

    assert world.bound() == {"a", "b"}


def test_hundreds_of_units_that_an_event_cannot_help_are_not_tried() -> None:
    large = [replace(unit(f"{i}"), name=f"large-{i}") for i in range(5, 305)]
    world = QueueWorld(node(), busy("4"), *large)
    world.cycles(most=300)
    before = world.attempts

    deleted("busy")(world)
    world.cycles(most=300)

    assert world.attempts == before
    assert {row.state for row in world.cluster.queue.rows.values()} == {UnitState.UNSCHEDULABLE}


def test_a_reason_that_gave_way_to_another_one_unseen_keeps_nobody_asleep() -> None:
    """No cycle ran between the two changes, so that the unit's reasons never named the taint."""
    world = QueueWorld(node(taints=(TAINT,), unschedulable=True), unit())
    world.cycles()
    world.changed_node("n", unschedulable=False)
    assert world.cycles() == []

    world.changed_node("n", taints=())
    world.cycles()

    assert world.bound() == {"unit"}


def test_a_unit_of_which_only_the_reasons_are_known_after_a_restart_is_woken_by_what_may_help() -> None:
    world = WORLDS["INSUFFICIENT_CPU"]()
    world.cycles()
    again = world.restarted()

    again.delete(again.pod("busy"))
    again.cycles()

    assert again.bound() == {"unit"}


@pytest.mark.parametrize("event", EventKind)
def test_every_event_helps_where_nothing_is_known_of_the_reason(event: EventKind) -> None:
    assert help_of(event, ()) is Help.ALWAYS
    assert Help.ALWAYS in help_of(event, ("SOME_PLUGIN_OF_THE_FUTURE",))
    assert may_help(event, ("SOME_PLUGIN_OF_THE_FUTURE", "PRIORITY_CLASH"))


def test_every_filter_of_the_default_profile_has_hints_of_its_own() -> None:
    profile = default_profile()
    codes = {each.code for each in profile.node_filters} | {each.code for each in profile.pod_filters}

    assert codes <= set(HINTS)


def test_the_document_has_the_table_that_the_code_goes_by() -> None:
    assert table() in DOCUMENT.read_text(), f"docs/queue.md should say:\n{table()}"


def table() -> str:
    """The hints as the document shows them: events down, reasons with the same answers once each."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for code in (f"{INSUFFICIENT}...", *HINTS):
        cells = tuple(_SIGNS[hints_for(code).get(event, Help.NEVER)] for event in EventKind)
        if any(cells):
            columns.setdefault(cells, []).append(code)
    head = ["reason", *(event.name.lower().replace("_", " ") for event in EventKind)]
    rows = [[", ".join(f"`{code}`" for code in codes), *cells] for cells, codes in columns.items()]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
