"""Units of equal pods that are placed in one step get just what the recursion decides on them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision
from muster.core.observer import NullObserver, Observer, RecordingObserver
from muster.core.tree import GroupTree, Unit
from muster.model.node import Node
from muster.model.pod import Pod
from tests.dsl import Cluster, basic, composite, gang, node, pod_group
from tests.dsl.groups import GroupPlan, Policy
from tests.properties.strategies import clusters, one_in, pods


@st.composite
def units(draw: st.DrawFn, cluster: Cluster, kind: Pod, name: str) -> Unit:
    """A leaf of pods of one kind, or a tree of them."""
    unit = cluster.unit(draw(trees(kind, name, 2) if one_in(draw, 2) else groups(kind, name)))[0]
    return replace(unit, root=draw(standing(unit.root)))


@st.composite
def standing(draw: st.DrawFn, group: GroupTree) -> GroupTree:
    """The group, beside whose pods others may be running; some groups of a tree may not be placed."""
    if group.is_leaf:
        return replace(group, satisfied=draw(st.sampled_from([0, 0, 0, 0, 1, 3])))
    children = [replace(draw(standing(child)), admissible=not one_in(draw, 8)) for child in group.children]
    return replace(group, children=tuple(children))


@st.composite
def trees(draw: st.DrawFn, kind: Pod, name: str, depth: int) -> GroupPlan:
    """Groups of one to three children, the innermost of which are leaves."""
    number = draw(st.integers(1, 3))
    below = [trees(kind, f"{name}-{place}", depth - 1) for place in range(number)]
    if depth == 1 or one_in(draw, 2):
        below = [groups(kind, f"{name}-{place}") for place in range(number)]
    return composite(name, draw(policies(number)), *map(draw, below))


@st.composite
def groups(draw: st.DrawFn, kind: Pod, name: str) -> GroupPlan:
    number = draw(st.integers(1, 6))
    members = tuple(replace(kind, name=f"{name}-{place}") for place in range(number))
    return pod_group(name, draw(policies(number)), pods=members)


@st.composite
def policies(draw: st.DrawFn, number: int) -> Policy:
    """Basic, or a gang of up to so many children, or one more."""
    return (
        basic()
        if one_in(draw, 3)
        else gang(draw(st.sampled_from([*range(1, number + 1), number, number + 1])))
    )


def decided(cluster: Cluster, unit: Unit, observer: Observer) -> Decision:
    """What is decided, which stays assumed. Only the recursion has anything to tell an observer who listens."""
    return decide_and_assume(cluster.snapshot, unit, cluster.profile, observer)


@settings(max_examples=150, deadline=None)
@given(choices=st.data(), made=clusters, kinds=st.lists(pods(), min_size=1, max_size=2))
def test_units_that_follow_each_other_get_what_the_recursion_decides(
    choices: st.DataObject, made: tuple[Node, ...], kinds: list[Pod]
) -> None:
    cluster = Cluster(*made)
    snapshot = cluster.snapshot
    of_kinds = choices.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    made_units = [choices.draw(units(cluster, kind, f"unit-{place}")) for place, kind in enumerate(of_kinds)]
    for unit in made_units:
        mark = snapshot.mark()
        recursive = decided(cluster, unit, RecordingObserver(lambda: 0))
        free = snapshot.nodes.free.copy()
        snapshot.rollback(mark)

        assert decided(cluster, unit, NullObserver()) == recursive
        assert (snapshot.nodes.free == free).all()


def test_a_tree_of_which_a_group_holds_in_part_is_placed_in_the_order_of_the_recursion() -> None:
    cluster = Cluster(node("n"))
    plan = composite("root", gang(2), pod_group("a", gang(2), pods=2), pod_group("b", gang(2), pods=2))
    unit = cluster.unit(plan)[0]
    first, second = unit.root.children
    unit = replace(unit, root=replace(unit.root, children=(replace(first, satisfied=1), second)))

    one, other = first.pods.ids
    assert decided(cluster, unit, NullObserver()).assignments.pods == (one, *second.pods.ids, other)


def test_a_tree_with_fewer_groups_than_its_minimum_is_not_placed() -> None:
    cluster = Cluster(node("n"))
    unit = cluster.unit(composite("root", gang(2), pod_group("a", gang(2), pods=2)))[0]

    assert not decided(cluster, unit, NullObserver()).assignments.pods
