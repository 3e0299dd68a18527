"""Small groups, one after the other, get what simulating every candidate anew would give each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core import decide as door
from muster.core import running_sums, standings
from muster.core.decision import Decision
from muster.core.deltas import NodePut
from muster.core.lockstep import Lockstep, NoRehearsal
from muster.core.observer import RecordingObserver
from muster.core.tree import Unit
from muster.model.node import Node
from muster.model.pod import Pod
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, basic, composite, gang, node, pod_group
from tests.dsl.groups import GroupPlan
from tests.properties.strategies import one_in
from tests.properties.test_lockstep import LABELLED, SHAPES

GREEDY = make_profile({"name": "greedy", "greedyOnly": True})
Decided = tuple[Decision, list[tuple[object, ...]]]


@st.composite
def racks(draw: st.DrawFn) -> list[Node]:
    """Nodes in racks in blocks, of few sizes, so that domains often stand alike; now and then without a label."""
    made = []
    for place in range(draw(st.integers(4, 12))):
        labels = {"block": draw(st.sampled_from("ab")), "rack": draw(st.sampled_from("abc"))}
        if one_in(draw, 12):
            del labels[draw(st.sampled_from(["block", "rack"]))]
        made.append(node(f"n{(place * 5) % 13}", draw(st.sampled_from("1234")), labels=labels))
    return made


@st.composite
def small_groups(draw: st.DrawFn, kinds: tuple[Pod, ...]) -> GroupPlan:
    """Leaves in racks, and groups of them in blocks."""

    def leaf(name: str) -> GroupPlan:
        number = draw(st.integers(1, 4))
        members = tuple(_named(draw(st.sampled_from(kinds)), f"{name}-{place}") for place in range(number))
        policy = gang(draw(st.integers(1, number))) if not one_in(draw, 4) else basic()
        return pod_group(name, policy, pods=members, same="rack", admissible=not one_in(draw, 12))

    if one_in(draw, 3):
        return leaf("leaf")
    children = [leaf(f"leaf-{place}") for place in range(draw(st.integers(1, 4)))]
    policy = gang(draw(st.integers(1, len(children)))) if draw(st.booleans()) else basic()
    return composite("root", policy, *children, same=None if one_in(draw, 8) else "block")


def _named(pod: Pod, name: str) -> Pod:
    return Pod(name=name, namespace=pod.namespace, labels=pod.labels, spec=pod.spec)


@pytest.fixture(params=["at once", "when it pays", "with a short memory"], scope="module", autouse=True)
def how_soon(request: pytest.FixtureRequest) -> Iterator[None]:
    """When domains are judged for the first time, and how many changes are followed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standings, "_EARNED", 2 if request.param == "when it pays" else 1_000)
        if request.param == "with a short memory":
            patch.setattr(running_sums, "_FEW_CHANGES", 3)
            patch.setattr(running_sums, "_LONGEST_LOG", 6)
        yield


def decided(cluster: Cluster, unit: Unit, rehearsal: object) -> Decided:
    """What is decided, which stays assumed, and what an observer hears."""
    observer = RecordingObserver(lambda: 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "Lockstep", rehearsal)
        decision = door.decide_and_assume(cluster.snapshot, unit, cluster.profile, observer)
    return decision, observer.events


@settings(max_examples=100, deadline=None)
@given(choices=st.data(), made=racks())
def test_groups_that_follow_each_other_get_what_each_would_get_anew(
    choices: st.DataObject, made: list[Node]
) -> None:
    cluster = Cluster(*made, profile=GREEDY)
    kinds = choices.draw(st.sampled_from([SHAPES[:1], SHAPES[:1], LABELLED, SHAPES[:2]]))
    plans = choices.draw(st.lists(small_groups(kinds), min_size=1, max_size=3))
    units = [cluster.unit(plan)[0] for plan in plans]
    snapshot = cluster.snapshot

    for step in choices.draw(st.lists(st.integers(0, len(units)), min_size=4, max_size=12)):
        if step == len(units):
            snapshot.rollback(0)
            labels = choices.draw(st.sampled_from([{"rack": "a"}, {"rack": "b", "block": "a"}]))
            snapshot.apply(NodePut(node("extra", choices.draw(st.sampled_from("246")), labels=labels)))
            continue
        mark = snapshot.mark()
        anew = decided(cluster, units[step], lambda *_: NoRehearsal())
        snapshot.rollback(mark)
        assert decided(cluster, units[step], Lockstep) == anew
