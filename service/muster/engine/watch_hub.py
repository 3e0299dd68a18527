"""Feeds of durable revisions and decisions: any number of watchers read one ring, each at its own pace.

A watcher holds a position and no copy. Behind the ring it reads the store until it has caught up; one that had caught up
and then falls out of the ring is cut off (WATCHER_TOO_SLOW), and never slows the others or the writer.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from muster.engine.api import DecisionBatch, DecisionFilter, ObjectFilter, WatchBatch
from muster.engine.errors import Refusal, ResourceExhaustedError
from muster.engine.log_entries import Change, EventType, LogEntry
from muster.engine.ports import DecisionRecord
from muster.engine.selection import anything
from muster.model.objects import TYPES, ClusterObject

MOST_CHANGES = 200_000
KEPT_SECONDS = 30.0
"""What is older leaves the ring however much room it has: who is that far behind reads the store."""
BATCH = 200
PAGE = 100
LOOKED_AT_ONCE = 2_000
"""After so many changes a watcher lets others run, also when none of them was for it."""


class Revised(Protocol):
    """Something that happened at a revision."""

    @property
    def revision(self) -> int: ...


Item = TypeVar("Item", bound=Revised)
Read = Callable[[int, int], Awaitable[list[Item]]]


class Ring(Generic[Item]):
    """The newest items, bounded by weight and by age. `start` is the revision behind which the ring is complete."""

    def __init__(self, revision: int, read: Read[Item], weight: Callable[[Item], int], most: int) -> None:
        self.start = revision
        self.end = revision
        self._read = read
        self._weight = weight
        self._most = most
        self._held = 0
        self._items: list[Item] = []
        self._arrivals: list[float] = []
        self._gone = 0
        self._more = asyncio.Event()
        self._restarts = 0
        self._ended: Refusal | None = None

    def publish(self, items: Iterable[Item]) -> None:
        """Add durable items in order of revision, and wake whoever waits."""
        now = asyncio.get_running_loop().time()
        for item in items:
            self._items.append(item)
            self._arrivals.append(now)
            self._held += self._weight(item)
            self.end = item.revision
        while self._gone < len(self._items) - 1 and self._is_over(now):
            oldest = self._items[self._gone]
            self._gone += 1
            self._held -= self._weight(oldest)
            self.start = oldest.revision
        # Taken out in runs: each removal moves all that stays.
        if self._gone > len(self._items) // 4:
            del self._items[: self._gone], self._arrivals[: self._gone]
            self._gone = 0
        self._wake()

    def restart(self, revision: int) -> None:
        """All up to here is durable, though it may never have been published: who was not told of it reads the store."""
        if revision > self.end:
            self._items.clear()
            self._arrivals.clear()
            self._gone = self._held = 0
            self.start = self.end = revision
            self._restarts += 1
            self._wake()

    def fail(self, error: Refusal) -> None:
        """End all watches with the refusal, at once."""
        self._ended = error
        self._wake()

    async def after(self, revision: int) -> AsyncIterator[list[Item]]:
        """Runs of items with a greater revision, for ever. Raises the refusal that ended the feed, or cut the watcher off."""
        caught_up: int | None = None
        while True:
            if self._ended is not None:
                raise self._ended
            more = self._more
            if revision < self.start:
                if caught_up == self._restarts:
                    text = f"the watch is at revision {revision}, the feed begins at {self.start}"
                    raise ResourceExhaustedError("WATCHER_TOO_SLOW", text)
                # The ring may move on while the store reads: what it held then is not in an empty answer.
                start = self.start
                items = await self._read(revision, PAGE)
                if not items:
                    revision = start
                    continue
            else:
                caught_up = self._restarts
                items = self._since(revision)
            if items:
                revision = items[-1].revision
                yield items
            else:
                await more.wait()

    def _is_over(self, now: float) -> bool:
        """Whether the oldest item is to leave."""
        return self._held > self._most or self._arrivals[self._gone] < now - KEPT_SECONDS

    def _since(self, revision: int) -> list[Item]:
        first = bisect_right(self._items, revision, lo=self._gone, key=lambda item: item.revision)
        return self._items[first : first + PAGE]

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()


class RevisionFeed:
    """What Watch follows."""

    def __init__(self, revision: int, read_log: Read[LogEntry], most_changes: int = MOST_CHANGES) -> None:
        self._ring: Ring[LogEntry] = Ring(
            revision, read_log, lambda entry: 1 + len(entry.objects), most_changes
        )

    @property
    def durable_revision(self) -> int:
        """Everything up to here is durable."""
        return self._ring.end

    def publish(self, entries: Iterable[LogEntry]) -> None:
        """Durable revisions, in order."""
        self._ring.publish(entries)

    def restart(self, revision: int) -> None:
        """The cluster was loaded again, at this revision."""
        self._ring.restart(revision)

    def fail(self, error: Refusal) -> None:
        """End all watches."""
        self._ring.fail(error)

    async def changes(
        self, selection: ObjectFilter, matches: Callable[[ClusterObject], bool], from_revision: int
    ) -> AsyncIterator[WatchBatch]:
        """Selected changes after the revision.

        A batch without changes tells, once nothing follows at once, how far everything has been looked at.
        """
        looked_at = 0
        async for entries in self._ring.after(from_revision):
            before = entries[0].revision - 1
            types, objects = list[EventType](), list[ClusterObject]()
            for entry in entries:
                found_types, found = _selected(entry, selection, matches)
                if objects and len(objects) + len(found) > BATCH:
                    yield WatchBatch(types, objects, before)
                    types, objects = [], []
                last = max(0, (len(found) - 1) // BATCH * BATCH)
                for start in range(0, last, BATCH):
                    end = start + BATCH
                    yield WatchBatch(found_types[start:end], found[start:end], before)
                types += found_types[last:]
                objects += found[last:]
                before = entry.revision
                looked_at += 1 + len(entry.objects)
                if looked_at > LOOKED_AT_ONCE:
                    looked_at = 0
                    await asyncio.sleep(0)
            if objects or before >= self._ring.end:
                yield WatchBatch(types, objects, before)


class DecisionFeed:
    """What WatchDecisions follows."""

    def __init__(self, revision: int, read: Read[DecisionRecord], most_pods: int = MOST_CHANGES) -> None:
        self._ring: Ring[DecisionRecord] = Ring(
            revision, read, lambda record: 1 + len(record.assignments.pods), most_pods
        )

    def publish(self, records: Iterable[DecisionRecord]) -> None:
        """Durable decisions, in order."""
        self._ring.publish(records)

    def restart(self, revision: int) -> None:
        """The cluster was loaded again, at this revision."""
        self._ring.restart(revision)

    def fail(self, error: Refusal) -> None:
        """End all watches."""
        self._ring.fail(error)

    async def decisions(self, from_revision: int, selection: DecisionFilter) -> AsyncIterator[DecisionBatch]:
        """Selected decisions after the revision, in order, at least once."""
        async for records in self._ring.after(from_revision):
            chosen = tuple(record for record in records if _is_chosen(record, selection))
            if chosen or records[-1].revision >= self._ring.end:
                yield DecisionBatch(chosen, records[-1].revision)
            else:
                await asyncio.sleep(0)


_Seen = tuple[Sequence[EventType], Sequence[ClusterObject]]


def _selected(entry: LogEntry, selection: ObjectFilter, matches: Callable[[ClusterObject], bool]) -> _Seen:
    """What a watcher with the filter sees of the entry: who leaves it is DELETED, who enters it ADDED."""
    kinds, by_labels, objects = selection.kinds, selection.matches_labels, entry.objects
    types = {TYPES[kind] for kind in kinds}
    if matches is anything and by_labels is None and types.issuperset(map(type, objects)):
        return entry.types, objects
    if types.isdisjoint(map(type, objects)):
        return (), ()
    found = [change for change in entry.changes if type(change.object) in types and matches(change.object)]
    if by_labels is not None:
        found = list(_labelled(found, by_labels))
    return [change.type for change in found], [change.object for change in found]


def _labelled(
    changes: Iterable[Change], matches_labels: Callable[[dict[str, str]], bool]
) -> Iterator[Change]:
    for change in changes:
        item = change.object
        earlier = item.labels if change.previous_labels is None else change.previous_labels
        was = change.type is not EventType.ADDED and matches_labels(earlier)
        stays = change.type is not EventType.DELETED and matches_labels(item.labels)
        if was and stays:
            yield change
        elif stays:
            yield Change(EventType.ADDED, item)
        elif was:
            yield Change(EventType.DELETED, item)


def _is_chosen(record: DecisionRecord, selection: DecisionFilter) -> bool:
    decision = record.decision
    if selection.unit is not None and decision.unit != selection.unit:
        return False
    if selection.from_us is not None and record.create_us < selection.from_us:
        return False
    if selection.to_us is not None and record.create_us >= selection.to_us:
        return False
    return not selection.codes or decision.code.value in selection.codes
