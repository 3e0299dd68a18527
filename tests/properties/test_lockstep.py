"""Candidates in lock-step come to exactly what simulating them one after the other comes to.

The whole decision is compared, and all that the observer hears: who was tried or ruled out, statuses, counters, the
domain that came closest, reasons, the winner and why, and where every pod goes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core import decide as door
from muster.core import lockstep, standings
from muster.core.decision import Decision
from muster.core.lockstep import Lockstep, NoRehearsal
from muster.core.observer import RecordingObserver
from muster.core.tree import Unit
from muster.model.node import Node
from muster.model.pod import Pod
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, basic, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan, Policy
from tests.properties.strategies import one_in

KEYS = ("block", "rack", "row")
SHAPES = (pod(cpu="1"), pod(cpu="2", memory="3Gi"), pod(cpu="0"), pod(cpu="1", gpu="1"))
LABELLED = tuple(pod(cpu="1", labels={"index": str(index)}) for index in range(2))
GREEDY = make_profile({"name": "greedy", "greedyOnly": True})


Built = tuple[list[Node], list[tuple[Pod, str]]]
"""Nodes, and which pods run where."""


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Labels that may be missing, empty, equal on two levels, and need not nest."""
    labels = {
        key: value
        for key in KEYS
        if (value := draw(st.sampled_from([None, "", "a", "b", "a", "b", "c"]))) is not None
    }
    cpu = draw(st.sampled_from(["0", "1", "2", "3", "4", "4", "6"]))
    gpu = draw(st.sampled_from(["0", "2"]))
    return node(name, cpu, memory=draw(st.sampled_from(["4Gi", "64Gi"])), labels=labels, gpu=gpu)


@st.composite
def clusters(draw: st.DrawFn) -> Built:
    made = [draw(nodes(f"n{(place * 5) % 9}")) for place in range(draw(st.integers(1, 9)))]
    running = [
        (draw(st.sampled_from(SHAPES[:2])), draw(st.sampled_from(made)).name)
        for _ in range(draw(st.integers(0, 4)))
    ]
    return made, running


@st.composite
def pods(draw: st.DrawFn, name: str, kinds: tuple[Pod, ...]) -> tuple[Pod, ...]:
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=0, max_size=5))
    return tuple(
        Pod(name=f"{name}-{place}", namespace=item.namespace, labels=item.labels, spec=item.spec)
        for place, item in enumerate(chosen)
    )


def policies(draw: st.DrawFn, most: int) -> Policy:
    return gang(draw(st.integers(1, max(most, 1)))) if draw(st.booleans()) else basic()


@st.composite
def trees(draw: st.DrawFn, names: tuple[str, ...]) -> GroupPlan:
    """Up to four levels. Often of one kind of pod, and with the same label on a level."""
    kinds = draw(st.sampled_from([(SHAPES[0],), (SHAPES[1],), (SHAPES[0],), (SHAPES[2],), LABELLED, SHAPES]))
    depth = draw(st.integers(1, 4))
    keys = tuple(draw(st.sampled_from([*KEYS, None])) for _ in range(depth))
    count = iter(range(100))

    def grow(level: int) -> GroupPlan:
        key = keys[level] if not one_in(draw, 10) else None
        name = f"g{next(count)}"
        admissible = level == 0 or not one_in(draw, 10)
        if level == depth - 1 or one_in(draw, 8):
            members = draw(pods(name, kinds))
            bound = (draw(st.sampled_from(names)),) if one_in(draw, 12) else ()
            policy = policies(draw, len(members) + len(bound))
            return pod_group(name, policy, pods=members, same=key, bound=bound, admissible=admissible)
        children = [grow(level + 1) for _ in range(draw(st.integers(1, 3)))]
        return composite(name, policies(draw, len(children)), *children, same=key)

    return grow(0)


def decided(cluster: Cluster, unit: Unit, rehearsal: object) -> tuple[Decision, list[tuple[object, ...]]]:
    observer = RecordingObserver(lambda: 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "Lockstep", rehearsal)
        decision = door.decide(cluster.snapshot, unit, cluster.profile, observer)
    return decision, observer.events


@pytest.fixture(params=["as it comes", "wherever it can"], scope="module", autouse=True)
def how_often(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lock-step is used for few domains too, and small groups are judged at once, or both only where it pays."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "wherever it can":
            patch.setattr(lockstep, "_FEW_DOMAINS", 0)
            patch.setattr(standings, "_EARNED", 1_000)
        yield


@settings(max_examples=300, deadline=None)
@given(choices=st.data(), built=clusters())
def test_lockstep_decides_what_simulating_every_candidate_decides(
    choices: st.DataObject, built: Built
) -> None:
    made, running = built
    cluster = Cluster(*made, profile=GREEDY)
    for item, name in running:
        cluster.runs(item, name)
    unit, _ = cluster.unit(choices.draw(trees(tuple(item.name for item in made))))

    in_lockstep = decided(cluster, unit, Lockstep)
    one_by_one = decided(cluster, unit, lambda *_: NoRehearsal())

    assert in_lockstep == one_by_one
