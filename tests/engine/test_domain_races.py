"""Nodes are relabelled between a decision and its commit, or while a unit waits: no group is torn between domains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.core.decision import Decision
from muster.core.tree import Unit
from muster.engine.binder import still_holds
from muster.model.group import AnyGroup
from muster.model.pod import PodSpec
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods

RACK = "rack"
A, B = {RACK: "a"}, {RACK: "b"}
FLAT = leaf("flat", 2, same=RACK)
ROOT = composite("root", 2, same=RACK)
LEAVES = [leaf("left", 1, parent=ROOT), leaf("right", 1, parent=ROOT)]


def decided(cluster: TreeCluster) -> tuple[Unit, Decision]:
    row = cluster.cluster.queue.pop()
    assert row is not None
    return cluster.decided(row.key)


def as_it_stands(cluster: TreeCluster, unit: Unit, decision: Decision) -> Decision | None:
    return still_holds(cluster.cluster, unit, PROFILE, decision, changed=True)


def flat_gang() -> TreeCluster:
    cluster = TreeCluster(node("n0", cpu=1, labels=A), node("n1", cpu=1, labels=A))
    cluster.apply(FLAT, *pods(FLAT, 2))
    return cluster


def tree() -> TreeCluster:
    cluster = TreeCluster(node("n0", cpu=1, labels=A), node("n1", cpu=1, labels=A))
    cluster.apply(ROOT, *LEAVES, *(pod for each in LEAVES for pod in pods(each, 1)))
    return cluster


def grown_gang() -> TreeCluster:
    """One member runs on n0; the decision is about the other."""
    cluster = TreeCluster(node("n0", cpu=1, labels=A), node("n1", cpu=1, labels=A))
    cluster.apply(FLAT, *pods(FLAT, 1, on="n0"), *pods(FLAT, 1, first=1))
    return cluster


def preempting_gang() -> TreeCluster:
    cluster = flat_gang()
    low: AnyGroup = leaf("low", 1, priority=-1)
    cluster.apply(*pods(low, 1, priority=-1, on="n0"), low)
    return cluster


WORLDS = [flat_gang, tree, grown_gang, preempting_gang]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("labels", [B, {}], ids=["another domain", "no domain"])
def test_a_decision_is_made_anew_if_a_node_has_left_the_domain(
    world: Callable[[], TreeCluster], labels: dict[str, str]
) -> None:
    cluster = world()
    unit, decision = decided(cluster)

    cluster.apply(node("n1", cpu=1, labels=labels))

    assert as_it_stands(cluster, unit, decision) is None


@pytest.mark.parametrize("world", WORLDS)
def test_a_decision_stands_if_all_nodes_moved_to_another_domain_together(
    world: Callable[[], TreeCluster],
) -> None:
    cluster = world()
    unit, decision = decided(cluster)

    cluster.apply(node("n0", cpu=1, labels=B), node("n1", cpu=1, labels=B))

    assert as_it_stands(cluster, unit, decision) == decision


def test_a_node_that_the_group_does_not_use_may_change_its_domain() -> None:
    cluster = flat_gang()
    unit, decision = decided(cluster)

    cluster.apply(node("n2", labels=B))

    assert as_it_stands(cluster, unit, decision) == decision


def test_a_decision_is_made_anew_if_a_member_was_bound_elsewhere_meanwhile() -> None:
    cluster = TreeCluster(node("n0", labels=A), node("n1", labels=B))
    gang = leaf("gang", 1, same=RACK)
    cluster.apply(gang, *pods(gang, 2))
    unit, decision = decided(cluster)
    taken = set(decision.assignments.nodes)
    elsewhere = ({"n0", "n1"} - taken).pop()

    cluster.apply(*pods(gang, 1, on=elsewhere))

    assert as_it_stands(cluster, unit, decision) is None


def test_a_unit_that_waits_for_its_victims_is_not_bound_to_nodes_that_are_no_domain_any_more() -> None:
    cluster = preempting_gang()
    low = replace(pods(leaf("low", 1, priority=-1), 1, priority=-1, on="n0")[0])
    cluster.apply(replace(low, spec=grace(low.spec)))
    cluster.cycle()

    cluster.apply(node("n1", cpu=1, labels=B))
    cluster.later(40)
    cluster.cycles()

    assert cluster.bound() <= {"low-0"}


def grace(spec: PodSpec) -> PodSpec:
    return replace(spec, termination_grace_period_seconds=30)
