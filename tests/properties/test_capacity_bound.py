"""Bounds on capacity rule out nothing that trying everything places, neither in a domain nor in the whole cluster."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from muster.core.capacity import rooms_of
from muster.core.capacity_bound import bound_inside, is_hopeless
from muster.core.cuts import levels_of
from muster.core.decision import Status
from muster.core.demand import Demand
from muster.core.domains import CLUSTER
from muster.core.pod_placement import placer_of
from muster.core.trial import already_holds
from muster.model.node import Node
from tests.core.domain_placements import problem_of
from tests.dsl import Cluster, gang, pod
from tests.dsl.groups import GroupPlan
from tests.properties.domain_reference import fits
from tests.properties.strategies import one_in
from tests.properties.test_domain_search import KEYS, plans, topologies

Drawn = tuple[list[Node], list[str], GroupPlan]
"""Nodes, a name for each pod that runs, and the tree."""


@st.composite
def questions(draw: st.DrawFn) -> Drawn:
    nodes = draw(topologies())
    running = draw(st.lists(st.sampled_from([item.name for item in nodes]), max_size=4))
    return nodes, running, _with_marks(draw, draw(plans(nodes)))


def _with_marks(draw: st.DrawFn, plan: GroupPlan) -> GroupPlan:
    """Some groups may not be placed; of these, those with running members hold by them."""
    if not plan.is_leaf:
        return replace(plan, children=tuple(_with_marks(draw, child) for child in plan.children))
    if draw(st.booleans()) and plan.bound:
        return replace(plan, policy=gang(len(plan.bound)), admissible=False)
    return replace(plan, admissible=not one_in(draw, 12))


def cluster_of(nodes: list[Node], running: list[str]) -> Cluster:
    cluster = Cluster(*nodes)
    names = {item.name for item in nodes}
    for name in running:
        if name in names:
            cluster.runs(pod(cpu="1"), name)
    return cluster


def demand_of(cluster: Cluster) -> Demand:
    return Demand(rooms_of(cluster.snapshot, placer_of(cluster.snapshot, cluster.profile)))


def can_be_placed(cluster: Cluster, plan: GroupPlan) -> bool:
    return fits(problem_of(cluster, plan), cluster.snapshot.nodes)


@settings(max_examples=500, deadline=None)
@given(questions())
def test_nothing_that_can_be_placed_is_hopeless(drawn: Drawn) -> None:
    nodes, running, plan = drawn
    cluster = cluster_of(nodes, running)
    unit, _ = cluster.unit(plan)
    assume(not already_holds(unit.root))

    hopeless = is_hopeless(demand_of(cluster), unit.root)

    placeable = can_be_placed(cluster, plan)
    event("placeable" if placeable else "hopeless" if hopeless else "neither")
    assert not (hopeless and placeable)


@settings(max_examples=300, deadline=None)
@given(questions(), st.sampled_from(KEYS))
def test_no_domain_that_holds_a_group_is_ruled_out(drawn: Drawn, key: str) -> None:
    nodes, running, plan = drawn
    cluster = cluster_of(nodes, running)
    unit, _ = cluster.unit(replace(plan, topology_key=key))
    assume(not already_holds(unit.root))
    (level,) = levels_of(cluster.snapshot, CLUSTER, (key,))

    failures = bound_inside(demand_of(cluster), CLUSTER, key).failures(unit.root).tolist()

    for value, failure in zip(level.values, failures, strict=True):
        inside = [item for item in nodes if item.labels.get(key) == value]
        anywhere = replace(plan, topology_key=None)
        if failure:
            assert not can_be_placed(cluster_of(inside, running), anywhere)
        if failure == Status.UNSCHEDULABLE_AND_UNRESOLVABLE:
            assert not can_be_placed(cluster_of(inside, []), anywhere)
