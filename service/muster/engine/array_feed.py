"""Turns changes of objects into deltas of the snapshot's arrays, and keeps the signature of every pod.

The same deltas go to the snapshot of this process and to the replica in a worker process, so the two stay equal.
Deltas are collected while a revision is made and applied in one go, since 10 000 pods in one delta cost a few
milliseconds and in 10 000 deltas a hundredfold.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

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
from muster.core.signature import SignatureTable
from muster.core.snapshot import Snapshot
from muster.engine.queueing_hints import EventKind
from muster.model.meta import ORDINAL_OF
from muster.model.node import Node
from muster.model.pod import Pod, PodSpec
from muster.model.variations import alike

LEAST_SIGNATURES = 8_192
SIGNATURES_A_KEPT = 4
"""So many times as many as are in use may have been made before others are given up, which takes time for each one kept."""
LEAST_RESOURCES = 256
MOST_BEHIND = 100_000
MANY_CHANGES = 200
_NODE_OF = attrgetter("node_name")
_are_read_alike = alike(Pod, "spec", "labels", "namespace")


class ArrayFeed:
    """`snapshot` is current once `flush` has run; `subscribe` gives a replica its start and all later deltas."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.signatures = SignatureTable()
        self._pending: list[Delta] = []
        self._bound: list[int] = []
        self._bound_signatures: list[int] = []
        self._bound_nodes: list[str] = []
        self._open: set[int] = set()
        self._unbound: list[int] = []
        self._outbox: list[Delta] | None = None
        self._behind = 0
        self._signatures_due = LEAST_SIGNATURES
        self._resources_due = LEAST_RESOURCES

    def signature_of(self, pod: Pod) -> int:
        """The index of what filters and scores read of the pod."""
        return self.signatures.intern(pod)

    def signatures_of(self, pods: Sequence[Pod]) -> list[int]:
        """The index of each; asked once for pods after one another that share spec and labels."""
        if pods and _are_read_alike(pods):
            return [self.signatures.intern(pods[0])] * len(pods)
        found: list[int] = []
        spec: PodSpec | None = None
        labels: dict[str, str] | None = None
        namespace, index = "", 0
        for pod in pods:
            if pod.spec is not spec or pod.labels is not labels or pod.namespace != namespace:
                index = self.signatures.intern(pod)
                spec, labels, namespace = pod.spec, pod.labels, pod.namespace
            found.append(index)
        return found

    def node_changed(self, old: Node | None, new: Node | None) -> bool:
        """Note a node that came, changed or went; whether placement reads anything that differs."""
        if new is None:
            self._append(NodeRemoved(old.name if old is not None else ""))
        elif old is not None and _offer(old) == _offer(new):
            return False
        else:
            self._append(NodePut(new))
        return True

    def pod_changed(self, old: Pod | None, new: Pod | None) -> EventKind | None:
        """Note a pod that took, kept or gave back room."""
        had = old is not None and _uses_room(old)
        has = new is not None and _uses_room(new)
        if new is None or not has:
            if had and old is not None:
                self._unbind(old.ordinal)
                return EventKind.POD_FREED
            return None
        if old is None or not had:
            self._bind(new, self.signatures.intern(new))
            if new.is_leaving:
                self._append(PodsLeaving((new.ordinal,)))
            return EventKind.POD_BOUND
        return self._bound_pod_changed(old, new)

    def pods_bound(self, bound: Sequence[Pod]) -> None:
        """Note pods that took room and had none."""
        self._close_unbound()
        self._bound_signatures += self.signatures_of(bound)
        self._bound += map(ORDINAL_OF, bound)
        self._bound_nodes += map(_NODE_OF, bound)

    def _bound_pod_changed(self, old: Pod, new: Pod) -> EventKind | None:
        before, after = self.signatures.intern(old), self.signatures.intern(new)
        moved = old.node_name != new.node_name
        if moved or before != after:
            self._rebind(new, after)
        if new.is_leaving and (moved or before != after or not old.is_leaving):
            self._append(PodsLeaving((new.ordinal,)))
        if moved:
            return EventKind.POD_FREED
        if before != after:
            return EventKind.POD_RELABELLED
        return EventKind.POD_LEAVING if new.is_leaving and not old.is_leaving else None

    @property
    def is_far_behind(self) -> bool:
        """Whether bringing the snapshot up to date would take a while."""
        return len(self._pending) >= MANY_CHANGES

    def flush(self) -> Snapshot:
        """Bring the snapshot up to date and return it.

        Assignments that are still assumed stay if they are just what was bound since; else they are taken back.
        """
        self._close_bound()
        self._close_unbound()
        self._announce_signatures()
        for delta in self._without_confirmed():
            self.snapshot.apply(delta)
        self._note_for_replica(self._pending)
        self._pending.clear()
        return self.snapshot

    def take_in(self, most: int) -> None:
        """Bring the snapshot so many changes nearer to what is, if nothing is assumed."""
        if self.snapshot.has_assumptions:
            self.flush()
            return
        taken = self._pending[:most]
        for delta in taken:
            self.snapshot.apply(delta)
        self._note_for_replica(taken)
        del self._pending[:most]

    def _note_for_replica(self, taken: Sequence[Delta]) -> None:
        """A replica that has not asked for so long is sent the whole state again, which is less."""
        if self._outbox is None:
            return
        self._outbox.extend(taken)
        self._behind += sum(map(_size, taken))
        if self._behind > MOST_BEHIND:
            self.unsubscribe()

    def forget_signatures(self) -> bool:
        """Give up the signatures of which no pod runs, once they are the most, or too many resources; whether that was done.

        Every index stands for another signature then: nobody may hold one, so no unit may be in work.
        """
        if not self._has_too_many():
            return False
        snapshot = self.flush()
        kept = SignaturesKept(tuple(sorted(snapshot.pods.counts)))
        self._signatures_due = max(LEAST_SIGNATURES, SIGNATURES_A_KEPT * len(kept.indexes))
        if not self._has_too_many():
            return False
        snapshot.apply(kept)
        if self._outbox is not None:
            self._outbox.append(kept)
        self.signatures = SignatureTable()
        self.signatures.adopt(snapshot.signatures)
        self.signatures.take_new()
        self._resources_due = max(LEAST_RESOURCES, 2 * len(snapshot.nodes.rows))
        return True

    def _has_too_many(self) -> bool:
        too_many_kinds = len(self.signatures) >= self._signatures_due
        return too_many_kinds or len(self.snapshot.nodes.rows) >= self._resources_due

    def _without_confirmed(self) -> list[Delta]:
        """The pending deltas that the snapshot does not hold yet; nothing is assumed any more.

        Signatures of pods that are still to come may be announced ahead of what was assumed.
        """
        snapshot, pending = self.snapshot, self._pending
        if not snapshot.has_assumptions:
            return pending
        bound = next((delta for delta in pending if not isinstance(delta, SignaturesAdded)), None)
        if isinstance(bound, PodsBound) and snapshot.confirm(bound):
            return [delta for delta in pending if delta is not bound]
        snapshot.rollback(0)
        return pending

    def subscribe(self) -> Snapshot:
        """The state from which a replica starts; `take_deltas` has what follows."""
        snapshot = self.flush()
        self._outbox, self._behind = [], 0
        return snapshot

    @property
    def is_followed(self) -> bool:
        """Whether a replica was started, and has not fallen so far behind that it must be started anew."""
        return self._outbox is not None

    def take_deltas(self) -> list[Delta]:
        """Deltas since the last call, for the replica."""
        self.flush()
        taken = self._outbox or []
        self._outbox, self._behind = [], 0
        return taken

    def unsubscribe(self) -> None:
        """The replica is gone."""
        self._outbox = None

    def _bind(self, pod: Pod, signature: int) -> None:
        self._close_unbound()
        self._bound.append(pod.ordinal)
        self._bound_signatures.append(signature)
        self._bound_nodes.append(pod.node_name)

    def _rebind(self, pod: Pod, signature: int) -> None:
        """A bound pod takes other room, or is read otherwise: what the snapshot binds again it takes back first.

        That it does once for all pods of a delta, so none may be in it twice.
        """
        self._open.update(self._bound[len(self._open) :])
        if pod.ordinal in self._open:
            self._close_bound()
        self._bind(pod, signature)

    def _unbind(self, ordinal: int) -> None:
        self._close_bound()
        self._unbound.append(ordinal)

    def _append(self, delta: Delta) -> None:
        self._close_bound()
        self._close_unbound()
        self._pending.append(delta)

    def _close_bound(self) -> None:
        if self._bound:
            self._announce_signatures()
            ids, signatures, nodes = self._bound, self._bound_signatures, self._bound_nodes
            self._pending.append(PodsBound(tuple(ids), tuple(signatures), tuple(nodes)))
            self._bound, self._bound_signatures, self._bound_nodes = [], [], []
            self._open.clear()

    def _close_unbound(self) -> None:
        if self._unbound:
            self._pending.append(PodsUnbound(tuple(self._unbound)))
            self._unbound.clear()

    def _announce_signatures(self) -> None:
        new = self.signatures.take_new()
        if new:
            self._pending.append(SignaturesAdded(new))


def _uses_room(pod: Pod) -> bool:
    return bool(pod.node_name) and not pod.is_terminal


def _size(delta: Delta) -> int:
    return len(delta.ids) if isinstance(delta, PodsBound | PodsUnbound) else 1


def _offer(node: Node) -> tuple[object, ...]:
    """What placement reads of a node."""
    return (node.allocatable, node.labels, node.taints, node.unschedulable)
