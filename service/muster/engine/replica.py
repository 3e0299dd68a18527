"""A copy of one cluster in another process, which follows what is committed (architecture.md, "Work").

`ReplicaFeed` is the side that has the cluster: it takes the present state in one step of the event loop, and from then
on what every transaction writes. `Replica` is the other side: a whole `Cluster` that is never written to a store, so
that everything which reads or changes a cluster works on it. What is kept in memory alone travels with each question.
"""

from __future__ import annotations

import io
import pickle
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from muster.core.signature import Signature
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import Root, find_root, find_roots
from muster.engine.mutation import Mutation
from muster.engine.nominations import nominated_pods
from muster.engine.ports import ClusterWrites, LoadedCluster, PreemptionWait
from muster.engine.reservations import Reservation
from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.model.variations import variation, varied

SLICE = 200
MOST_BEHIND = 50_000
MOST_UNREAD = 20_000
"""So many changed objects are brought into the arrays of a replica though nobody asks: they would pile up."""
_POD_FIELDS = tuple(field.name for field in fields(Pod) if field.init)
_values_of = attrgetter(*_POD_FIELDS)
_made = variation(Pod, *_POD_FIELDS)
_NO_POD = Pod(name="")


@dataclass(frozen=True, slots=True)
class Unstored:
    """What of a cluster's state no store has: by ordinal, nodes on which the binding of a pod failed, and until when.

    reservation: with the time by which run times are judged.
    """

    failed_bindings: dict[int, dict[str, int]] = field(default_factory=dict)
    reservation: tuple[Reservation | None, int] = (None, 0)


@dataclass(frozen=True, slots=True)
class FirstState:
    """A cluster as it was in one step. Its objects are shared with the cluster, and never change."""

    head: LoadedCluster
    objects: Sequence[ClusterObject]

    def pickled(self) -> Iterator[bytes]:
        """The objects in slices; what pods of a slice share is in it once.

        Each is a pickle of its own: a memory of all that was pickled would have to grow now and then, which takes as
        long as many slices.
        """
        for start in range(0, len(self.objects), SLICE):
            yield pickled(self.objects[start : start + SLICE])


def pickled(value: object) -> bytes:
    """The value as the other process is sent it."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Takes records as the values of their fields, and pods both ways: a dataclass's own way takes several times as long."""

    def reducer_override(self, item: object) -> Any:  # noqa: ANN401 - as pickle wants it
        """How to make the object again."""
        kind: type[Any] = type(item)
        if kind is Pod:
            return _pod_of, _values_of(item)
        values_of = _VALUES[kind]
        return NotImplemented if values_of is None else (_record_of, (kind, values_of(item)))


def _pod_of(*values: Any) -> Pod:  # noqa: ANN401 - of fields of many types
    return _made(_NO_POD, *values)


class _Values(dict[type[Any], Callable[[object], tuple[Any, ...]] | None]):
    """By kind, what reads the fields of a record with slots; None for what is none, or has but one field."""

    def __missing__(self, kind: type[Any]) -> Callable[[object], tuple[Any, ...]] | None:
        is_record = is_dataclass(kind) and "__slots__" in kind.__dict__
        names = [each.name for each in fields(kind)] if is_record else []
        self[kind] = read = attrgetter(*names) if len(names) > 1 else None
        return read


_VALUES = _Values()


def _record_of(kind: type[Any], values: tuple[Any, ...]) -> object:
    made: object = object.__new__(kind)
    for each, value in zip(fields(kind), values, strict=True):
        object.__setattr__(made, each.name, value)
    return made


