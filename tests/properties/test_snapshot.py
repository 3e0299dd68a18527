"""Replicas that were fed alike are alike; what is kept from earlier is what would be worked out anew."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.decide import decide
from muster.core.decision import Decision
from muster.core.deltas import (
    Delta,
    NodePut,
    NodeRemoved,
    PodsBound,
    PodsLeaving,
    PodsUnbound,
    SignaturesAdded,
    SignaturesKept,
)
from muster.core.observer import NullObserver
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.model.meta import POD_GROUP, ObjectKey
from muster.model.pod import Pod
from muster.plugins.profile import default_profile
from tests.dsl import node
from tests.dsl.state import state_of
from tests.properties.strategies import nodes
from tests.properties.terms import pods_with_terms

Sent = TypeVar("Sent")
NAMES = tuple(f"node-{place}" for place in range(5))
SIGNATURES = 4
FIRST = tuple(NodePut(node(name, labels={"zone": zone})) for name, zone in zip(NAMES, "aab", strict=False))

node_puts = st.sampled_from(NAMES).flatmap(nodes).map(NodePut)
pod_ids = st.lists(st.integers(1, 12), min_size=1, max_size=6, unique=True).map(tuple)


@st.composite
def bindings(draw: st.DrawFn) -> PodsBound:
    ids = draw(pod_ids)
    return PodsBound(
        ids,
        tuple(draw(st.integers(0, SIGNATURES - 1)) for _ in ids),
        tuple(draw(st.sampled_from(NAMES)) for _ in ids),
        leaving=draw(st.booleans()),
    )


deltas: st.SearchStrategy[list[Delta]] = st.lists(
    st.one_of(
        node_puts,
        node_puts,
        st.sampled_from(NAMES).map(NodeRemoved),
        bindings(),
        bindings(),
        pod_ids.map(PodsUnbound),
        pod_ids.map(PodsLeaving),
    ),
    min_size=1,
    max_size=20,
)
signature_pods = st.tuples(*(pods_with_terms() for _ in range(SIGNATURES)))


def sent(value: Sent) -> Sent:
    """The value as another process gets it."""
    received: Sent = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own.
    return received


def started(pods: tuple[Pod, ...]) -> tuple[Snapshot, list[int]]:
    """Three plain nodes and the pods' signatures."""
    table = SignatureTable()
    indexes = [table.intern(pod) for pod in pods]
    snapshot = Snapshot()
    snapshot.apply(SignaturesAdded(table.take_new()))
    for first in FIRST:
        snapshot.apply(first)
    return snapshot, [index % len(table) for index in indexes]


def fitted(delta: Delta, number: int) -> Delta:
    """The delta with signatures that exist."""
    if isinstance(delta, PodsBound):
        signatures = tuple(signature % number for signature in delta.signatures)
        return PodsBound(delta.ids, signatures, delta.node_names, leaving=delta.leaving)
    return delta


def gang_of(signatures: list[int]) -> Unit:
    pods = PendingPods(tuple(range(100, 100 + len(signatures))), tuple(signatures))
    return Unit(GroupTree(ObjectKey(POD_GROUP, "default", "g"), is_gang=True, minimum=2, pods=pods))


def decided(snapshot: Snapshot, signatures: list[int]) -> Decision:
    return decide(snapshot, gang_of(signatures * 2), default_profile(), NullObserver())


@settings(max_examples=50, deadline=None)
@given(pods=signature_pods, history=deltas)
def test_replicas_fed_the_same_deltas_are_equal(pods: tuple[Pod, ...], history: list[Delta]) -> None:
    first, _ = started(pods)
    second, _ = started(pods)

    for delta in history:
        fit = fitted(delta, len(first.signatures))
        first.apply(fit)
        second.apply(sent(fit))
        second = sent(second)

    assert state_of(first) == state_of(second)


@settings(max_examples=60, deadline=None)
@given(pods=signature_pods, history=deltas)
def test_what_is_kept_from_earlier_decides_like_a_fresh_start(
    pods: tuple[Pod, ...], history: list[Delta]
) -> None:
    kept, signatures = started(pods)

    for delta in history:
        kept.apply(fitted(delta, len(kept.signatures)))
        before = state_of(kept)
        fresh = sent(kept)
        assert decided(kept, signatures) == decided(fresh, signatures)
        assert state_of(kept) == before


@settings(max_examples=50, deadline=None)
@given(pods=signature_pods, history=deltas)
def test_the_way_to_a_state_does_not_show_in_decisions(pods: tuple[Pod, ...], history: list[Delta]) -> None:
    travelled, signatures = started(pods)
    alive = {first.node.name: first for first in FIRST}
    running: dict[int, tuple[int, str, bool]] = {}
    for delta in history:
        fit = fitted(delta, len(travelled.signatures))
        travelled.apply(fit)
        _follow(fit, alive, running)
    direct, _ = started(pods)
    for first in FIRST:
        direct.apply(NodeRemoved(first.node.name))

    for name in sorted(alive, reverse=True):
        direct.apply(alive[name])
    for pod in sorted(running, reverse=True):
        signature, name, leaving = running[pod]
        direct.apply(PodsBound((pod,), (signature,), (name,), leaving=leaving))

    assert decided(direct, signatures) == decided(travelled, signatures)


