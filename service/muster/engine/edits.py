"""What became of each object in one revision, in the order in which that was first said.

Objects are noted one by one, pods and groups that came and pods that were bound together in runs, in columns, of which no
two have an object in common. A pod or group that is noted by itself dissolves the runs, since it may be in one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, repeat
from typing import NamedTuple

from muster.engine.log_entries import Change, EventType, LogEntry
from muster.engine.ports import ClusterWrites
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, keys_of

_GROUPS = frozenset({PodGroup, CompositePodGroup})


class Edit(NamedTuple):
    """First and last state of one object in a revision; None where it did not or does not exist.

    `last` is the state in which an object went, which its DELETED event carries.
    """

    old: ClusterObject | None
    new: ClusterObject | None
    last: ClusterObject | None = None


class _Run(NamedTuple):
    """Pods and groups that came, or pods that were bound if there is an `old` of each.

    at: so many objects had been noted one by one before.
    """

    at: int
    old: Sequence[Pod]
    new: Sequence[Pod | AnyGroup]

    @property
    def edits(self) -> Iterator[Edit]:
        return map(Edit, self.old or repeat(None), self.new)


class Edits:
    """True if there are any."""

    def __init__(self) -> None:
        self._singles: dict[ObjectKey, Edit] = {}
        self._runs: list[_Run] = []
        self._has_single_pods = False
        self._has_single_groups = False
        self._has_groups_in_runs = False

    def __bool__(self) -> bool:
        return bool(self._singles or self._runs)

    @property
    def singles(self) -> Mapping[ObjectKey, Edit]:
        """Of the objects that are in no run."""
        return self._singles

    @property
    def in_runs(self) -> Iterator[Edit]:
        """Of pods and groups that came, and of pods of which node, status and revision alone differ."""
        return chain.from_iterable(run.edits for run in self._runs)

    def note(self, key: ObjectKey, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """`old` is the state before this; the object goes if there is no `new` one."""
        kind = type(old if new is None else new)
        if kind is Pod:
            self._has_single_pods = True
            if self._runs:
                self._dissolve()
        elif kind in _GROUPS:
            self._has_single_groups = True
            if self._has_groups_in_runs:
                self._dissolve()
        edit = self._singles.get(key)
        first = old if edit is None else edit.old
        self._singles[key] = Edit(first, new, old if new is None else None)

    def came(self, new: Sequence[Pod | AnyGroup]) -> None:
        """Pods and groups that did not exist."""
        if not _GROUPS.isdisjoint(map(type, new)):
            if self._has_single_groups:
                self._came_apart(new)
                return
            self._has_groups_in_runs = True
        self._run((), new)

    def _came_apart(self, new: Sequence[Pod | AnyGroup]) -> None:
        """The groups one by one: one of them may be among those that are."""
        for kind, some in groupby(new, key=type):
            if kind is Pod:
                self._run((), list(some))
            else:
                for group in some:
                    self.note(group.key, None, group)

    def bound(self, old: Sequence[Pod], new: Sequence[Pod]) -> None:
        """Pods that got a node."""
        self._run(old, new)

    def _run(self, old: Sequence[Pod], new: Sequence[Pod | AnyGroup]) -> None:
        if self._has_single_pods:
            for key, (before, after, _) in zip(keys_of(new), _Run(0, old, new).edits, strict=True):
                self.note(key, before, after)
        elif new:
            self._runs.append(_Run(len(self._singles), old, new))

    def _dissolve(self) -> None:
        parts = list(self._parts())
        self._runs.clear()
        self._has_groups_in_runs = False
        self._has_single_pods = self._has_single_groups = True
        self._singles = {}
        for part in parts:
            if isinstance(part, _Run):
                self._singles.update(zip(keys_of(part.new), part.edits, strict=True))
            else:
                self._singles.update(part)

    def _parts(self) -> Iterator[_Run | dict[ObjectKey, Edit]]:
        """Runs, and what was noted before, between and behind them."""
        singles, done = iter(self._singles.items()), 0
        for run in self._runs:
            yield dict(islice(singles, run.at - done))
            yield run
            done = run.at
        yield dict(singles)

    def changes_anything(self) -> bool:
        """Whether an object is left that came, changed or went: one that came and went again does not count."""
        edits = self._singles.values()
        return bool(self._runs) or any(edit.new is not None or edit.old is not None for edit in edits)

    def write(self, writes: ClusterWrites, revision: int, time_us: int) -> LogEntry:
        """Add the last states to what goes to the store; returns the entry of the log."""
        types, objects, previous_labels = (
            list[EventType](),
            list[ClusterObject](),
            dict[int, dict[str, str]](),
        )
        for part in self._parts():
            if isinstance(part, _Run):
                writes.puts.update(zip(keys_of(part.new), part.new, strict=True))
                types += [EventType.MODIFIED if part.old else EventType.ADDED] * len(part.new)
                objects += part.new
                continue
            for change in _written(part.items(), writes):
                if change.previous_labels is not None:
                    previous_labels[len(types)] = change.previous_labels
                types.append(change.type)
                objects.append(change.object)
        return LogEntry(revision, time_us, types, objects, previous_labels or None)


def _written(edits: Iterable[tuple[ObjectKey, Edit]], writes: ClusterWrites) -> Iterator[Change]:
    for key, (old, new, last) in edits:
        if new is not None:
            writes.puts[key] = new
            yield Change(EventType.ADDED, new) if old is None else _modified(old, new)
        elif old is not None and last is not None:
            writes.puts.pop(key, None)
            writes.removed.setdefault(key, last)
            yield Change(EventType.DELETED, last)


def _modified(old: ClusterObject, new: ClusterObject) -> Change:
    labels = old.labels
    is_relabelled = labels is not new.labels and labels != new.labels
    return Change(EventType.MODIFIED, new, labels if is_relabelled else None)
