"""KEP-5710 as Muster reads it: of all sets of units that would make room, the cheapest goes."""

from __future__ import annotations

from tests.dsl import gang, node, pod, pod_group, rack
from tests.dsl.preemption import BusyCluster

WAITING = "WAITING_FOR_PREEMPTION"


# Budgets are a preference


def test_a_unit_whose_eviction_would_break_a_budget_stays_if_another_can_go() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("guarded", "a", start=2)
    cluster.low_pod("other", "a", start=1)
    cluster.budget("guard", 0, "guarded")

    result = cluster.preempt(pod("p"))

    assert (result.victims, result.preemption.pods_over_budget) == (["other"], 0)


def test_a_higher_unit_goes_rather_than_one_whose_budget_would_break() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"))
    cluster.low_pod("guarded", "a", priority=10)
    cluster.low_pod("higher", "b", priority=50)
    cluster.budget("guard", 0, "guarded")

    result = cluster.preempt(pod("p"))

    assert result.victims == ["higher"]


def test_a_budget_never_bars_an_eviction_that_is_needed() -> None:
    cluster = BusyCluster(node("a", "1"))
    cluster.low_pod("guarded", "a")
    cluster.budget("guard", 0, "guarded")

    result = cluster.preempt(pod("p"))

    assert result.victims == ["guarded"]
    (breach,) = result.preemption.breaches
    assert (breach.budget.name, breach.evicted, breach.allowed) == ("guard", 1, 0)
    assert result.preemption.victims[0].breaks_budget


def test_the_most_important_units_use_a_budget_up() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("important", "a", start=1)
    cluster.low_pod("other", "a", start=2)
    cluster.budget("one-may-go", 1, "important", "other")

    result = cluster.preempt(pod_group("g", gang(2), pods=2))

    assert [item.breaks_budget for item in result.preemption.victims] == [False, True]
    assert result.preemption.pods_over_budget == 1


def test_a_pod_counts_in_every_budget_that_selects_it() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("both", "a", start=5)
    cluster.low_pod("one", "a", start=1)
    cluster.budget("roomy", 5, "both", "one")
    cluster.budget("tight", 0, "both")

    result = cluster.preempt(pod("p"))

    assert result.victims == ["one"]


def test_a_budget_that_is_overdrawn_already_counts_as_used_up_and_no_more() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_group("of-overdrawn", "a", cpu="2")
    cluster.low_group("of-used-up", "b", "b")
    cluster.budget("overdrawn", -3, "of-overdrawn")
    cluster.budget("used-up", 0, "of-used-up")

    result = cluster.preempt(pod("p", cpu="2"))

    assert (result.victims, result.preemption.pods_over_budget) == (["of-overdrawn"], 1)


# The cheapest set, in this order


def test_few_pods_over_budget_count_more_than_low_priorities() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_group("two-over", "a", "a", priority=10)
    cluster.low_pod("one-over", "b", cpu="2", priority=90)
    cluster.budget("none-may-go", 0, "two-over", "one-over")

    assert cluster.preempt(pod("p", cpu="2")).victims == ["one-over"]


def test_a_low_highest_priority_counts_more_than_a_low_sum() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_pod("one-high", "a", cpu="2", priority=50)
    for number in range(2):
        cluster.low_pod(f"low-{number}", "b", priority=40)

    assert cluster.preempt(pod("p", cpu="2")).victims == ["low-0", "low-1"]


def test_a_low_sum_of_priorities_counts_more_than_few_units() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_pod("sixty-a", "a", priority=60)
    cluster.low_pod("sixty-b", "a", priority=60)
    cluster.low_pod("sixty", "b", priority=60)
    cluster.low_pod("ten", "b", priority=10)

    assert cluster.preempt(pod("p", cpu="2")).victims == ["sixty", "ten"]


def test_few_units_count_more_than_few_pods() -> None:
    cluster = BusyCluster(node("a", "3"), node("b", "3"))
    for number in range(2):
        cluster.low_pod(f"single-{number}", "a", cpu="1.5", priority=0)
    cluster.low_group("three", "b", "b", "b", priority=0)

    assert cluster.preempt(pod("p", cpu="3")).victims == ["three"]


def test_few_pods_count_where_all_else_is_equal() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_group("two", "a", "a")
    cluster.low_group("one", "b", cpu="2")

    assert cluster.preempt(pod("p", cpu="2")).victims == ["one"]


def test_a_negative_priority_is_no_reward_for_evicting_more() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    for number in range(2):
        cluster.low_pod(f"pair-{number}", "a", priority=-10)
    cluster.low_pod("alone", "b", cpu="2", priority=-10)

    assert cluster.preempt(pod("p", cpu="2")).victims == ["alone"]


# Topology


def test_of_two_racks_the_one_with_the_cheaper_victims_is_taken() -> None:
    cluster = BusyCluster(rack("x", free=4), rack("y", free=4))
    cluster.low_pod("dear", "node-x", cpu="4", priority=50)
    cluster.low_pod("cheap", "node-y", cpu="4", priority=10)

    result = cluster.preempt(pod_group("g", gang(2), pods=2, same="rack"))

    assert (result.victims, set(result.nominated.values())) == (["cheap"], {"node-y"})


def test_a_group_that_bound_pods_pin_evicts_in_its_own_rack_alone() -> None:
    cluster = BusyCluster(rack("x", free=2), rack("y", free=2))
    cluster.low_pod("dear", "node-x", priority=50)
    cluster.low_pod("cheap", "node-y", priority=10)
    cluster.runs(pod("member"), "node-x")

    result = cluster.preempt(pod_group("g", gang(2), pods=1, same="rack", bound=("node-x",)))

    assert result.victims == ["dear"]
