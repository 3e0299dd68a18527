"""A replica that follows a cluster of which nobody asks anything."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from muster.engine.mutation import Mutation
from muster.engine.replica import Replica, ReplicaFeed
from muster.model.pod import Pod
from tests.engine.container_sizes import sizes
from tests.engine.small_cluster import SmallCluster, node, pod

NAMES = frozenset({"default-scheduler"})
PODS = 20


BOUNDS = {
    "muster.engine.replica.MOST_UNREAD": 3 * PODS,
    "muster.core.signature.SignatureTable._MOST_IDENTITIES": 16,
    "muster.core.change_log._KEPT": 16,
}
"""How many things that are gone are kept at most: so few here that a short run shows whether they have an end."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in BOUNDS.items():
        monkeypatch.setattr(name, bound)


def replica_of(feed: ReplicaFeed) -> Replica:
    first = feed.start()
    made = Replica(first.head, NAMES)
    for part in first.pickled():
        made.add(part)
    made.complete()
    return made


def follow(held: SmallCluster, feed: ReplicaFeed, copy: Replica) -> None:
    """One transaction, as the writer and the side worker pass it on."""
    writes = held.cluster.take_writes()
    assert writes is not None
    feed.note(writes)
    copy.learn(feed.take_signatures())
    for part in feed.take():
        copy.follow(part)


def put(pods: list[Pod], mutation: Mutation) -> None:
    for each in pods:
        mutation.put(each)


def remove(pods: list[Pod], mutation: Mutation) -> None:
    for each in pods:
        mutation.remove(each.key)


def come_and_gone(held: SmallCluster, feed: ReplicaFeed, copy: Replica, turns: range) -> Counter[str]:
    """How much the replica holds after transactions in which pods came, and others in which they went."""
    for turn in turns:
        pods = [pod(f"p-{turn}-{number}", on="n") for number in range(PODS)]
        held.change(partial(put, pods))
        follow(held, feed, copy)
        held.change(partial(remove, pods))
        follow(held, feed, copy)
    return sizes(copy)


def test_what_has_come_and_gone_leaves_nothing_behind() -> None:
    held = SmallCluster(node("n"))
    held.cluster.take_writes()
    feed = ReplicaFeed(held.cluster)
    copy = replica_of(feed)

    few = come_and_gone(held, feed, copy, range(12))
    many = come_and_gone(held, feed, copy, range(12, 60))

    grown = {path: (few[path], size) for path, size in many.items() if size > few[path] + 3 * PODS}
    assert grown == {}
