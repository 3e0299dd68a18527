"""All pods that preemption could take, as units in columns (without budgets), which follow what changes shelf by shelf.

A shelf holds pods that are victims in the same way: those of a PodGroup, or some that have none. A shelf that changed is
dropped and entered anew, so that looking up the victims of a unit in a full cluster costs a few copies of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.preemption_units import DisruptionUnits, KeyColumns
from muster.engine.cluster_state import Name
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod

Shelf: TypeAlias = dict[int, int]
"""Pods by ordinal, each with when it began to run."""


class LoosePods(NamedTuple):
    """Pods without a group: their priority, and which part of all ordinals theirs are in."""

    priority: int
    part: int


ShelfKey: TypeAlias = Name | LoosePods
"""What the pods of a shelf share: the name of their PodGroup, or what pods without one have."""

_NAME_OF, _NAMESPACE_OF = attrgetter("name"), attrgetter("namespace")


@dataclass(frozen=True, slots=True, eq=False)
class _Pods:
    """U pods. numbers: [4, U] the priority as a victim, the start, the ordinal, the number of the shelf."""

    namespaces: list[str]
    names: list[str]
    numbers: IntArray

    @property
    def priorities(self) -> IntArray:
        priorities: IntArray = self.numbers[0]
        return priorities

    @property
    def shelves(self) -> IntArray:
        shelves: IntArray = self.numbers[3]
        return shelves

    def some(self, wanted: BoolArray) -> _Pods:
        """Those that are wanted [U]."""
        places = np.flatnonzero(wanted)
        if len(places) == len(wanted):
            return self
        chosen = wanted.tobytes()
        return _Pods(
            list(compress(self.namespaces, chosen)),
            list(compress(self.names, chosen)),
            self.numbers.take(places, axis=1),
        )

    def with_(self, others: _Pods) -> _Pods:
        """These, then the others."""
        return _Pods(
            self.namespaces + others.namespaces,
            self.names + others.names,
            np.concatenate((self.numbers, others.numbers), axis=1),
        )


class SingleUnits:
    """Pods that are taken one by one."""

    def __init__(self, running: Mapping[int, Pod]) -> None:
        self._running = running
        self._pods = _Pods([], [], np.zeros((4, 0), dtype=np.int64))
        self._numbers: dict[ShelfKey, int] = {}
        self._entered = 0
        self._dropped: list[int] = []

    def __contains__(self, key: ShelfKey) -> bool:
        return key in self._numbers

    def drop(self, key: ShelfKey) -> None:
        """Its pods are others from now on, or nowhere; with the next `enter` they are gone."""
        number = self._numbers.pop(key, None)
        if number is not None:
            self._dropped.append(number)

    def enter(self, shelves: Sequence[tuple[ShelfKey, Shelf, int | None]]) -> None:
        """Take in shelves that were dropped or are new, with the priority of their pods; None: each has its own."""
        if self._dropped:
            self._pods = self._pods.some(np.isin(self._pods.shelves, self._dropped, invert=True))
            self._dropped.clear()
        if shelves:
            self._pods = self._pods.with_(self._pods_on(shelves))

    def below(self, priority: int) -> DisruptionUnits:
        """Those of lower priority."""
        lower = self._pods.priorities < priority
        if not lower.any():
            return DisruptionUnits()
        pods = self._pods.some(lower)
        priorities, starts, ordinals, _ = pods.numbers
        keys = KeyColumns([POD] * len(pods.names), pods.namespaces, pods.names)
        return DisruptionUnits(keys, priorities, starts, np.ones_like(ordinals), ordinals)

    def _pods_on(self, shelves: Sequence[tuple[ShelfKey, Shelf, int | None]]) -> _Pods:
        ordinals = list(chain.from_iterable(shelf for _, shelf, _ in shelves))
        starts = chain.from_iterable(shelf.values() for _, shelf, _ in shelves)
        sizes = [len(shelf) for _, shelf, _ in shelves]
        pods = list(map(self._running.__getitem__, ordinals))
        priorities = np.repeat([level or 0 for _, _, level in shelves], sizes).astype(np.int64)
        have_own = np.repeat([level is None for _, _, level in shelves], sizes)
        for place in np.flatnonzero(have_own).tolist():
            priorities[place] = pods[place].spec.priority or 0
        numbers = np.arange(self._entered, self._entered + len(shelves))
        self._entered += len(shelves)
        self._numbers.update(zip((key for key, _, _ in shelves), numbers.tolist(), strict=True))
        columns = (priorities, list(starts), ordinals, np.repeat(numbers, sizes))
        return _Pods(
            list(map(_NAMESPACE_OF, pods)), list(map(_NAME_OF, pods)), np.array(columns, dtype=np.int64)
        )


class _Whole(NamedTuple):
    """A group that is taken whole, when the first of its pods began to run, and their ordinals, ascending."""

    unit: ObjectKey
    priority: int
    start: int
    ordinals: list[int]


class WholeUnits:
    """Pods that are taken together with a group: the shelves of all leaves below it, each with its priority."""

    def __init__(self) -> None:
        self._shelves: dict[ObjectKey, dict[ShelfKey, tuple[Shelf, int]]] = {}
        self._unit_of: dict[ShelfKey, ObjectKey] = {}
        self._made: dict[ObjectKey, _Whole] = {}
        self._stale: dict[ObjectKey, None] = {}

    def __contains__(self, key: ShelfKey) -> bool:
        return key in self._unit_of

    def drop(self, key: ShelfKey) -> None:
        """Its pods are others from now on, or nowhere."""
        unit = self._unit_of.pop(key, None)
        if unit is not None:
            del self._shelves[unit][key]
            self._stale[unit] = None

    def enter(self, key: ShelfKey, shelf: Shelf, unit: ObjectKey, priority: int) -> None:
        """Take in a shelf that was dropped or is new, with the group that it is taken with."""
        self._shelves.setdefault(unit, {})[key] = shelf, priority
        self._unit_of[key] = unit
        self._stale[unit] = None

    def below(self, priority: int) -> DisruptionUnits:
        """Those of lower priority."""
        for unit in self._stale:
            self._make(unit)
        self._stale.clear()
        found = [whole for whole in self._made.values() if whole.priority < priority]
        if not found:
            return DisruptionUnits()
        units, priorities, starts, ordinals = zip(*found, strict=True)
        return DisruptionUnits(
            KeyColumns(*map(list, zip(*units, strict=True))),
            np.array(priorities, dtype=np.int64),
            np.array(starts, dtype=np.int64),
            np.array(list(map(len, ordinals)), dtype=np.int64),
            np.fromiter(chain.from_iterable(ordinals), dtype=np.int64),
        )

    def _make(self, unit: ObjectKey) -> None:
        """The unit as its shelves are now. Leaves agree about its priority, but in trees that are broken."""
        entered = self._shelves[unit]
        if not entered:
            del self._shelves[unit]
            self._made.pop(unit, None)
            return
        shelves = [shelf for shelf, _ in entered.values()]
        priority = max(level for _, level in entered.values())
        start = min(min(shelf.values()) for shelf in shelves)
        self._made[unit] = _Whole(unit, priority, start, sorted(chain.from_iterable(shelves)))


def joined(some: DisruptionUnits, others: DisruptionUnits) -> DisruptionUnits:
    """The units of both, one after the other."""
    if not len(some.sizes) or not len(others.sizes):
        return some if len(some.sizes) else others
    return DisruptionUnits(
        KeyColumns(
            [*some.keys.kinds, *others.keys.kinds],
            [*some.keys.namespaces, *others.keys.namespaces],
            [*some.keys.names, *others.keys.names],
        ),
        np.concatenate((some.priorities, others.priorities)),
        np.concatenate((some.starts, others.starts)),
        np.concatenate((some.sizes, others.sizes)),
        np.concatenate((some.ordinals, others.ordinals)),
    )
