"""The search through the door of the core: what greedy placement misses is placed, or proved, or left open."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from muster.core.decide import decide
from muster.core.decision import SearchEnd
from muster.core.framework import Profile
from muster.core.observer import NullObserver
from muster.model.meta import LabelSelector
from muster.model.pod import Pod, TopologySpreadConstraint
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, composite, gang, node, pod, pod_group, rack
from tests.dsl.groups import GroupPlan
from tests.dsl.nodes import HOSTNAME
from tests.dsl.state import state_of


def pods_of(*cpus: str) -> tuple[Pod, ...]:
    return tuple(pod(f"p{place}", cpu=cpu) for place, cpu in enumerate(cpus))


def profile_with(**settings: object) -> Profile:
    return make_profile({"name": "default-scheduler", **settings})


TRAP = pod_group("g", gang(4), pods=pods_of("3", "3", "2", "2"))
"""Greedy gives each node one pod of three cpus, which leaves no room for the second of two."""
ODD = pod_group("g", gang(4), pods=pods_of("4", "2", "2", "2"))
"""On two nodes of five cpus: as many as there are, and room for each kind, but the large pod wastes one cpu."""


def trap_cluster(**options: Profile) -> Cluster:
    return Cluster(node("a", "4"), node("b", "6"), **options)


def odd_cluster(**options: Profile) -> Cluster:
    return Cluster(node("a", "5"), node("b", "5"), **options)


def test_a_gang_is_placed_that_greedy_placement_misses() -> None:
    result = trap_cluster().schedule(TRAP)

    assert result.on == {"p0": "b", "p1": "b", "p2": "a", "p3": "a"}
    assert result.decision.search.end is SearchEnd.FOUND
    assert result.decision.message == "placed 4 pods where a search found room"


def test_greedy_only_is_a_setting_of_the_profile() -> None:
    result = trap_cluster(profile=profile_with(greedyOnly=True)).schedule(TRAP)

    assert result.code == "UNSCHEDULABLE"
    assert result.decision.search.end is SearchEnd.NOT_NEEDED
    assert result.decision.search.budget == 0


def test_what_greedy_placement_places_is_never_searched_for() -> None:
    result = trap_cluster().schedule(pod_group("g", gang(2), pods=2))

    assert result.decision.search.end is SearchEnd.NOT_NEEDED
    assert result.decision.message == "placed 2 pods"


def test_an_early_sibling_leaves_the_only_room_of_a_later_one() -> None:
    cluster = Cluster(node("ssd", "2", labels={"disk": "ssd"}), node("plain", "1"))
    picky = tuple(pod(f"picky-{place}", node_selector={"disk": "ssd"}) for place in range(2))
    root = composite(
        "root", gang(2), pod_group("any", gang(1), pods=1), pod_group("ssd", gang(2), pods=picky)
    )

    result = cluster.schedule(root)

    assert result.on == {"any-0": "plain", "picky-0": "ssd", "picky-1": "ssd"}
    assert result.group("root").satisfied == 2


def test_a_child_that_does_not_take_part_is_tried_again_once_the_minimum_stands() -> None:
    cluster = Cluster(node("a", "4"), node("b", "7"))
    root = composite(
        "root", gang(1), pod_group("large", gang(2), pods=2, cpu="6"), replace(TRAP, name="trap")
    )

    result = cluster.schedule(root)

    assert sorted(result.on) == ["p0", "p1", "p2", "p3"]
    assert result.group("large").status.name == "UNSCHEDULABLE"


def test_fill_goes_on_from_a_minimum_that_was_found() -> None:
    cluster = Cluster(node("a", "4"), node("b", "6"), node("c", "1", labels={"disk": "ssd"}))
    picky = pod("picky", node_selector={"disk": "ssd"})
    root = composite(
        "root", gang(1), TRAP, pod_group("other", gang(1), pods=(picky, replace(picky, name="late")))
    )

    result = cluster.schedule(replace(root, policy=gang(2)))

    assert result.decision.search.end is SearchEnd.FOUND
    assert sorted(result.on) == ["p0", "p1", "p2", "p3", "picky"]
    assert result.decision.message.startswith("placed 5 pods where a search found room; left over: 0/3 nodes")


def test_of_equal_pods_the_first_created_are_placed() -> None:
    result = trap_cluster().schedule(pod_group("g", gang(4), pods=pods_of("3", "3", "3", "2", "2")))

    assert result.on == {"p0": "b", "p1": "b", "p3": "a", "p4": "a"}


def test_bound_members_count_and_keep_their_room() -> None:
    cluster = Cluster(node("a", "5"), node("b", "6"))
    cluster.runs(pod(cpu="1"), "a")
    members = pods_of("3", "3", "2", "2")

    result = cluster.schedule(pod_group("g", gang(5), pods=members, bound=("a",)))

    assert result.on == {"p0": "b", "p1": "b", "p2": "a", "p3": "a"}


def test_a_node_that_failed_to_bind_a_pod_is_not_found_for_it() -> None:
    cluster = Cluster(node("a", "4"), node("b", "6"), node("c", "6"))
    members = (*pods_of("3", "3", "2", "2"), pod("wide", cpu="5"))

    result = cluster.schedule(pod_group("g", gang(5), pods=members), excluded={"wide": ["b"]})

    assert result.on["wide"] == "c"


def test_pods_that_want_the_same_port_never_share_a_node() -> None:
    cluster = Cluster(node("a", "4"), node("b", "6"))
    members = (
        pod("x", cpu="3", host_port=80),
        pod("y", cpu="2", host_port=80),
        pod("z", cpu="3"),
        pod("w", cpu="2"),
    )

    result = cluster.schedule(pod_group("g", gang(4), pods=members))

    assert result.on == {"x": "b", "y": "a", "z": "b", "w": "a"}


def test_three_pods_of_one_port_are_proved_not_to_fit_two_nodes() -> None:
    members = (pod("x", host_port=80), pod("y", cpu="2", host_port=80), pod("z", cpu="3", host_port=80))

    result = Cluster(node("a", "9"), node("b", "9")).schedule(pod_group("g", gang(3), pods=members))

    assert result.decision.search.end is SearchEnd.EXHAUSTED


def test_no_placement_is_told_apart_from_a_spent_budget() -> None:
    racks = (rack("r1", free=4), rack("r2", free=4))
    groups = (pod_group(f"pg-{i}", gang(pods), pods=pods, same="rack") for i, pods in enumerate((3, 2, 3)))
    root = composite("root", gang(3), *groups)

    proved = Cluster(*racks).schedule(root)
    spent = Cluster(*racks, profile=profile_with(search={"nodeBudget": 100})).schedule(root)

    assert proved.decision.search.end is SearchEnd.EXHAUSTED
    assert "; no placement exists; " in proved.decision.message
    assert spent.decision.search.end is SearchEnd.BUDGET_SPENT
    assert f"; search budget spent after {spent.decision.search.steps} steps; " in spent.decision.message
    assert proved.code == spent.code == "UNSCHEDULABLE"


def test_what_no_removal_of_pods_can_help_is_proved_without_search() -> None:
    result = trap_cluster().schedule(pod_group("g", gang(2), pods=pods_of("9", "1")))

    assert result.code == "UNSCHEDULABLE_AND_UNRESOLVABLE"
    assert (result.decision.search.end, result.decision.search.steps) == (SearchEnd.EXHAUSTED, 0)


def test_equal_pods_need_no_search_to_be_proved_too_many() -> None:
    result = trap_cluster().schedule(pod_group("g", gang(9), pods=9, cpu="2"))

    assert (result.decision.search.end, result.decision.search.steps) == (SearchEnd.EXHAUSTED, 0)


@pytest.mark.parametrize(
    ("share", "budget", "end"),
    [
        (Fraction(1), 20_000, SearchEnd.FOUND),
        (Fraction(1, 4), 5_000, SearchEnd.FOUND),
        (Fraction(0), 0, SearchEnd.NOT_NEEDED),
    ],
)
def test_a_unit_may_spend_its_share_of_the_budget(share: Fraction, budget: int, end: SearchEnd) -> None:
    cluster = trap_cluster()
    unit, _ = cluster.unit(TRAP)

    searched = decide(
        cluster.snapshot, replace(unit, search_budget_share=share), cluster.profile, NullObserver()
    ).search

    assert (searched.budget, searched.end) == (budget, end)


def spread_members(*cpus: str) -> GroupPlan:
    """A gang whose pods are spread evenly over nodes."""
    rule = TopologySpreadConstraint(
        max_skew=1,
        topology_key=HOSTNAME,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "x"}),
    )
    members = tuple(
        pod(f"p{place}", cpu=cpu, labels={"app": "x"}, spread=(rule,)) for place, cpu in enumerate(cpus)
    )
    return pod_group("g", gang(len(members)), pods=members)


def test_what_the_search_finds_for_spread_pods_passes_their_filters() -> None:
    result = trap_cluster().schedule(spread_members("3", "3", "2", "2"))

    assert result.decision.search.end is SearchEnd.FOUND
    assert result.on == {"p0": "b", "p1": "b", "p2": "a", "p3": "a"}


def test_what_reads_other_nodes_is_never_proved() -> None:
    result = odd_cluster().schedule(spread_members("4", "2", "2", "2"))

    assert result.decision.search.end is SearchEnd.BUDGET_SPENT
    assert "; the search ended without a placement or a proof; " in result.decision.message


def test_a_failed_search_leaves_the_snapshot_as_it_was() -> None:
    cluster = odd_cluster()
    cluster.runs(pod(cpu="1"), "a")
    unit, _ = cluster.unit(ODD)
    before = state_of(cluster.snapshot)

    decide(cluster.snapshot, unit, cluster.profile, NullObserver())

    assert state_of(cluster.snapshot) == before