class ReplicaFeed:
    """What a replica of one cluster must hear. One replica follows at a time; without one, writes cost nothing."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._outbox: list[ClusterWrites] | None = None
        self._behind = 0
        self._signatures_told = 0
        self._signatures = cluster.feed.signatures

    @property
    def is_followed(self) -> bool:
        """Whether a replica was started, and need not be started anew.

        It must once it is too far behind, or the cluster numbers its signatures anew.
        """
        return self._outbox is not None and self._signatures is self.cluster.feed.signatures

    @property
    def is_behind(self) -> bool:
        """Whether the replica has yet to hear of something."""
        return not self.is_followed or bool(self._outbox)

    def start(self) -> FirstState:
        """The state as it is now; `take` has what follows."""
        cluster = self.cluster
        self._outbox, self._behind, self._signatures_told = [], 0, 0
        self._signatures = cluster.feed.signatures
        head = LoadedCluster(
            name=cluster.name,
            revision=cluster.state.revision,
            compacted_revision=0,
            objects=[],
            units=list(cluster.queue.rows.values()),
            pending_groups=cluster.pending_group_rows(),
            pending_members=cluster.pending_member_rows(),
            waits=cluster.waits.rows(),
        )
        objects = [item for kind in cluster.state.objects.values() for item in kind.values()]
        return FirstState(head, objects)

    def stop(self) -> None:
        """Nobody follows any more."""
        self._outbox = None

    def note(self, writes: ClusterWrites) -> None:
        """A transaction is durable."""
        if self._outbox is None:
            return
        self._behind += len(writes.puts) + len(writes.removed)
        if self._behind > MOST_BEHIND:
            self.stop()
        else:
            self._outbox.append(varied(writes, entries=[], decisions=[], requests=[]))

    def take(self) -> Iterator[ClusterWrites]:
        """What was written since the last call, or since the start, in slices and in order."""
        taken, self._outbox, self._behind = self._outbox or [], [], 0
        return chain.from_iterable(map(_slices, taken))

    def take_signatures(self) -> tuple[Signature, ...]:
        """Signatures that the replica does not know, in the order of their indexes."""
        known = self.cluster.feed.signatures.signatures
        new = tuple(known[self._signatures_told :])
        self._signatures_told = len(known)
        return new

    def unstored(self) -> Unstored:
        """What travels with a question, as it is now."""
        failed, held = self.cluster.failed_bindings, self.cluster.reservations
        return Unstored(
            {ordinal: dict(nodes) for ordinal, nodes in failed.items()}, (held.current, held.now_us)
        )


class Replica:
    """A cluster that follows another. `cluster` belongs to the caller between two calls."""

    def __init__(self, head: LoadedCluster, names: frozenset[str]) -> None:
        self.cluster = Cluster(head.name, 0, names)
        self._head = head
        self._objects: list[ClusterObject] = []
        self._unread = 0

    def add(self, pickled: bytes) -> None:
        """A slice of the first state's objects."""
        self._objects += pickle.loads(pickled)  # noqa: S301 - from our own parent

    def complete(self) -> None:
        """All slices of the first state are there."""
        self.cluster.load(replace(self._head, objects=self._objects))
        self.cluster.take_writes()
        self._objects.clear()

    def follow(self, writes: ClusterWrites) -> None:
        """Do what a transaction did, unless the first state had it already."""
        if writes.revision < self.cluster.state.revision:
            return
        follow(self.cluster, writes)
        changed = len(writes.puts) + len(writes.removed)
        self._unread += changed
        # A part that has objects is followed by others of its transaction, and may speak of what they bring.
        if not changed and self._unread > MOST_UNREAD:
            self._flush()

    def learn(self, signatures: Iterable[Signature]) -> None:
        """Give the same indexes to signatures as the cluster that is followed."""
        self.cluster.feed.signatures.adopt(signatures)

    def take_over(self, unstored: Unstored) -> None:
        """Take what is kept in memory alone, and bring the arrays up to date."""
        self.cluster.failed_bindings.take_over(unstored.failed_bindings)
        held = self.cluster.reservations
        held.current, held.now_us = unstored.reservation
        self._flush()

    def _flush(self) -> None:
        self.cluster.feed.flush()
        self._unread = 0


