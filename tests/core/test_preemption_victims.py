"""Potential victims in columns: their importance, what budgets say, and what a set costs."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from muster.core.deltas import PodsLeaving, PodsUnbound
from muster.core.preemption.usage import usage_of
from muster.core.preemption.victims import Victims, victims_of
from tests.dsl import node
from tests.dsl.preemption import BusyCluster


def _cluster() -> BusyCluster:
    return BusyCluster(node("a", "64"), node("b", "64"))


def _victims(cluster: BusyCluster) -> Victims:
    return victims_of(cluster.snapshot, cluster.potential_victims)


def _names(victims: Victims) -> list[str]:
    return [key.name for key in victims.keys(np.arange(len(victims)))]


def _mask(victims: Victims, *names: str) -> np.ndarray:
    return np.array([name in names for name in _names(victims)])


def test_units_are_in_the_order_of_their_importance() -> None:
    cluster = _cluster()
    cluster.low_pod("pod", "a")
    cluster.low_group("group", "a")
    cluster.low_group("a-young-pair", "a", "b", start=2)
    cluster.low_group("old-pair", "a", "b", start=1)
    cluster.low_tree("tree", "a")
    cluster.low_pod("high", "a", priority=20)
    cluster.low_pod("also-pod", "a")

    names = _names(_victims(cluster))

    assert names == ["high", "tree", "old-pair", "a-young-pair", "group", "also-pod", "pod"]


def test_pods_that_left_or_are_leaving_are_no_longer_of_their_unit() -> None:
    cluster = _cluster()
    cluster.low_group("partly", "a", "a", "b")
    cluster.low_pod("gone", "a")
    first, second, _, single = cluster.potential_victims.ordinals.tolist()
    cluster.snapshot.apply(PodsLeaving((first,)))
    cluster.snapshot.apply(PodsUnbound((second, single)))

    victims = _victims(cluster)

    assert _names(victims) == ["partly"]
    assert victims.sizes.tolist() == [1]


@pytest.mark.parametrize(
    ("allowed", "over"), [(-1, 3), (0, 3), (1, 2), (3, 0)], ids=["below zero", "none", "one", "all"]
)
def test_pods_past_what_a_budget_allows_are_over_it(allowed: int, over: int) -> None:
    cluster = _cluster()
    cluster.low_group("three", "a", "a", "b")
    cluster.budget("all", allowed, "three")

    victims = _victims(cluster)

    assert len(victims.pods_over_budget(victims.everybody())) == over


def test_only_evicted_units_use_a_budget_up() -> None:
    cluster = _cluster()
    cluster.low_pod("first", "a", start=1)
    cluster.low_pod("second", "a", start=2)
    cluster.budget("one", 1, "first", "second")

    victims = _victims(cluster)

    assert victims.breaking(victims.everybody()).tolist() == [False, True]
    assert victims.breaking(_mask(victims, "second")).tolist() == [False, False]


def test_a_pod_over_two_budgets_is_one_pod_over_budget() -> None:
    cluster = _cluster()
    cluster.low_pod("both", "a")
    cluster.budget("one", 0, "both")
    cluster.budget("other", 0, "both")

    victims = _victims(cluster)

    assert victims.cost(victims.everybody())[0] == 1


def test_a_set_costs_no_less_than_any_part_of_it() -> None:
    cluster = _cluster()
    cluster.low_group("pair", "a", "b", priority=-20)
    cluster.low_pod("single", "a", priority=5)
    cluster.budget("none", 0, "pair")

    victims = _victims(cluster)

    assert victims.cost(victims.everybody()) == (2, 5, 25, 2, 3)
    assert victims.cost(_mask(victims, "pair")) == (2, -20, 0, 1, 2)
    assert victims.cost(victims.nobody()) < victims.cost(_mask(victims, "pair"))


def test_of_sets_that_cost_the_same_the_youngest_is_first_then_the_least_important() -> None:
    cluster = _cluster()
    for name, start in (("old", 1), ("young-a", 5), ("young-b", 5)):
        cluster.low_pod(name, "a", start=start)

    victims = _victims(cluster)
    ranked = sorted(("old", "young-a", "young-b"), key=lambda name: victims.rank(_mask(victims, name)))

    assert ranked == ["young-b", "young-a", "old"]


def test_usage_adds_up_the_pods_of_a_unit_on_each_node() -> None:
    cluster = _cluster()
    cluster.low_group("spread", "a", "b", "a", cpu="2")
    cluster.low_pod("other", "b", cpu="1", priority=99)

    victims = _victims(cluster)
    usage = usage_of(cluster.snapshot, victims)

    cpu = usage.freed(victims.everybody())[0]
    slots = {name: cluster.snapshot.nodes.slot(name) for name in "ab"}
    assert (cpu[slots["a"]], cpu[slots["b"]]) == (4_000, 3_000)
    assert usage.freed(victims.nobody()).sum() == 0


def test_of_budgets_that_select_the_same_pods_each_says_what_it_would_say_alone() -> None:
    cluster = _cluster()
    names = [f"pod-{number}" for number in range(6)]
    for name in names:
        cluster.low_pod(name, "a")
    for place, allowed in enumerate((4, 2, -1, 3)):
        cluster.budget(f"all-{place}", allowed, *names)
    cluster.budget("some", 0, *names[:2])
    victims = _victims(cluster)

    for number in range(2 ** len(names)):
        evicted = np.array([bool(number >> place & 1) for place in range(len(names))])
        over = {
            pod
            for allowed, members in zip(victims.allowed, victims.members, strict=True)
            for pod in members[evicted[victims.owners[members]]][max(allowed, 0) :].tolist()
        }
        assert victims.pods_over_budget(evicted).tolist() == sorted(over)
        assert victims.number_over_budget(evicted) == len(over)


def test_budgets_that_select_the_same_pods_cost_as_much_as_one_of_them() -> None:
    assert _seconds_of_costs(budgets=400) < 10 * _seconds_of_costs(budgets=1)


def _seconds_of_costs(budgets: int) -> float:
    """CPU time of what it costs to evict everybody, asked many times; the least of several turns."""
    cluster = _cluster()
    names = [f"pod-{number}" for number in range(20)]
    for name in names:
        cluster.low_pod(name, "a")
    for place in range(budgets):
        cluster.budget(f"budget-{place}", place, *names)
    victims = _victims(cluster)
    evicted = victims.everybody()
    victims.cost(evicted)
    least = float("inf")
    for _ in range(5):
        started = process_time()
        for _ in range(20):
            victims.cost(evicted)
            victims.breaking(evicted)
        least = min(least, process_time() - started)
    return least
