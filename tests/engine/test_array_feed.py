"""Kinds of pods that are no more are given up, and replicas that do not ask are not fed for ever."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muster.core.snapshot import Snapshot
from muster.engine import array_feed
from muster.engine.array_feed import ArrayFeed
from muster.model.pod import Pod
from tests import dsl
from tests.dsl.state import state_of


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_feed, "LEAST_SIGNATURES", 16)


def bound(number: int, **fields: object) -> Pod:
    pod = dsl.pod(f"pod-{number}", cpu="100m", labels={"own": str(number)}, **fields)  # type: ignore[arg-type]
    return replace(pod, node_name="n", ordinal=number)


def feed_with_a_node() -> ArrayFeed:
    feed = ArrayFeed()
    feed.node_changed(None, dsl.node("n", "64", pods=1000))
    return feed


def passing(feed: ArrayFeed, first: int, number: int) -> Iterator[int]:
    """Pods of a kind of their own come and go; sizes of the table as they do."""
    for ordinal in range(first, first + number):
        pod = bound(ordinal)
        feed.pod_changed(None, pod)
        feed.flush()
        feed.pod_changed(pod, None)
        feed.forget_signatures()
        yield len(feed.signatures)


def meaning(snapshot: Snapshot) -> dict[int, tuple[object, ...]]:
    """What is known of each bound pod, whatever the numbers of signatures."""
    found: dict[int, tuple[object, ...]] = {}
    for pod in range(20):
        if pod in snapshot.pods:
            index, slot, leaving = snapshot.pods.place(pod)
            kind = snapshot.signatures[index]
            found[pod] = (kind.labels, kind.spec, snapshot.requests(index).tolist(), slot, leaving)
    return found


def test_the_table_is_bounded_by_what_runs_however_many_kinds_have_passed() -> None:
    feed = feed_with_a_node()
    for ordinal in range(3):
        feed.pod_changed(None, bound(ordinal))

    sizes = list(passing(feed, 100, 500))

    assert max(sizes) <= array_feed.LEAST_SIGNATURES + 1
    assert len(feed.snapshot.signatures) == len(feed.signatures)


def test_what_runs_is_known_as_before() -> None:
    feed = feed_with_a_node()
    anti = dsl.pod(affinity=dsl.pod().spec.affinity).spec
    for ordinal in range(5):
        feed.pod_changed(None, replace(bound(ordinal), spec=replace(bound(ordinal).spec, priority=ordinal)))
    feed.pod_changed(None, replace(bound(7), deletion_us=5, spec=anti))
    feed.flush()
    before, free = meaning(feed.snapshot), feed.snapshot.nodes.free.tolist()

    list(passing(feed, 100, 40))
    feed.flush()

    assert meaning(feed.snapshot) == before
    assert feed.snapshot.nodes.free.tolist() == free
    assert feed.snapshot.pods.counts.keys() >= feed.snapshot.pods.leaving.keys()


def test_a_pod_of_a_kind_that_runs_gets_its_number_and_one_of_a_kind_that_was_given_up_a_new_one() -> None:
    feed = feed_with_a_node()
    feed.pod_changed(None, bound(1))
    list(passing(feed, 100, 40))

    known, again = feed.signature_of(bound(1)), feed.signature_of(bound(100))

    assert known == 0
    assert feed.signatures[again].labels == {"own": "100"}
    assert feed.signatures[again].shape == feed.signatures[known].shape


def test_a_replica_is_equal_after_kinds_were_given_up() -> None:
    feed = feed_with_a_node()
    feed.pod_changed(None, bound(1))
    replica: Snapshot = pickle.loads(pickle.dumps(feed.subscribe()))  # noqa: S301 - our own

    list(passing(feed, 100, 40))
    feed.pod_changed(None, bound(2))
    for delta in feed.take_deltas():
        replica.apply(pickle.loads(pickle.dumps(delta)))  # noqa: S301 - our own

    assert state_of(replica) == state_of(feed.snapshot)
    assert feed.is_followed


def test_a_replica_that_has_not_asked_for_very_long_is_to_be_started_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(array_feed, "MOST_BEHIND", 50)
    feed = feed_with_a_node()
    feed.subscribe()

    followed = [feed.is_followed for _ in passing(feed, 100, 40)]

    assert followed[0]
    assert not followed[-1]


def test_what_was_assumed_is_confirmed_though_the_next_pods_kind_is_announced_before_it() -> None:
    feed = feed_with_a_node()
    first = bound(0)
    index = feed.signature_of(first)
    snapshot = feed.flush()
    snapshot.assume(index, snapshot.nodes.slots_of(["n"])[0].item())
    before = snapshot.changes.position

    feed.pods_bound([first])
    feed.signature_of(bound(1))
    feed.flush()

    assert snapshot.pods.place(0)[0] == index
    assert len(snapshot.signatures) == 2
    assert snapshot.changes.position == before


def relabelled(pod: Pod, value: str) -> Pod:
    return replace(pod, labels={"own": value})


@pytest.mark.parametrize("at_once", [False, True])
def test_pods_that_are_read_otherwise_count_once_however_often_that_was_before_a_flush(
    *, at_once: bool
) -> None:
    feed, plain = feed_with_a_node(), feed_with_a_node()
    feed.node_changed(None, dsl.node("m", "64", pods=1000))
    plain.node_changed(None, dsl.node("m", "64", pods=1000))
    pods = [bound(ordinal) for ordinal in range(4)]
    feed.pods_bound(pods[:2])
    for pod in pods[2:]:
        feed.pod_changed(None, pod)
    feed.flush()

    for value in ("a", "b"):
        changed = [relabelled(pod, value) for pod in pods]
        for old, new in zip(pods, changed, strict=True):
            feed.pod_changed(old, new)
        pods = changed
        if not at_once:
            feed.flush()
    moved = [replace(pods[0], node_name="m"), replace(pods[1], deletion_us=5), *pods[2:]]
    for old, new in zip(pods, moved, strict=True):
        feed.pod_changed(old, new)

    for pod in moved:
        plain.pod_changed(None, pod)
    assert meaning(feed.flush()) == meaning(plain.flush())
    assert feed.snapshot.nodes.free.tolist() == plain.snapshot.nodes.free.tolist()
    assert [sum(each.values()) for each in feed.snapshot.pods.counts.values()] == [4]


def test_many_pods_that_are_read_otherwise_are_one_delta() -> None:
    feed = feed_with_a_node()
    pods = [bound(ordinal) for ordinal in range(50)]
    feed.pods_bound(pods)
    feed.subscribe()

    for pod in pods:
        feed.pod_changed(pod, relabelled(pod, "a"))

    assert [type(each).__name__ for each in feed.take_deltas()] == ["SignaturesAdded", "PodsBound"]


def test_what_is_taken_in_a_few_at_a_time_is_what_a_flush_takes_in() -> None:
    feed, plain = feed_with_a_node(), feed_with_a_node()
    replica: Snapshot = pickle.loads(pickle.dumps(feed.subscribe()))  # noqa: S301 - our own
    for each in (feed, plain):
        for number in range(250):
            each.node_changed(None, dsl.node(f"n-{number}", "4"))
            each.pod_changed(None, replace(bound(number), node_name=f"n-{number}"))

    steps = 0
    while feed.is_far_behind:
        feed.take_in(70)
        steps += 1

    assert steps > 1
    assert state_of(feed.flush()) == state_of(plain.flush())
    for delta in feed.take_deltas():
        replica.apply(delta)
    assert state_of(replica) == state_of(feed.snapshot)


def test_taking_in_leaves_nothing_assumed_that_was_not_bound() -> None:
    feed = feed_with_a_node()
    index = feed.signature_of(bound(0))
    snapshot = feed.flush()
    free = snapshot.nodes.free.tolist()
    snapshot.assume(index, snapshot.nodes.slots_of(["n"])[0].item())
    feed.node_changed(None, dsl.node("m", "4"))

    feed.take_in(10)

    assert not snapshot.has_assumptions
    assert [row[:1] for row in snapshot.nodes.free.tolist()] == [row[:1] for row in free]
