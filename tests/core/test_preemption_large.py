"""Preemption in clusters that are too large to ask the packing: counting, placing anew, pods that step aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from muster.core.framework import PreemptionSettings, Profile
from muster.model.node import Node
from muster.plugins.profile import default_profile
from tests.dsl import composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.dsl.preemption import BusyCluster, Preempted

SIZE = 300
RACK = 10
FIXED = replace(default_profile(), preemption=PreemptionSettings())


def _nodes() -> list[Node]:
    return [
        node(f"n{number:03}", "4", labels={"rack": f"r{number // RACK:02}", "block": f"b{number // 100}"})
        for number in range(SIZE)
    ]


def _full(priorities: tuple[int, ...] = (10, 20, 30), size: int = 4) -> BusyCluster:
    """Each node is full of pods of 2 cpus, in groups of `size` on nodes drawn by a fixed seed."""
    cluster = BusyCluster(_nodes())
    chance = np.random.default_rng(7)
    places = np.repeat(np.arange(SIZE), 2)
    chance.shuffle(places)
    for number, of_group in enumerate(np.split(places, len(places) // size)):
        on = tuple(f"n{place:03}" for place in of_group.tolist())
        cluster.low_group(
            f"low-{number:03}", *on, cpu="2", priority=priorities[number % len(priorities)], start=number
        )
    return cluster


def _pods_that_stand(result: Preempted, cluster: BusyCluster, cpus: dict[str, int]) -> int:
    """How many nominated pods there are; each node must have room for its own once the victims are gone."""
    free = cluster.snapshot.nodes.free[0].copy()
    for victim in result.preemption.victims:
        for ordinal in victim.pods:
            signature, slot, _ = cluster.snapshot.pods.place(ordinal)
            free[slot] += cluster.snapshot.requests(signature)[0]
    for name, on in result.nominated.items():
        slot_of = cluster.snapshot.nodes.slot(on)
        assert slot_of is not None
        free[slot_of] -= 1000 * cpus[name.rsplit("-", 1)[0]]
    assert free.min() >= 0
    return len(result.nominated)


def test_a_gang_evicts_no_more_groups_than_it_has_pods_for() -> None:
    cluster = _full()

    result = cluster.preempt(pod_group("g", gang(40), pods=40, cpu="2"))

    assert _pods_that_stand(result, cluster, {"g": 2}) == 40
    assert len(result.victims) == 10
    assert {item.priority for item in result.preemption.victims} == {10}


def test_a_placement_that_may_not_move_evicts_more_but_never_in_vain() -> None:
    cluster = _full()
    group = pod_group("g", gang(40), pods=40, cpu="2")
    moving = len(cluster.preempt(group).victims)
    cluster.profile = FIXED

    result = cluster.preempt(group)

    assert _pods_that_stand(result, cluster, {"g": 2}) == 40
    assert len(result.victims) > moving
    used = set(result.nominated.values())
    for victim in result.preemption.victims:
        places = [cluster.snapshot.pods.place(ordinal)[1] for ordinal in victim.pods]
        assert used.intersection(cluster.snapshot.nodes.names[slot] for slot in places)


def _mixed(number: int) -> GroupPlan:
    pods = tuple(pod(f"small-{number}{i}", cpu="1") for i in range(6)) + tuple(
        pod(f"large-{number}{i}", cpu="3") for i in range(2)
    )
    return pod_group(f"leaf-{number}", gang(8), pods=pods, same="rack")


@pytest.mark.parametrize("profile", [default_profile(), FIXED], ids=["moving", "fixed"])
def test_a_tree_over_racks_of_one_block_finds_room_for_all_of_it(profile: Profile) -> None:
    cluster = _full()
    cluster.profile = profile
    tree = composite("root", gang(3), *(_mixed(number) for number in range(3)), same="block")

    result = cluster.preempt(tree)

    cpus = {f"{size}": cpu for size, cpu in (("small", 1), ("large", 3))}
    assert _pods_that_stand(result, cluster, cpus) == 24
    block = {int(on[1]) for on in result.nominated.values()}
    assert len(block) == 1
    for number in range(3):
        racks = {on[1:3] for name, on in result.nominated.items() if name.split("-")[1][0] == str(number)}
        assert len(racks) == 1


def test_the_block_whose_units_are_cheapest_is_taken() -> None:
    cluster = BusyCluster(_nodes())
    for number in range(SIZE):
        priority = 10 if 100 <= number < 200 else 50
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu="4", priority=priority)

    result = cluster.preempt(pod_group("g", gang(5), pods=5, cpu="4", same="block"))

    assert {on[1] for on in result.nominated.values()} == {"1"}
    assert {item.priority for item in result.preemption.victims} == {10}


def test_the_cheapest_of_many_racks_is_among_the_few_that_are_tried() -> None:
    cluster = BusyCluster(_nodes())
    for number in range(SIZE):
        priority = 10 if number // RACK == 17 else 50
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu="4", priority=priority)

    result = cluster.preempt(pod_group("g", gang(5), pods=5, cpu="4", same="rack"))

    assert {on[1:3] for on in result.nominated.values()} == {"17"}


def test_of_two_sets_that_cost_the_same_the_one_without_the_oldest_unit_goes() -> None:
    cluster = BusyCluster(_nodes())
    others = {30: (50, 5), 31: (10, 1), 70: (50, 3), 71: (10, 9)}
    for number in range(SIZE):
        priority, start = others.get(number, (90, 0))
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu="4", priority=priority, start=start)

    result = cluster.preempt(pod_group("g", gang(2), pods=2, cpu="4", same="rack"))

    assert result.victims == ["low-070", "low-071"]


def test_pods_step_aside_inside_their_rack_alone() -> None:
    cluster = BusyCluster(_nodes())
    # Only rack r05 may be used. Its node n050 is emptiest, and holds the dearest unit.
    cluster.low_pod("dear", "n050", cpu="2", priority=90)
    for number in range(51, 60):
        cluster.low_pod(f"low-{number}", f"n{number:03}", cpu="4", priority=90, start=number)
    for number in (*range(50), *range(60, SIZE)):
        cluster.runs(pod("peer", cpu="4"), f"n{number:03}")

    result = cluster.preempt(pod_group("g", gang(3), pods=3, cpu="2", same="rack"))

    assert "dear" not in result.victims
    assert len(result.victims) == 1
    assert {on[1:3] for on in result.nominated.values()} == {"05"}


@pytest.mark.parametrize("profile", [default_profile(), FIXED], ids=["moving", "fixed"])
def test_units_whose_eviction_would_break_a_budget_are_put_back_first(profile: Profile) -> None:
    cluster = BusyCluster(_nodes(), profile=profile)
    for number in range(SIZE):
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu="3", start=number)
        cluster.low_pod(f"old-{number:03}", f"n{number:03}", cpu="1", start=-1)
    guarded = tuple(f"low-{number:03}" for number in range(SIZE))
    cluster.budget("guard", 0, *guarded)

    result = cluster.preempt(pod_group("g", gang(5), pods=5, cpu="1"))

    assert result.preemption.pods_over_budget == 0
    assert [name[:3] for name in result.victims] == ["old"] * 5


@pytest.mark.parametrize("profile", [default_profile(), FIXED], ids=["moving", "fixed"])
def test_a_broken_budget_has_the_search_start_again_from_all_units(profile: Profile) -> None:
    cluster = BusyCluster(_nodes(), profile=profile)
    for number in range(SIZE):
        cluster.low_pod(f"high-{number:03}", f"n{number:03}", cpu="2", priority=50)
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu="2", priority=10)
    cluster.budget("guard", 0, *(f"low-{number:03}" for number in range(SIZE)))

    result = cluster.preempt(pod_group("g", gang(5), pods=5, cpu="2"))

    assert result.preemption.pods_over_budget == 0
    assert {item.priority for item in result.preemption.victims} == {50}


def test_pods_step_aside_where_placing_anew_costs_too_much() -> None:
    cluster = _full()
    pods = tuple(pod(f"p-{number}", cpu=str(1 + number % 2)) for number in range(40))
    cluster.profile = FIXED
    fixed = cluster.preempt(pod_group("g", gang(40), pods=pods))
    cluster.profile = replace(FIXED, name="few", preemption=PreemptionSettings(move_budget=600))

    result = cluster.preempt(pod_group("g", gang(40), pods=pods))

    assert len(result.victims) < len(fixed.victims)
    assert "MADE_WAY_FOR" in result.fates.values()


def _peers(cluster: BusyCluster, *numbers: range) -> None:
    """Pods that nobody may evict fill these nodes."""
    for each in numbers:
        for number in each:
            cluster.runs(pod("peer", cpu="4"), f"n{number:03}")


def test_displaced_pods_step_aside_though_the_most_important_unit_cannot_be_spared() -> None:
    cluster = BusyCluster(_nodes())
    cluster.low_pod("must", "n000", cpu="4", start=-1)
    for number in range(50, 60):
        cluster.low_pod(f"low-{number}", f"n{number:03}", cpu="4", start=number)
    _peers(cluster, range(1, 50), range(60, SIZE))
    tied = pod("tied", cpu="3", node_selector={"kubernetes.io/hostname": "n000"})
    free = tuple(pod(f"free-{number}", cpu="2") for number in range(4))

    result = cluster.preempt(pod_group("g", gang(5), pods=(tied, *free)))

    assert len(result.victims) == 3, "two nodes hold all pods that may run anywhere"
    assert "must" in result.victims


def test_the_tree_is_placed_anew_in_another_domain_for_units_that_are_put_back() -> None:
    cluster = BusyCluster(_nodes())
    for number in range(20):
        cluster.low_pod(f"low-{number:02}", f"n{number:03}", cpu="4", start=number // RACK)
    _peers(cluster, range(20, SIZE))
    mixed = (*(pod(f"large-{number}", cpu="4") for number in range(9)), pod("small-0", cpu="3"))
    leaf = pod_group("leaf", gang(10), pods=mixed, same="rack")

    result = cluster.preempt(composite("root", gang(1), leaf))

    assert {on[1:3] for on in result.nominated.values()} == {"01"}, "where the younger units run"
    assert sorted(result.victims) == [f"low-{number:02}" for number in range(10, 20)]


def test_more_than_one_domain_is_tried_since_sums_of_amounts_may_deceive() -> None:
    cluster = BusyCluster(_nodes())
    for number in range(200):
        # Block 0 has room in sum, but on no node: its units are the dear ones.
        cpu, priority = ("3", 50) if number < 100 else ("4", 10)
        cluster.low_pod(f"low-{number:03}", f"n{number:03}", cpu=cpu, priority=priority)
    _peers(cluster, range(200, SIZE))

    result = cluster.preempt(pod_group("g", gang(5), pods=5, cpu="4", same="block"))

    assert {item.priority for item in result.preemption.victims} == {10}
    assert {on[1] for on in result.nominated.values()} == {"1"}


def test_units_beside_the_placement_stay_because_there_is_room() -> None:
    cluster = BusyCluster(_nodes())
    cluster.low_pod("must", "n000", cpu="4", start=-1)
    cluster.low_pod("beside", "n001", cpu="1")
    _peers(cluster, range(2, SIZE))
    tied = pod("tied", cpu="3", node_selector={"kubernetes.io/hostname": "n000"})
    other = pod("other", cpu="2", node_selector={"kubernetes.io/hostname": "n001"})

    result = cluster.preempt(pod_group("g", gang(2), pods=(tied, other)))

    assert (result.victims, result.fates) == (["must"], {"beside": "NOT_IN_THE_WAY"})
