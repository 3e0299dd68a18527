"""Units that wait for an event, put together by what they failed for, so that an event is weighed once for all alike.

A thousand units that no event helps cost a few array operations an event: hints are asked once per set of reasons,
and the least that a unit's pods ask for is compared with the most that a touched node offers for all units at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from muster.core.arrays import IntArray
from muster.core.needs import Needs
from muster.engine.changes import Change
from muster.engine.queueing_hints import NODE_EVENTS, EventKind, Help, help_of
from muster.model.meta import ObjectKey
from muster.model.resources import Amounts

_NEVER = np.iinfo(np.int64).max
_Units = dict[ObjectKey, None]


class _NeedRows:
    """Distinct needs with the units that have them; `fitting` finds those that an amount could serve."""

    def __init__(self) -> None:
        self.units: dict[Needs, _Units] = {}
        self._place: dict[Needs, int] = {}
        self._at: list[Needs | None] = []
        self._vacant: list[int] = []
        self._columns: dict[str, int] = {}
        self._least: IntArray = np.zeros((4, 16), dtype=np.int64)
        self._highest: int | None = None

    def add(self, unit: ObjectKey, needs: Needs) -> None:
        units = self.units.get(needs)
        if units is None:
            units = self.units[needs] = {}
            self._enter(needs)
        units[unit] = None

    def discard(self, unit: ObjectKey, needs: Needs) -> None:
        units = self.units[needs]
        del units[unit]
        if not units:
            del self.units[needs]
            self._highest = None
            place = self._place.pop(needs)
            self._at[place] = None
            self._least[:, place] = _NEVER
            self._vacant.append(place)

    def fitting(self, most: Amounts) -> list[Needs]:
        """Needs of which no amount is larger than the most that there is."""
        limit = np.zeros((len(self._least), 1), dtype=np.int64)
        for resource, column in self._columns.items():
            limit[column] = max(0, most.get(resource, 0))
        places = np.flatnonzero((self._least[:, : len(self._at)] <= limit).all(axis=0))
        found = (self._at[place] for place in places.tolist())
        return [needs for needs in found if needs is not None]

    @property
    def highest(self) -> int:
        """The highest priority among them; there must be one."""
        if self._highest is None:
            self._highest = max(needs.priority for needs in self.units)
        return self._highest

    def _enter(self, needs: Needs) -> None:
        self._highest = None
        if self._vacant:
            place = self._vacant.pop()
            self._at[place] = needs
        else:
            place = len(self._at)
            self._at.append(needs)
        self._place[needs] = place
        columns = [self._columns.setdefault(name, len(self._columns)) for name, _ in needs.least]
        height, width = self._least.shape
        if len(self._columns) > height or place >= width:
            grown = np.zeros((max(2 * len(self._columns), height), 2 * width), dtype=np.int64)
            grown[:height, :width] = self._least
            self._least = grown
        self._least[:, place] = 0
        self._least[columns, place] = [amount for _, amount in needs.least]


@dataclass(slots=True)
class _Alike:
    """Units that failed for the same reasons. unknown: those of which no needs are known."""

    unknown: _Units = field(default_factory=dict)
    resolvable: _NeedRows = field(default_factory=_NeedRows)
    unresolvable: _NeedRows = field(default_factory=_NeedRows)

    def rows(self, needs: Needs) -> _NeedRows:
        return self.resolvable if needs.resolvable else self.unresolvable

    @property
    def is_empty(self) -> bool:
        return not (self.unknown or self.resolvable.units or self.unresolvable.units)


class WaitingUnits:
    """`add` and `discard` keep it; `helped` asks."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], _Alike] = {}
        self._held: dict[ObjectKey, tuple[tuple[str, ...], Needs | None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, unit: ObjectKey, reasons: tuple[str, ...], needs: Needs | None = None) -> None:
        """The unit waits for these reasons, and for no other that it waited for before."""
        self.discard(unit)
        self._held[unit] = (reasons, needs)
        alike = self._alike.setdefault(reasons, _Alike())
        if needs is None:
            alike.unknown[unit] = None
        else:
            alike.rows(needs).add(unit, needs)

    def learn(self, unit: ObjectKey, needs: Needs | None) -> None:
        """What the pods of a unit need, if it waits."""
        held = self._held.get(unit)
        if held is not None:
            self.add(unit, held[0], needs)

    def needs(self, unit: ObjectKey) -> Needs | None:
        """What is known of the needs of a unit that waits."""
        held = self._held.get(unit)
        return held[1] if held is not None else None

    def discard(self, unit: ObjectKey) -> None:
        """The unit waits no more."""
        held = self._held.pop(unit, None)
        if held is None:
            return
        reasons, needs = held
        alike = self._alike[reasons]
        if needs is None:
            del alike.unknown[unit]
        else:
            alike.rows(needs).discard(unit, needs)
        if alike.is_empty:
            del self._alike[reasons]

    def helped(
        self, kinds: Iterable[EventKind], change: Change | None = None
    ) -> list[tuple[ObjectKey, EventKind]]:
        """Units that one of the events may help, each with the first such event. Without a change every node may be of use."""
        events = tuple(kinds)
        return [
            found
            for reasons, alike in self._alike.items()
            for found in _helped(reasons, alike, events, change)
        ]


def _helped(
    reasons: tuple[str, ...], alike: _Alike, events: tuple[EventKind, ...], change: Change | None
) -> Iterator[tuple[ObjectKey, EventKind]]:
    first, answer = _answer(events, reasons)
    if first is None:
        return
    yield from ((unit, first) for unit in alike.unknown)
    for needs in _in_reach(alike.resolvable, answer, change):
        yield from ((unit, first) for unit in alike.resolvable.units[needs])
    of_nodes = tuple(event for event in events if event in NODE_EVENTS)
    first, answer = _answer(of_nodes, reasons) if alike.unresolvable.units else (None, Help.NEVER)
    if first is not None:
        for needs in _in_reach(alike.unresolvable, answer, change):
            yield from ((unit, first) for unit in alike.unresolvable.units[needs])


@lru_cache(maxsize=4_096)
def _answer(events: tuple[EventKind, ...], reasons: tuple[str, ...]) -> tuple[EventKind | None, Help]:
    """The first of the events that may do something, and when one of them may."""
    first: EventKind | None = None
    answer = Help.NEVER
    for event in events:
        of_it = help_of(event, reasons)
        first = event if of_it and first is None else first
        answer |= of_it
    return first, answer


def _in_reach(rows: _NeedRows, answer: Help, change: Change | None) -> Iterable[Needs]:
    """Those whom the change is of use for, on the conditions of the answer."""
    if not rows.units or change is None or Help.ALWAYS in answer:
        return rows.units
    found: dict[Needs, None] = {}
    if Help.WHERE_ADMITTED in answer:
        most = change.most(rows.highest if next(iter(rows.units)).resolvable else None)
        fitting = rows.units if most is None else rows.fitting(most)
        found.update(dict.fromkeys(each for each in fitting if change.admits(each)))
    if Help.WHERE_SELECTED in answer:
        found.update(dict.fromkeys(each for each in rows.units if change.concerns(each)))
    return found
