"""What one revision changed: the unit of the log, in columns, since a revision may change ten thousand objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import repeat
from typing import NamedTuple

from muster.model.objects import ClusterObject


class EventType(IntEnum):
    """What a revision did to an object."""

    ADDED = 1
    MODIFIED = 2
    DELETED = 3


class Change(NamedTuple):
    """One object in one revision. `object` is the state after it, for DELETED the last state.

    `previous_labels` is set where the write changed the labels, so that a watch with a selector knows who left.
    """

    type: EventType
    object: ClusterObject
    previous_labels: dict[str, str] | None = None


_change = partial(tuple.__new__, Change)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """All that one revision changed: what watches read and replays resume from.

    types, objects: lists, not to be changed: what became of each object. previous_labels: by place, those of a Change
    that has them; None if none has.
    """

    revision: int
    time_us: int
    types: Sequence[EventType]
    objects: Sequence[ClusterObject]
    previous_labels: Mapping[int, dict[str, str]] | None = None

    @classmethod
    def of(cls, revision: int, time_us: int, changes: Sequence[Change]) -> LogEntry:
        """The entry of these changes."""
        types, objects, labels = map(list, zip(*changes, strict=True)) if changes else ([], [], [])
        previous = {place: each for place, each in enumerate(labels) if each is not None}
        return cls(revision, time_us, types, objects, previous or None)

    @property
    def changes(self) -> Iterator[Change]:
        """One by one, in order; made anew each time."""
        previous = self.previous_labels
        labels = map(previous.get, range(len(self.types))) if previous else repeat(None)
        return map(_change, zip(self.types, self.objects, labels, strict=False))
