"""What has been over for so long that it may go: finished pods, and trees of which every pod has finished (semantics 7).

A finished pod counts for its group while others of its tree run, so a tree goes whole: all pods of it, then its groups.
Finalizers hold an object as in every deletion, and what it owns goes with it. Off unless somebody sets a time. When a
pod was first seen to have finished is kept in memory: after a restart the time begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.engine.api import DeleteCall, DeleteRef
from muster.engine.cluster_state import ClusterState
from muster.engine.deletion import delete
from muster.engine.hierarchy import pods_of_unit, subtree, unit_of_pod
from muster.engine.mutation import Mutation
from muster.model.meta import GROUP_KINDS, ObjectKey
from muster.model.pod import FAILED, SUCCEEDED, Pod

AT_ONCE = 500
"""Objects of one revision, so that nobody waits long; a tree that is larger goes whole."""


_FINISHED = (SUCCEEDED, FAILED)


class FinishedPods:
    """Of one cluster. `keep_us`: how long a finished pod stays, in microseconds."""

    def __init__(self, keep_us: int) -> None:
        self._keep_us = keep_us
        self._since: dict[int, int] = {}

    def remove(self, mutation: Mutation, *, clients_evict: bool) -> int:
        """Delete some of what is over in a fresh mutation; how many objects there were, 0 once there are no more."""
        keys = self._over(mutation.state, mutation.now_us)
        if keys:
            call = DeleteCall(cluster=mutation.cluster.name, refs=[DeleteRef(key) for key in keys])
            delete(mutation, call, clients_evict=clients_evict)
        return len(keys)

    def _over(self, state: ClusterState, now_us: int) -> list[ObjectKey]:
        # Those that are marked already are held by a finalizer each: their deletion needs no other.
        finished = [pod for pod in state.pods() if pod.status.phase in _FINISHED and pod.deletion_us is None]
        self._since = {pod.ordinal: self._since.get(pod.ordinal, now_us) for pod in finished}
        due = {ordinal for ordinal, since_us in self._since.items() if since_us + self._keep_us <= now_us}
        found: list[ObjectKey] = []
        for keys in _wholes(state, (pod for pod in finished if pod.ordinal in due), due):
            found += keys
            if len(found) >= AT_ONCE:
                break
        return found


def _wholes(state: ClusterState, pods: Iterable[Pod], due: set[int]) -> Iterator[list[ObjectKey]]:
    """What goes together: a pod without a tree by itself, a tree if nothing of it is live or finished too lately."""
    seen: set[ObjectKey] = set()
    for pod in pods:
        root = unit_of_pod(state, pod)
        unit = pod.key if root.missing else root.key
        if unit in seen:
            continue
        seen.add(unit)
        if unit.kind not in GROUP_KINDS:
            yield [unit]
            continue
        members = list(pods_of_unit(state, unit))
        if all(
            each.ordinal in due or (each.is_terminal and each.deletion_us is not None) for each in members
        ):
            yield [
                *(each.key for each in members if each.ordinal in due),
                *(group.key for group in subtree(state, unit) if group.deletion_us is None),
            ]
