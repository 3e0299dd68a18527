"""Units of equal pods that are placed in one step get just what the recursion decides on them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision
from muster.core.observer import NullObserver, Observer, RecordingObserver
from muster.core.tree import Unit
from muster.model.node import Node
from muster.model.pod import Pod
from tests.dsl import Cluster, basic, gang, pod_group
from tests.properties.strategies import clusters, one_in, pods


@st.composite
def units(draw: st.DrawFn, cluster: Cluster, kind: Pod, name: str) -> Unit:
    """A leaf of pods of one kind, beside which others of the group may be running."""
    number = draw(st.integers(1, 6))
    members = tuple(replace(kind, name=f"{name}-{place}") for place in range(number))
    policy = basic() if one_in(draw, 3) else gang(draw(st.integers(1, number + 1)))
    unit = cluster.unit(pod_group(name, policy, pods=members))[0]
    root = replace(unit.root, satisfied=draw(st.sampled_from([0, 0, 1, 3])))
    return replace(unit, root=root)


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
