"""Writes as an engine would make them: revisions that count up, ordinals from revision and place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from muster.engine.log_entries import EventType, LogEntry
from muster.engine.ports import ClusterWrites, HistoryBounds, Store
from muster.model.meta import ORDINAL_BITS
from muster.model.objects import ClusterObject
from muster.model.pod import Container, Pod, PodSpec, PodStatus, Resources

Written = TypeVar("Written", bound=ClusterObject)
SPEC = PodSpec(containers=(Container(name="main", resources=Resources(requests={"cpu": "1"})),))


def gang(name: str, size: int, *, spec: PodSpec = SPEC, labels: dict[str, str] | None = None) -> list[Pod]:
    """Pods of one group that share their values by reference, as one Apply makes them."""
    shared, notes, status = {"app": name} if labels is None else labels, {"note": name}, PodStatus()
    return [
        Pod(
            name=f"{name}-{index}",
            namespace="default",
            uid=f"{name}-{index}",
            labels=shared,
            annotations=notes,
            spec=spec,
            group=name,
            status=status,
        )
        for index in range(size)
    ]


class Ledger:
    """Owns one cluster of a store and commits to it, one revision at a time or several together."""

    def __init__(self, store: Store, cluster: str = "main") -> None:
        self.cluster = cluster
        self._store = store
        self.token = store.acquire(cluster)
        self.revision = store.load_cluster(cluster).revision

    def writes(self) -> ClusterWrites:
        """Writes that contain nothing yet."""
        return ClusterWrites(self.cluster, self.token, self.revision, created=self.revision == 0)

    def compact(self, bounds: HistoryBounds) -> int:
        """Forget all that is beyond the bounds, and all values that nothing uses; in how many slices."""
        slices = 0
        old = self._store.find_old(self.cluster, bounds)
        while old is not None:
            slices += 1
            old = self._store.forget_old(self.cluster, self.token, old)
        unused = self._store.find_unused(self.cluster)
        while unused is not None:
            slices += 1
            unused = self._store.forget_unused(self.cluster, self.token, unused)
        return slices

    def add(self, writes: ClusterWrites, objects: Sequence[Written]) -> list[Written]:
        """Add a revision that makes these objects; returns them with what the server fills in."""
        revision = self._next(writes)
        made = [
            replace(one, ordinal=(revision << ORDINAL_BITS) + place, resource_version=revision)
            for place, one in enumerate(objects)
        ]
        self._put(writes, EventType.ADDED, made)
        return made

    def change(self, writes: ClusterWrites, objects: Sequence[Written]) -> list[Written]:
        """Add a revision that changes these objects to what is given; returns them."""
        revision = self._next(writes)
        changed = [replace(one, resource_version=revision) for one in objects]
        self._put(writes, EventType.MODIFIED, changed)
        return changed

    def remove(self, writes: ClusterWrites, objects: Sequence[ClusterObject]) -> None:
        """Add a revision that deletes these objects."""
        revision = self._next(writes)
        for one in objects:
            writes.puts.pop(one.key, None)
            writes.removed[one.key] = one
        deleted = [EventType.DELETED] * len(objects)
        writes.entries.append(LogEntry(revision, revision, deleted, [*objects]))

    def commit(self, *writes: ClusterWrites) -> None:
        self._store.commit(writes)

    def committed_add(self, objects: Sequence[Written]) -> list[Written]:
        writes = self.writes()
        made = self.add(writes, objects)
        self.commit(writes)
        return made

    def committed_change(self, objects: Sequence[Written]) -> list[Written]:
        writes = self.writes()
        changed = self.change(writes, objects)
        self.commit(writes)
        return changed

    def committed_remove(self, objects: Sequence[ClusterObject]) -> None:
        writes = self.writes()
        self.remove(writes, objects)
        self.commit(writes)

    def objects(self) -> dict[str, ClusterObject]:
        """What the store has, by key as text."""
        return {str(one.key): one for one in self._store.load_cluster(self.cluster).objects}

    def _next(self, writes: ClusterWrites) -> int:
        self.revision = writes.revision = self.revision + 1
        return self.revision

    @staticmethod
    def _put(writes: ClusterWrites, event: EventType, objects: Sequence[ClusterObject]) -> None:
        writes.puts.update((one.key, one) for one in objects)
        events = [event] * len(objects)
        writes.entries.append(LogEntry(writes.revision, writes.revision, events, [*objects]))
