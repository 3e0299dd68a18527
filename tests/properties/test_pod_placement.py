"""Every fast path gives exactly the sequence of one pod at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core import front_runners, pod_placement
from muster.core.deltas import NodePut, PodsBound, SignaturesAdded
from muster.core.pod_placement import PodPlacer
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.resources import node_allocatable
from muster.plugins.profile import make_profile
from tests import dsl
from tests.dsl.state import state_of
from tests.properties import reference
from tests.properties.strategies import CURVES, clusters, pods, scored, shrunk

strategies = st.sampled_from(["least", "most", *CURVES])
weights = st.tuples(*(st.integers(1, 3) for _ in range(4)))


@pytest.fixture(params=["one-by-one", "few-in-front", "arrays"], scope="module")
def fast_path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which of the two fast paths places small batches too, and whether the best nodes are often looked for anew."""
    with pytest.MonkeyPatch.context() as patch:
        for few in ("_FEW", "_FEW_VARIED"):
            patch.setattr(pod_placement, few, 0 if request.param == "arrays" else 10**6)
        if request.param == "few-in-front":
            patch.setattr(front_runners, "_MOST", 2)
        yield request.param


class Pair:
    """The same cluster for the core and for the reference."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.snapshot = Snapshot()
        self.table = SignatureTable()
        self.nodes: dict[str, reference.ReferenceNode] = {}
        self._bound = 0
        for item in nodes:
            self.put(item)

    def put(self, node: Node) -> None:
        self.snapshot.apply(NodePut(node))
        old = self.nodes.get(node.name)
        item = reference.ReferenceNode(node, dict(node_allocatable(node)))
        if old is not None:
            for resource in old.free:
                used = old.allocatable.get(resource, 0) - old.free[resource]
                item.free[resource] = item.allocatable.get(resource, 0) - used
            item.ports = old.ports
        self.nodes[node.name] = item

    def signature(self, pod: Pod) -> int:
        index = self.table.intern(pod)
        self.snapshot.apply(SignaturesAdded(self.table.take_new()))
        return index

    def bind(self, pod: Pod, name: str) -> None:
        self._bound += 1
        self.snapshot.apply(PodsBound((self._bound,), (self.signature(pod),), (name,)))
        reference.take(self.nodes[name], pod)


@settings(max_examples=150, deadline=None)
@given(
    nodes=clusters,
    running=pods(),
    waves=st.lists(st.tuples(pods(), st.integers(1, 40)), min_size=1, max_size=4),
    strategy=strategies,
    weight=weights,
)
def test_batches_equal_one_pod_at_a_time(
    fast_path: str,
    nodes: tuple[Node, ...],
    running: Pod,
    waves: list[tuple[Pod, int]],
    strategy: str | tuple[tuple[int, int], ...],
    weight: tuple[int, int, int, int],
) -> None:
    pair = Pair(nodes)
    pair.bind(running, nodes[0].name)
    pair.put(shrunk(nodes[0]))
    indexes = [pair.signature(wave) for wave, _ in waves]
    placer = PodPlacer(pair.snapshot, make_profile(scored(strategy, weight)))
    by_hand = reference.Settings(*weight, strategy)

    for index, (wave, count) in zip(indexes, waves, strict=True):
        slots = placer.place(index, count, None)
        expected = reference.place(list(pair.nodes.values()), wave, count, by_hand)
        assert [pair.snapshot.nodes.names[slot] for slot in slots] == expected


@settings(max_examples=80, deadline=None)
@given(
    offer=st.sampled_from([("8", "8Gi"), ("6", "16Gi"), ("16", "4Gi")]),
    number=st.integers(2, 5),
    requests=st.sampled_from([("1", "1Gi"), ("2", "2Gi"), ("700m", "500Mi"), ("1", "0")]),
    count=st.integers(2, 20),
    strategy=strategies,
)
def test_scores_that_fall_and_rise_again_keep_the_sequence(
    fast_path: str,
    offer: tuple[str, str],
    number: int,
    requests: tuple[str, str],
    count: int,
    strategy: str | tuple[tuple[int, int], ...],
) -> None:
    pair = Pair(tuple(dsl.node(f"node-{i}", offer[0], memory=offer[1]) for i in range(number)))
    equal = dsl.pod(cpu=requests[0], memory=requests[1])
    index = pair.signature(equal)
    placer = PodPlacer(pair.snapshot, make_profile(scored(strategy, (1, 1, 1, 1))))

    slots = placer.place(index, count, None)

    by_hand = reference.Settings(strategy=strategy)
    expected = reference.place(list(pair.nodes.values()), equal, count, by_hand)
    assert [pair.snapshot.nodes.names[slot] for slot in slots] == expected


@settings(max_examples=60, deadline=None)
@given(nodes=clusters, pod=pods(), count=st.integers(1, 30), inside=st.sets(st.integers(0, 6), min_size=1))
def test_a_domain_is_placed_as_if_there_were_no_other_nodes(
    fast_path: str, nodes: tuple[Node, ...], pod: Pod, count: int, inside: set[int]
) -> None:
    pair = Pair(nodes)
    index = pair.signature(pod)
    placer = PodPlacer(pair.snapshot, make_profile(scored("least", (1, 1, 1, 1))))
    names = [node.name for place, node in enumerate(nodes) if place in inside]
    members = [item for item in pair.nodes.values() if item.node.name in names]
    everyone = list(pair.nodes.values())

    slots = placer.place(index, count, pair.snapshot.nodes.slots_of(sorted(names)))

    placed = []
    for _ in range(count):
        able = [item for item in members if reference.admits(item, pod)]
        if not able:
            break
        best = min(
            able,
            key=lambda item: (-reference.score(item, everyone, pod, reference.Settings()), item.node.name),
        )
        reference.take(best, pod)
        placed.append(best.node.name)
    assert [pair.snapshot.nodes.names[slot] for slot in slots] == placed


@settings(max_examples=60, deadline=None)
@given(nodes=clusters, waves=st.lists(st.tuples(pods(), st.integers(1, 40)), min_size=1, max_size=6))
def test_rolling_back_restores_the_snapshot_and_the_next_placement(
    fast_path: str, nodes: tuple[Node, ...], waves: list[tuple[Pod, int]]
) -> None:
    pair = Pair(nodes)
    indexes = [pair.signature(wave) for wave, _ in waves]
    placer = PodPlacer(pair.snapshot, make_profile(scored("least", (1, 1, 1, 1))))
    before = state_of(pair.snapshot)
    mark = pair.snapshot.mark()

    def run() -> list[list[int]]:
        placed = [
            placer.place(index, count, None).tolist()
            for index, (_, count) in zip(indexes, waves, strict=True)
        ]
        pair.snapshot.rollback(mark)
        return placed

    assert run() == run()
    assert state_of(pair.snapshot) == before
