"""Going back along a cluster's log from the present to earlier revisions, in one pass for all of them.

Each step says which objects came since the revision that it leads to, and how those were that changed since. That is
known as long as the log holds the revisions from there on, and the earlier states of all that changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from muster.engine.log_entries import Change, EventType, LogEntry
from muster.engine.ports import Store
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject

_BLOCK = 500


class History(Protocol):
    """The log of one cluster."""

    async def read(self, after_revision: int, limit: int) -> list[LogEntry]:
        """Entries in ascending order, at most so many."""
        ...

    async def compacted_revision(self) -> int:
        """The newest revision whose entry is gone."""
        ...


class StoredHistory:
    """The log as a store has it, read apart from the event loop."""

    def __init__(self, store: Store, cluster: str) -> None:
        self._store = store
        self._cluster = cluster

    async def read(self, after_revision: int, limit: int) -> list[LogEntry]:
        return await asyncio.to_thread(self._store.read_log, self._cluster, after_revision, limit)

    async def compacted_revision(self) -> int:
        return await asyncio.to_thread(self._store.compacted_revision, self._cluster)


@dataclass(frozen=True, slots=True)
class StepBack:
    """From where the step before it leads, back to `revision`: keys of objects that came later, and earlier states."""

    revision: int
    came_later: set[ObjectKey] = field(default_factory=set)
    earlier: dict[ObjectKey, ClusterObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WayBack:
    """From the revision `start` back to others, the newest first; not_kept: why some are out of reach."""

    start: int
    steps: tuple[StepBack, ...] = ()
    not_kept: dict[int, str] = field(default_factory=dict)

    def beginning_at(self, newer: WayBack) -> WayBack:
        """The same way from a later start, to which `newer` is the way that ends where this one starts."""
        unreached = newer.not_kept.get(self.start)
        if unreached is None:
            return WayBack(newer.start, (*newer.steps, *self.steps), self.not_kept)
        lost = dict.fromkeys((step.revision for step in self.steps), unreached)
        return WayBack(newer.start, (), self.not_kept | lost)


async def way_back(history: History, start: int, revisions: Iterable[int]) -> WayBack:
    """How to get from a revision to earlier ones. Reads as much of the log as that takes, a block at a time."""
    compacted = await history.compacted_revision()
    asked = sorted(set(revisions), reverse=True)
    targets = [revision for revision in asked if revision >= compacted]
    walk = _Walk(targets)
    end = start
    while end > compacted and not walk.is_over(end):
        after = max(compacted, end - _BLOCK)
        for entry in reversed(await history.read(after, end - after)):
            if entry.revision <= end:
                walk.pass_by(entry)
        end = after
    too_old = {
        revision: f"revision {revision} is not kept any more: the oldest is {compacted}"
        for revision in asked[len(targets) :]
    }
    steps, unreached = walk.ended()
    return WayBack(start, steps, too_old | unreached)


class _Walk:
    """Goes by the entries of a log from the newest to the oldest. `targets` are revisions, the newest first.

    What an object was like at the end of a step is what the next older entry says of it, however far back that is.
    """

    def __init__(self, targets: list[int]) -> None:
        self._targets = targets
        self._steps = [StepBack(revision) for revision in targets]
        self._at = 0
        self._wanted: dict[ObjectKey, int] = {}

    def is_over(self, revision: int) -> bool:
        """Whether nothing at or before this revision is of interest."""
        return not self._wanted and (not self._targets or revision <= self._targets[-1])

    def pass_by(self, entry: LogEntry) -> None:
        while self._at < len(self._targets) and entry.revision <= self._targets[self._at]:
            self._at += 1
        for change in reversed(list(entry.changes)):
            self._find(change)
            if self._at < len(self._targets):
                self._undo(change)

    def _find(self, change: Change) -> None:
        """Take the state after the change, if it is the one that a step leads to."""
        key = change.object.key
        step = self._wanted.get(key, self._at)
        if step < self._at and change.type is not EventType.DELETED:
            del self._wanted[key]
            self._steps[step].earlier[key] = change.object

    def _undo(self, change: Change) -> None:
        """Note that the step has to take the change back."""
        key = change.object.key
        if change.type is EventType.ADDED:
            self._steps[self._at].came_later.add(key)
            self._wanted.pop(key, None)
        else:
            self._steps[self._at].came_later.discard(key)
            self._wanted[key] = self._at

    def ended(self) -> tuple[tuple[StepBack, ...], dict[int, str]]:
        """The steps up to the first for which a state was not found, and why the revisions from there on are not reached."""
        first = min(self._wanted.values(), default=len(self._targets))
        unreached: dict[int, str] = {}
        for index in range(first, len(self._targets)):
            missing = [key for key, step in self._wanted.items() if step <= index]
            text = f"the state of {min(missing)} at revision {self._targets[index]} is not kept any more"
            others = f", nor that of {len(missing) - 1} others" if len(missing) > 1 else ""
            unreached[self._targets[index]] = text + others
        return tuple(self._steps[:first]), unreached