def follow(cluster: Cluster, writes: ClusterWrites) -> None:
    """Bring a copy to what was written: its objects with all that is derived from them, then its rows."""
    mutation = Mutation(cluster, 0)
    mutation.revision = writes.revision
    for key in writes.removed:
        if cluster.state.get(key) is not None:
            mutation.remove(key)
    for item in writes.puts.values():
        _put(mutation, item)
    cluster.state.revision = writes.revision
    cluster.budgets.take_changed()
    _follow_queue(cluster, writes)
    _follow_pending(cluster, writes)
    _follow_waits(cluster, writes)
    _follow_layouts(mutation)
    cluster.take_writes()


def _put(mutation: Mutation, item: ClusterObject) -> None:
    """As the mutation does, but a budget that only tells of other counts is not counted anew."""
    cluster = mutation.cluster
    old = cluster.state.get(item.key)
    is_same = old is not None and old.generation == item.generation
    if isinstance(item, PodDisruptionBudget) and is_same:
        cluster.state.put(item.key, item)
        cluster.budgets.restated(item)
    else:
        mutation.put(item)


def _slices(writes: ClusterWrites) -> Iterator[ClusterWrites]:
    """The writes in parts of at most `SLICE` objects; the last one carries the rows, which speak of all objects."""
    puts, removed = iter(writes.puts.items()), iter(writes.removed.items())
    parts = [
        replace(_objects_only(writes), removed=dict(part))
        for part in iter(lambda: list(islice(removed, SLICE)), [])
    ]
    parts += [
        replace(_objects_only(writes), puts=dict(part))
        for part in iter(lambda: list(islice(puts, SLICE)), [])
    ]
    yield from parts
    yield replace(writes, puts={}, removed={})


def _objects_only(writes: ClusterWrites) -> ClusterWrites:
    return ClusterWrites(writes.cluster, writes.token, writes.revision)


def _follow_queue(cluster: Cluster, writes: ClusterWrites) -> None:
    for key in writes.unit_removals:
        cluster.queue.remove(key)
    for row in writes.unit_puts.values():
        cluster.queue.put(row)


def _follow_pending(cluster: Cluster, writes: ClusterWrites) -> None:
    for group in writes.pending_group_puts.values():
        cluster.set_pending_group(group.key, group.missing)
    for key in writes.pending_group_removals:
        cluster.set_pending_group(key, None)
    for member in writes.pending_member_puts.values():
        cluster.set_pending_member(member.key, member.missing)
        pod = cluster.state.pod(member.key.namespace, member.key.name)
        if pod is not None:
            cluster.waiting_leaves[pod.namespace, pod.group] = member.missing
    for key in writes.pending_member_removals:
        cluster.set_pending_member(key, None)


def _follow_waits(cluster: Cluster, writes: ClusterWrites) -> None:
    for key in writes.wait_removals:
        cluster.waits.forget(key)
    for wait in writes.wait_puts.values():
        follow_wait(cluster, wait)


def follow_wait(cluster: Cluster, wait: PreemptionWait) -> None:
    """Take the row over; where its unit's pods are nominated is in their status."""
    running = ChainMap(cluster.disruption.running, cluster.disruption.leaving)
    cluster.waits.forget(wait.key)
    cluster.waits.load([wait], (each for each in nominated_pods(cluster) if each[0] == wait.key), running)


def _follow_layouts(mutation: Mutation) -> None:
    """Check the trees whose groups or Workload changed; faults are derived, and no row tells of them."""
    cluster, state = mutation.cluster, mutation.state
    for key in mutation.touched_groups:
        root = find_root(state, key)
        _follow_leaf(cluster, key, root)
        if root.key != key or root.missing:
            cluster.layouts.forget(key)
    referring: list[ObjectKey] = list(mutation.regrouped)
    for workload in mutation.touched_workloads:
        referring += state.groups_of_workload(workload.namespace, workload.name)
    for root in dict.fromkeys(find_roots(state, referring).values()):
        if not root.missing:
            cluster.layouts.check(state, root.key)


def _follow_leaf(cluster: Cluster, key: ObjectKey, root: Root) -> None:
    if not root.missing:
        cluster.waiting_leaves.pop((key.namespace, key.name), None)