def _follow(delta: Delta, alive: dict[str, NodePut], running: dict[int, tuple[int, str, bool]]) -> None:
    """Keep the plain state that the deltas lead to."""
    match delta:
        case NodePut(node=node):
            alive[node.name] = delta
        case NodeRemoved(name=name):
            alive.pop(name, None)
        case PodsBound(ids=ids, signatures=signatures, node_names=names, leaving=leaving):
            for pod, signature, name in zip(ids, signatures, names, strict=True):
                running[pod] = (signature, name, leaving)
        case PodsUnbound(ids=ids):
            for pod in ids:
                running.pop(pod, None)
        case PodsLeaving(ids=ids):
            for pod in ids:
                if pod in running:
                    running[pod] = (*running[pod][:2], True)


steps: st.SearchStrategy[list[Callable[[Snapshot, list[int]], None]]] = st.lists(
    st.one_of(
        st.just(lambda snapshot, marks: marks.append(snapshot.mark())),
        st.just(lambda snapshot, marks: snapshot.rollback(marks.pop()) if marks else None),
        st.tuples(st.integers(0, SIGNATURES - 1), st.integers(0, 4), st.integers(1, 3)).map(
            lambda drawn: lambda snapshot, _: _assume(snapshot, *drawn)
        ),
        st.tuples(st.integers(0, SIGNATURES - 1), st.lists(st.integers(1, 3), min_size=5, max_size=5)).map(
            lambda drawn: lambda snapshot, _: _assume_on_many(snapshot, *drawn)
        ),
        st.integers(0, SIGNATURES - 1).map(lambda drawn: lambda snapshot, _: _take_away(snapshot, drawn)),
    ),
    max_size=30,
)


def _assume(snapshot: Snapshot, signature: int, place: int, count: int) -> None:
    slot = snapshot.nodes.slot(NAMES[place])
    if slot is not None:
        snapshot.assume(signature % len(snapshot.signatures), slot, count)


def _assume_on_many(snapshot: Snapshot, signature: int, counts: list[int]) -> None:
    slots = snapshot.nodes.slots_of(NAMES)
    snapshot.assume_many(signature % len(snapshot.signatures), slots, np.array(counts[: len(slots)]))


def _take_away(snapshot: Snapshot, signature: int) -> None:
    """All pods of the signature."""
    index = signature % len(snapshot.signatures)
    running = dict(snapshot.pods.counts.get(index, {}))
    slots = np.array(list(running), dtype=np.intp)
    snapshot.assume_many(index, slots, -np.array(list(running.values()), dtype=np.int64))


@settings(max_examples=60, deadline=None)
@given(pods=signature_pods, history=deltas, walk=steps)
def test_rolling_back_restores_the_state_to_the_byte(
    pods: tuple[Pod, ...], history: list[Delta], walk: list[Callable[[Snapshot, list[int]], None]]
) -> None:
    snapshot, _ = started(pods)
    for delta in history:
        snapshot.apply(fitted(delta, len(snapshot.signatures)))
    before = state_of(snapshot)
    marks = [snapshot.mark()]

    for step in walk:
        step(snapshot, marks)
    snapshot.rollback(0)

    assert state_of(snapshot) == before


@settings(max_examples=15, deadline=None)
@given(pods=signature_pods, history=deltas, more=deltas)
def test_giving_up_signatures_of_which_no_pod_runs_changes_no_decision(
    pods: tuple[Pod, ...], history: list[Delta], more: list[Delta]
) -> None:
    plain, _ = started(pods)
    for delta in history:
        plain.apply(fitted(delta, len(plain.signatures)))
    thinned, kept = sent(plain), sorted(plain.pods.counts)
    if not kept:
        return

    thinned.apply(SignaturesKept(tuple(kept)))

    places = list(range(len(kept)))
    assert _told(decided(thinned, places)) == _told(decided(plain, kept))
    for delta in more:
        fit = fitted(delta, len(kept))
        thinned.apply(fit)
        plain.apply(_with_signatures(fit, kept))
    assert _told(decided(thinned, places)) == _told(decided(plain, kept))


def _with_signatures(delta: Delta, kept: list[int]) -> Delta:
    """The delta for a snapshot that has all signatures still."""
    if isinstance(delta, PodsBound):
        signatures = tuple(kept[signature] for signature in delta.signatures)
        return PodsBound(delta.ids, signatures, delta.node_names, leaving=delta.leaving)
    return delta


def _told(decision: Decision) -> tuple[object, ...]:
    """What a decision says but for the numbers of signatures."""
    return decision.code, decision.message, decision.assignments
