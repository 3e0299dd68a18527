"""Deltas, in every order in which they may come."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

from muster.core.arrays import IntArray, lengthened
from muster.core.bound_pods import grouped
from muster.core.deltas import NodePut, NodeRemoved, PodsBound, PodsLeaving, PodsUnbound, SignaturesAdded
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.model.node import Node
from muster.model.pod import Pod
from tests.dsl import node, pod
from tests.dsl.state import state_of


def snapshot_with(*pods: Pod) -> Snapshot:
    table = SignatureTable()
    for item in pods:
        table.intern(item)
    snapshot = Snapshot()
    snapshot.apply(SignaturesAdded(table.take_new()))
    return snapshot


def free(snapshot: Snapshot, name: str, resource: str = "cpu") -> int:
    slot = snapshot.nodes.slot(name)
    assert slot is not None
    return int(snapshot.nodes.free[snapshot.nodes.row(resource), slot])


def bound(number: int, name: str, signature: int = 0) -> PodsBound:
    return PodsBound(tuple(range(number)), (signature,) * number, (name,) * number)


def test_pods_take_room_on_their_node() -> None:
    snapshot = snapshot_with(pod(cpu="1500m"))
    snapshot.apply(NodePut(node("a", "4")))

    snapshot.apply(bound(2, "a"))

    assert free(snapshot, "a") == 1000
    assert free(snapshot, "a", "pods") == 108


def test_pods_on_an_unknown_node_count_when_it_comes() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(bound(3, "a"))

    snapshot.apply(NodePut(node("a", "4")))

    assert free(snapshot, "a") == 1000


def test_a_removed_node_remembers_its_pods() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a", "4")))
    snapshot.apply(bound(3, "a"))

    snapshot.apply(NodeRemoved("a"))
    gone = snapshot.nodes.slot("a")
    snapshot.apply(NodePut(node("a", "8")))

    assert gone is None
    assert free(snapshot, "a") == 5000


def test_a_slot_is_used_again_once_nothing_is_on_it() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a")))
    snapshot.apply(bound(1, "a"))
    snapshot.apply(NodeRemoved("a"))
    snapshot.apply(PodsUnbound((0,)))

    snapshot.apply(NodePut(node("b")))

    assert snapshot.nodes.names == ["b"]


def test_a_node_that_shrank_below_its_use_has_less_than_nothing() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a", "4")))
    snapshot.apply(bound(3, "a"))

    snapshot.apply(NodePut(node("a", "1")))

    assert free(snapshot, "a") == -2000


def test_a_pod_bound_again_moves() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a", "4")))
    snapshot.apply(NodePut(node("b", "4")))
    snapshot.apply(bound(2, "a"))

    snapshot.apply(bound(2, "b"))

    assert (free(snapshot, "a"), free(snapshot, "b")) == (4000, 2000)


def test_unknown_pods_are_ignored() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a")))
    before = state_of(snapshot)

    snapshot.apply(PodsUnbound((7,)))
    snapshot.apply(PodsLeaving((7,)))

    assert state_of(snapshot) == before


def test_leaving_pods_use_room_until_they_are_gone() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a", "4")))
    snapshot.apply(bound(3, "a"))

    snapshot.apply(PodsLeaving((0, 1)))
    while_leaving = free(snapshot, "a")
    snapshot.apply(PodsUnbound((0,)))

    assert (while_leaving, free(snapshot, "a")) == (1000, 2000)
    assert snapshot.pods.leaving == {0: {snapshot.nodes.slot("a"): 1}}


def test_version_counts_only_what_can_change_a_placement() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a")))
    before = snapshot.version

    snapshot.apply(NodePut(node("a")))
    same = snapshot.version
    snapshot.apply(NodePut(node("a", labels={"zone": "x"})))

    assert (same, snapshot.version) == (before, before + 1)


def test_a_resource_may_appear_with_a_later_node_or_pod() -> None:
    snapshot = snapshot_with(pod(gpu="1"))
    snapshot.apply(NodePut(node("a")))

    snapshot.apply(NodePut(node("b", gpu="2")))
    snapshot.apply(bound(1, "b"))

    assert free(snapshot, "a", "example.com/gpu") == 0
    assert free(snapshot, "b", "example.com/gpu") == 1


def test_arrays_grow_with_the_cluster() -> None:
    snapshot = snapshot_with(pod())
    for number in range(100):
        snapshot.apply(NodePut(node(f"n{number}", labels={"zone": str(number % 3)})))

    order = [snapshot.nodes.names[slot] for slot in snapshot.nodes.order]

    assert order == sorted(order)
    assert len(snapshot.nodes) == 100
    assert sorted(snapshot.nodes.column("zone").codes[:100].tolist()) == sorted([0, 1, 2] * 33 + [0])


def test_more_than_64_bits_of_use_is_exact() -> None:
    huge = str(2**62)
    snapshot = snapshot_with(pod(memory=huge))
    snapshot.apply(NodePut(node("a", memory=huge)))

    snapshot.apply(bound(5, "a"))
    overloaded = free(snapshot, "a", "memory")
    snapshot.apply(PodsUnbound((1, 2, 3, 4)))
    full = free(snapshot, "a", "memory")
    snapshot.apply(PodsUnbound((0,)))

    assert overloaded < 0
    assert (full, free(snapshot, "a", "memory")) == (0, 2**62)


def test_deltas_are_refused_while_assignments_are_assumed() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(node("a")))
    snapshot.assume(0, 0)

    with pytest.raises(RuntimeError, match="assumed"):
        snapshot.apply(NodeRemoved("a"))


def test_signatures_must_come_in_order() -> None:
    table = SignatureTable()
    table.intern(pod())
    table.intern(pod(cpu="2"))

    with pytest.raises(ValueError, match="not the next one"):
        Snapshot().apply(SignaturesAdded((table[1],)))


def two_kinds_on_three_nodes() -> Snapshot:
    snapshot = snapshot_with(pod(cpu="1"), pod(cpu="500m", memory="1Gi"))
    for name in "abc":
        snapshot.apply(NodePut(node(name, "8")))
    return snapshot


def assume_on_two_nodes(snapshot: Snapshot) -> None:
    slots = snapshot.nodes.slots_of(["a", "b"])
    snapshot.assume_many(0, slots, np.array([2, 1]))
    snapshot.assume(1, int(slots[0]), 2)


BOUND_AS_ASSUMED = PodsBound((5, 6, 7, 8, 9), (0, 1, 0, 0, 1), ("a", "a", "b", "a", "a"))


def test_assumptions_that_were_bound_just_so_leave_what_binding_alone_would() -> None:
    bound_only, confirmed = two_kinds_on_three_nodes(), two_kinds_on_three_nodes()
    bound_only.apply(BOUND_AS_ASSUMED)
    assume_on_two_nodes(confirmed)

    answer = confirmed.confirm(BOUND_AS_ASSUMED)

    assert answer
    assert not confirmed.has_assumptions
    assert state_of(confirmed) == state_of(bound_only)


@pytest.mark.parametrize(
    "delta",
    [
        PodsBound((5, 6, 7, 8), (0, 1, 0, 0), ("a", "a", "b", "a")),
        PodsBound((5, 6, 7, 8, 9), (0, 1, 0, 0, 1), ("a", "a", "b", "a", "b")),
        PodsBound((5, 6, 7, 8, 9), (0, 1, 0, 0, 0), ("a", "a", "b", "a", "a")),
        PodsBound((5, 6, 7, 8, 9), (0, 1, 0, 0, 1), ("a", "a", "b", "a", "a"), leaving=True),
        PodsBound((5, 6, 7, 8, 9), (0, 1, 0, 0, 1), ("a", "a", "b", "a", "new")),
    ],
    ids=["one fewer", "another node", "another kind", "leaving", "an unknown node"],
)
def test_assumptions_that_were_bound_otherwise_are_not_confirmed(delta: PodsBound) -> None:
    snapshot = two_kinds_on_three_nodes()
    assume_on_two_nodes(snapshot)

    answer = snapshot.confirm(delta)

    assert not answer
    assert snapshot.has_assumptions
    assert free(snapshot, "a") == 5000
    assert len(snapshot.pods) == 0


@pytest.mark.parametrize("number", [3, 200], ids=["a handful", "many"])
def test_pods_are_grouped_by_kind_and_node(number: int) -> None:
    signatures = np.arange(number) % 2
    slots = np.arange(number, dtype=np.intp) // 3 % 5

    groups = grouped(signatures, slots)

    counted = {
        (signature, slot): count
        for signature, at, numbers in groups
        for slot, count in zip(at.tolist(), numbers.tolist(), strict=True)
    }
    assert counted == Counter(zip(signatures.tolist(), slots.tolist(), strict=True))
    assert [signature for signature, _, _ in groups] == sorted({*signatures.tolist()})


def test_resources_that_come_one_after_the_other_seldom_make_the_arrays_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def counted(array: IntArray, rows: int) -> IntArray:
        made.append(rows)
        return lengthened(array, rows)

    monkeypatch.setattr("muster.core.node_table.lengthened", counted)
    snapshot = Snapshot()

    for number in range(1_000):
        snapshot.apply(NodePut(Node(name="a", allocatable={f"x/{i}": "5" for i in range(number)})))

    assert len(made) <= 2 * 10
    assert snapshot.nodes.free.shape[0] == snapshot.nodes.allocatable.shape[0] == len(snapshot.nodes.rows)
    assert free(snapshot, "a", "x/998") == 5


def test_a_replica_gets_no_rows_that_nothing_is_in() -> None:
    snapshot = snapshot_with(pod())
    snapshot.apply(NodePut(Node(name="a", allocatable={f"x/{i}": "5" for i in range(100)})))
    snapshot.apply(NodePut(Node(name="a", allocatable={f"y/{i}": "5" for i in range(100)})))

    replica: Snapshot = pickle.loads(pickle.dumps(snapshot))  # noqa: S301 - our own
    for each in (snapshot, replica):
        each.apply(NodePut(Node(name="b", allocatable={"z": "7", "y/0": "3"})))
        each.apply(bound(1, "b"))

    assert len(pickle.dumps(snapshot.nodes)) < 2 * 8 * snapshot.nodes.size * len(snapshot.nodes.rows) + 20_000
    assert state_of(replica) == state_of(snapshot)
    assert free(replica, "b", "z") == 7
