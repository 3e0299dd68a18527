"""The search never contradicts trying everything, and what it finds always fits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decision import SearchEnd
from muster.core.search import packing as packing_module
from muster.core.search.packing import Effort, Verdict
from muster.model.node import Node
from tests.core.packing_questions import Packable, Plan, Some
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.properties.packing_reference import is_packable, is_placeable

amounts = st.integers(0, 4)


@st.composite
def pods_by_type(draw: st.DrawFn, kinds: int) -> Plan:
    supply = draw(st.dictionaries(st.integers(0, kinds - 1), st.integers(1, 3), min_size=1, max_size=3))
    return Some(draw(st.integers(1, min(4, sum(supply.values())))), supply)


@st.composite
def packables(draw: st.DrawFn) -> Packable:
    resources, kinds, size = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    leaves = [draw(pods_by_type(kinds)) for _ in range(draw(st.integers(1, 3)))]
    plan = leaves[0] if len(leaves) == 1 else Some(draw(st.integers(1, len(leaves))), leaves)
    return Packable(
        takes=[tuple(draw(amounts) for _ in range(resources)) for _ in range(kinds)],
        free=[tuple(draw(st.integers(0, 8)) for _ in range(resources)) for _ in range(size)],
        plan=plan,
        on={0: draw(st.lists(st.integers(0, size - 1), unique=True))} if draw(st.booleans()) else {},
        alone=frozenset({0}) if draw(st.booleans()) else frozenset(),
    )


@given(packables())
@settings(max_examples=150, deadline=None)
def test_the_verdict_is_that_of_trying_everything(packable: Packable) -> None:
    expected = Verdict.FOUND if is_packable(packable.problem()) else Verdict.IMPOSSIBLE

    assert packable.packed().verdict is expected


@given(packables(), st.integers(0, 400), st.sampled_from(Effort))
@settings(max_examples=100, deadline=None)
def test_no_budget_and_no_effort_makes_a_verdict_wrong(
    packable: Packable, steps: int, effort: Effort
) -> None:
    verdict = packable.packed(steps, effort).verdict

    assert verdict is Verdict.UNKNOWN or (verdict is Verdict.FOUND) is is_packable(packable.problem())


@given(packables())
@settings(max_examples=100, deadline=None)
def test_without_exact_counts_nothing_is_claimed_that_is_not_so(packable: Packable) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing_module, "_CHEAP", 0)
        patch.setattr(packing_module, "_TURNS", dict.fromkeys(Effort, 1))
        verdict = packable.packed(2_000).verdict

    assert verdict is Verdict.UNKNOWN or (verdict is Verdict.FOUND) is is_packable(packable.problem())


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return node(
        name,
        f"{draw(st.integers(0, 16)) * 500}m",
        memory=f"{draw(st.integers(0, 6))}Gi",
        pods=draw(st.sampled_from([2, 3, 110])),
        labels={"disk": draw(st.sampled_from(["ssd", "none"]))},
    )


@st.composite
def leaf_plans(draw: st.DrawFn, name: str) -> GroupPlan:
    members = tuple(
        pod(
            f"{name}-{place}",
            cpu=f"{draw(st.integers(0, 6)) * 500}m",
            memory=f"{draw(st.integers(0, 3))}Gi",
            node_selector={"disk": "ssd"} if draw(st.integers(0, 3)) == 0 else None,
            host_port=draw(st.sampled_from([0, 0, 0, 80])),
        )
        for place in range(draw(st.integers(1, 3)))
    )
    return pod_group(name, gang(draw(st.integers(1, len(members)))), pods=members)


@st.composite
def plans(draw: st.DrawFn) -> GroupPlan:
    children = [draw(leaf_plans(f"leaf-{place}")) for place in range(draw(st.integers(1, 3)))]
    if len(children) == 1:
        return children[0]
    return composite("root", gang(draw(st.integers(1, len(children)))), *children)


offers = st.integers(1, 3).flatmap(lambda number: st.tuples(*(nodes(f"n{place}") for place in range(number))))


@given(offers, plans())
@settings(max_examples=150, deadline=None)
def test_a_unit_is_placed_if_and_only_if_a_placement_exists(
    offered: tuple[Node, ...], plan: GroupPlan
) -> None:
    result = Cluster(*offered).schedule(plan)

    assert (result.code == "SCHEDULED") is is_placeable(plan, offered)
    if result.code != "SCHEDULED":
        assert result.decision.search.end is SearchEnd.EXHAUSTED
