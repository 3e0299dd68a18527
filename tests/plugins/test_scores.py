"""Which node each score prefers, with all other scores off."""

from typing import Any

import pytest

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Taint
from muster.model.pod import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, node, pod

WEB = LabelSelector({"app": "web"})


def preferring(name: str, *nodes: Any, **args: Any) -> Cluster:
    score = {"name": name, "args": args} if args else {"name": name}
    return Cluster(*nodes, profile=make_profile({"name": "one", "scores": [score]}))


def chosen(cluster: Cluster, item: Pod) -> str:
    return cluster.schedule(item).nodes[0]


def near(weight: int, *, anti: bool = False) -> Affinity:
    preferred = PodAffinity(
        preferred=(WeightedPodAffinityTerm(weight, PodAffinityTerm(WEB, topology_key="zone")),)
    )
    return Affinity(pod_anti_affinity=preferred) if anti else Affinity(pod_affinity=preferred)


@pytest.mark.parametrize(
    ("strategy", "expected"), [("LeastAllocated", "big"), ("MostAllocated", "small")], ids=str
)
def test_fit_strategies_spread_or_pack(strategy: str, expected: str) -> None:
    cluster = preferring("NodeResourcesFit", node("big", "8"), node("small", "2"), strategy=strategy)

    assert chosen(cluster, pod()) == expected


def test_a_curve_may_prefer_nodes_that_are_half_full() -> None:
    shape = [{"utilization": at, "score": score} for at, score in ((0, 0), (50, 10), (100, 0))]
    cluster = preferring(
        "NodeResourcesFit",
        *(node(name, cpu) for name, cpu in (("empty", "8"), ("full", "1"), ("half", "2"))),
        strategy="RequestedToCapacityRatio",
        shape=shape,
        resources=[{"name": "cpu"}],
    )

    assert chosen(cluster, pod()) == "half"


def test_balance_prefers_even_use() -> None:
    cluster = preferring(
        "NodeResourcesBalancedAllocation",
        node("even", "4", memory="4Gi"),
        node("a-skewed", "4", memory="64Gi"),
    )

    assert chosen(cluster, pod(cpu="2", memory="2Gi")) == "even"


def test_balance_over_three_resources_equals_the_plain_deviation() -> None:
    resources = [{"name": "cpu"}, {"name": "memory"}, {"name": "example.com/gpu"}]
    cluster = preferring(
        "NodeResourcesBalancedAllocation",
        node("a", "4", memory="8Gi", gpu="4"),
        node("b", "4", memory="4Gi", gpu="2"),
        resources=resources,
    )

    assert chosen(cluster, pod(cpu="2", memory="2Gi", gpu="1")) == "b"


def test_preferred_node_affinity_weighs_terms() -> None:
    terms = tuple(
        PreferredSchedulingTerm(weight, NodeSelectorTerm((SelectorRequirement(key, "Exists"),)))
        for key, weight in (("x", 2), ("y", 3))
    )
    cluster = preferring("NodeAffinity", node("a", labels={"x": ""}), node("b", labels={"y": ""}), node("c"))

    assert chosen(cluster, pod(affinity=Affinity(node_affinity=NodeAffinity(preferred=terms)))) == "b"


def test_fewest_untolerated_soft_taints_win() -> None:
    soft = [Taint(key, "", "PreferNoSchedule") for key in "xyz"]
    cluster = preferring(
        "TaintToleration",
        node("a", taints=tuple(soft)),
        node("b", taints=(soft[0],)),
        node("c", taints=tuple(soft[:2])),
    )

    assert chosen(cluster, pod()) == "b"


def test_preferred_pod_affinity_draws_and_anti_affinity_repels() -> None:
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    cluster = preferring("InterPodAffinity", *nodes)
    cluster.runs(pod(labels={"app": "web"}), "b")

    assert chosen(cluster, pod(affinity=near(10))) == "b"
    assert chosen(cluster, pod(affinity=near(10, anti=True))) == "a"


def test_the_preferences_of_running_pods_count_for_new_ones() -> None:
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"})]
    cluster = preferring("InterPodAffinity", *nodes)
    cluster.runs(pod(affinity=near(10)), "b")

    assert chosen(cluster, pod(labels={"app": "web"})) == "b"
    assert chosen(cluster, pod()) == "a"


def test_soft_spread_prefers_the_emptier_domain() -> None:
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("bare")]
    cluster = preferring("PodTopologySpread", *nodes)
    cluster.runs(pod(labels={"app": "web"}), "a")
    soft = TopologySpreadConstraint(1, "zone", "ScheduleAnyway", WEB)

    assert chosen(cluster, pod(labels={"app": "web"}, spread=(soft,))) == "b"


def test_ties_go_to_the_first_name() -> None:
    cluster = preferring("NodeAffinity", node("c"), node("a"), node("b"))

    assert chosen(cluster, pod()) == "a"


def test_huge_amounts_neither_overflow_nor_lose_the_order() -> None:
    huge = 2**62
    cluster = preferring(
        "NodeResourcesFit",
        node("a", memory=str(huge)),
        node("b", memory=str(2 * huge - 1)),
        resources=[{"name": "memory"}],
    )

    assert chosen(cluster, pod(memory=str(huge // 2))) == "b"
