"""KEP-5710 as Muster reads it: whole units make room for a whole unit, and nobody goes in vain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from muster.core.decide import decide
from muster.core.decision import Search, SearchEnd
from muster.core.framework import SearchSettings
from muster.core.node_table import NodeTable
from muster.core.observer import NullObserver
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import UNKNOWN, Budget
from muster.core.search.problem import Problem
from muster.plugins.profile import default_profile, make_profile
from tests.dsl import basic, composite, gang, node, pod, pod_group
from tests.dsl.preemption import BusyCluster

WAITING = "WAITING_FOR_PREEMPTION"


# When it may run


def test_a_gang_that_does_not_fit_evicts_as_many_as_it_needs_and_binds_nothing_yet() -> None:
    cluster = BusyCluster(node("a", "4"))
    for number in range(4):
        cluster.low_pod(f"low-{number}", "a")

    result = cluster.preempt(pod_group("g", gang(3), pods=3))

    assert (result.code, len(result.victims), result.on) == (WAITING, 3, {})
    assert set(result.nominated.values()) == {"a"}


def test_a_unit_that_no_eviction_can_help_evicts_nobody() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("low", "a", cpu="2")

    result = cluster.preempt(pod("p", cpu="2", node_selector={"disk": "ssd"}))

    assert (result.code, result.decision.preemption) == ("UNSCHEDULABLE_AND_UNRESOLVABLE", None)


def test_a_unit_with_policy_never_evicts_nobody() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("low", "a", cpu="2")

    result = cluster.preempt(pod("p", cpu="2"), preemption_policy="Never")

    assert (result.code, result.decision.preemption) == ("UNSCHEDULABLE", None)


def test_nobody_is_evicted_for_extra_pods_while_the_minimum_still_finds_free_room() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("low", "a")

    result = cluster.preempt(pod_group("g", gang(1), pods=2))

    assert (result.code, len(result.on), result.victims) == ("SCHEDULED", 1, [])


def test_a_gang_whose_bound_pods_meet_its_minimum_evicts_for_one_more() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("low", "a")

    result = cluster.preempt(pod_group("g", gang(1), pods=2, bound=("a",)))

    assert (result.code, result.victims) == (WAITING, ["low"])
    assert result.on == {}, "even the pod that fits waits: room is made for all at once"
    assert len(result.nominated) == 2


def test_a_basic_group_with_bound_pods_evicts_only_if_no_pod_of_it_fits() -> None:
    def decided(free: str) -> tuple[str, list[str]]:
        cluster = BusyCluster(node("a", free))
        cluster.low_pod("low", "a")
        result = cluster.preempt(pod_group("g", basic(), pods=2, bound=("a",)))
        return result.code, result.victims

    assert decided("2") == ("SCHEDULED", [])
    assert decided("1") == (WAITING, ["low"])


def test_pods_of_inadmissible_groups_were_not_tried_and_are_no_reason_to_evict() -> None:
    cluster = BusyCluster(node("a", "1"))
    cluster.low_pod("low", "a")
    bound = pod_group("bound", gang(1), bound=("a",))
    short = pod_group("short", gang(2), pods=1, admissible=False)

    result = cluster.preempt(composite("root", gang(1), bound, short))

    assert result.decision.preemption is None


def test_a_unit_that_came_without_its_potential_victims_asks_for_them() -> None:
    cluster = BusyCluster(node("a", "2"))
    cluster.low_pod("low", "a", cpu="2")
    cluster.knows_victims = False

    result = cluster.preempt(pod("p"))

    assert result.decision.asks_for_victims
    assert result.decision.preemption is None


# Remove all, place, and see whether it is worth it


def test_nobody_is_evicted_if_the_unit_does_not_fit_then_either() -> None:
    cluster = BusyCluster(node("a", "4"))
    cluster.low_pod("low", "a")
    cluster.runs(pod("peer", cpu="2"), "a")

    result = cluster.preempt(pod_group("g", gang(3), pods=3))

    assert (result.code, result.preemption.end.value, result.victims) == ("UNSCHEDULABLE", "NO_FIT", [])


def test_nobody_is_evicted_if_no_more_pods_fit_then_and_what_fits_is_bound() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "1"))
    cluster.runs(pod("peer"), "a")
    cluster.low_pod("low", "b", cpu="0")
    big = (pod("fits"), pod("too-big", cpu="2"))

    result = cluster.preempt(pod_group("g", gang(1), pods=big, bound=("a",)))

    assert (result.code, result.victims) == ("SCHEDULED", [])
    assert result.preemption.end.value == "NO_GAIN"
    assert list(result.on) == ["fits"]


def test_room_is_made_for_all_pods_that_can_be_placed_extras_too() -> None:
    cluster = BusyCluster(node("a", "1"), node("b", "1"), node("c", "1"))
    cluster.low_pod("low-1", "a")
    cluster.low_pod("low-2", "b")
    cluster.runs(pod("peer"), "c")

    result = cluster.preempt(pod_group("g", gang(1), pods=3))

    assert sorted(result.victims) == ["low-1", "low-2"]
    assert len(result.nominated) == 2


def test_no_room_is_made_for_a_child_that_could_not_be_complete() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_pod("in-the-way", "a", cpu="2")
    cluster.low_pod("left-alone", "b", cpu="2")
    on = "kubernetes.io/hostname"
    fits = pod_group("fits", gang(1), pods=(pod("x", cpu="2", node_selector={on: "a"}),))
    pair = tuple(pod(f"y-{number}", cpu="2", node_selector={on: "b"}) for number in range(2))

    result = cluster.preempt(composite("root", gang(1), fits, pod_group("fails", gang(2), pods=pair)))

    assert (result.victims, list(result.nominated)) == (["in-the-way"], ["x"])


def test_the_search_may_find_the_room_that_greedy_placement_misses() -> None:
    # Greedy placement puts `small` into rack x, which it fills more, and which alone has nodes for `large`.
    halves = [node(f"x{number}", "2", labels={"rack": "x"}) for number in range(2)]
    ones = [node(f"y{number}", "1", labels={"rack": "y"}) for number in range(5)]
    cluster = BusyCluster(*halves, *ones)
    for each in (*halves, *ones):
        cluster.low_pod(f"low-{each.name}", each.name, cpu=each.allocatable["cpu"])
    cluster.searched = Search(SearchEnd.EXHAUSTED)
    small = pod_group("small", gang(3), pods=3, same="rack")
    large = pod_group("large", gang(2), pods=2, cpu="2", same="rack")

    result = cluster.preempt(composite("root", gang(2), small, large))

    assert (result.code, len(result.nominated)) == (WAITING, 5)
    assert len(result.victims) == 5
    assert result.decision.search.end is SearchEnd.EXHAUSTED, "the search as things are is not made twice"


@dataclass(frozen=True)
class Tireless:
    """A solver that never knows, and counts how often it is asked."""

    asked: list[int] = field(default_factory=list)

    def place(self, problem: Problem, nodes: NodeTable, budget: Budget) -> DomainPacking:
        self.asked.append(len(problem.slots))
        return DomainPacking(UNKNOWN, {})


@pytest.mark.parametrize(("low", "times"), [(None, 1), ("low", 2)], ids=["nobody-lower", "somebody-lower"])
def test_the_search_runs_once_more_only_if_somebody_could_go(low: str | None, times: int) -> None:
    solver = Tireless()
    search = SearchSettings(node_budget=1_000, solver=solver)
    nodes = [node(f"n{number}", "3") for number in range(2)]
    cluster = BusyCluster(nodes, profile=replace(default_profile(), search=search))
    if low is not None:
        cluster.low_pod(low, "n0", cpu="0")
    # No two of them fit on one node, though there is room enough in all.
    pods = tuple(pod(f"p{number}", cpu=cpu) for number, cpu in enumerate(("2", "2", "1.5")))
    unit, _ = cluster.unit(pod_group("g", gang(3), pods=pods))

    decide(cluster.snapshot, unit, cluster.profile, NullObserver())

    assert len(solver.asked) == times


# Who may stay


def test_a_unit_goes_whole() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"))
    cluster.low_group("group", "a", "a", "b")
    cluster.runs(pod("peer"), "b")

    result = cluster.preempt(pod("p", cpu="2"))

    (victim,) = result.preemption.victims
    assert (victim.unit.name, len(victim.pods)) == ("group", 3)


def test_units_above_the_lowest_priority_that_suffices_stay() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"), node("c", "2"))
    cluster.low_group("low", "a", "b", cpu="2", priority=10)
    cluster.low_pod("higher", "c", cpu="2", priority=20)

    result = cluster.preempt(pod_group("g", gang(2), pods=2, cpu="2"))

    assert result.victims == ["low"]
    assert result.fates == {"higher": "ABOVE_THRESHOLD"}


def test_units_above_the_threshold_stay_where_the_lowest_priority_alone_does_not_suffice() -> None:
    cluster = BusyCluster(node("a", "2"), node("b", "2"), node("c", "2"))
    for name, on, priority in (("low", "a", 10), ("middle", "b", 20), ("high", "c", 30)):
        cluster.low_pod(name, on, cpu="2", priority=priority)

    result = cluster.preempt(pod_group("g", gang(2), pods=2, cpu="2"))

    assert sorted(result.victims) == ["low", "middle"]
    assert result.fates == {"high": "ABOVE_THRESHOLD"}


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        pytest.param({"priority": 20}, {"priority": 10}, id="priority"),
        pytest.param({"kind": "tree"}, {"kind": "group"}, id="tree-before-group"),
        pytest.param({"kind": "group"}, {"kind": "pod"}, id="group-before-pod"),
        pytest.param({"kind": "group", "pods": 2}, {"kind": "group"}, id="more-pods"),
        pytest.param({"start": 1}, {"start": 2}, id="started-earlier"),
        pytest.param({"name": "b"}, {"name": "c"}, id="name"),
    ],
)
def test_the_more_important_of_two_units_stays(stays: dict[str, object], goes: dict[str, object]) -> None:
    cluster = BusyCluster(node("a", "2"), node("elsewhere", "4"))
    for options, name in ((goes, "goes"), (stays, "stays")):
        run = {"pod": cluster.low_pod, "group": cluster.low_group, "tree": cluster.low_tree}
        nodes = ("a", "elsewhere") if options.get("pods") == 2 else ("a",)
        rest = {key: value for key, value in options.items() if key not in {"kind", "name", "pods"}}
        run[str(options.get("kind", "pod"))](str(options.get("name", name)), *nodes, **rest)
    cluster.runs(pod("peer", cpu="3" if "pods" in stays else "4"), "elsewhere")

    result = cluster.preempt(pod("p"))

    assert result.victims == [goes.get("name", "goes")]


def test_a_unit_stays_where_it_runs_if_the_preemptor_fits_beside_it() -> None:
    cluster = BusyCluster(node("a", "4"))
    cluster.low_pod("big", "a", cpu="2")
    cluster.low_pod("small", "a", cpu="2", start=1)

    result = cluster.preempt(pod("p", cpu="2"))

    assert result.victims == ["small"]
    assert set(result.fates) == {"big"}


def test_pods_of_the_preemptor_step_aside_for_a_unit_that_is_put_back() -> None:
    # With both gone, the pods go to the emptier node a, where the dearer unit ran.
    cluster = BusyCluster(node("a", "4"), node("b", "3"))
    cluster.low_pod("dear", "a", cpu="4", priority=50)
    cluster.low_pod("cheap", "b", cpu="3", priority=50, start=5)

    result = cluster.preempt(pod_group("g", gang(2), pods=2))

    assert result.victims == ["cheap"]
    assert set(result.nominated.values()) == {"b"}


def test_without_a_move_budget_the_preemptor_stays_where_it_fits_with_everybody_gone() -> None:
    profile = make_profile({"name": "fixed", "preemption": {"moveBudget": 0}})
    cluster = BusyCluster(node("a", "4"), node("b", "3"), profile=profile)
    cluster.low_pod("dear", "a", cpu="4", priority=50)
    cluster.low_pod("cheap", "b", cpu="3", priority=50, start=5)

    result = cluster.preempt(pod("p"))

    assert (result.victims, result.nominated) == (["dear"], {"p": "a"})
    assert result.fates == {"cheap": "NOT_IN_THE_WAY"}
