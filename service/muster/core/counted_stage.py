"""A stage for pods of one shape that end in domains of the last level: there they are a number per domain.

How many pods such a domain still holds, and how full it then is, follow from how many it got, whichever nodes took
them; so no node is looked at once rooms are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.capacity import Amounts
from muster.core.cuts import Level
from muster.core.signature import Signature
from muster.core.stage_ids import StateIds

_BOUNDLESS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class LevelAmounts:
    """What the D domains of a level hold and use before anything is placed.

    room, room_if_empty: [D] pods by free and by allocatable amounts. used, allocatable: [D] per resource row.
    cells: for each domain of the last level the place of its domain here.
    """

    level: Level
    room: IntArray
    room_if_empty: IntArray
    used: dict[int, IntArray]
    allocatable: dict[int, IntArray]
    cells: IntArray


class _Saved(NamedTuple):
    taken: IntArray
    ids: list[IntArray]


@dataclass(slots=True)
class CountedStage:
    """requests: what one pod takes of each resource row. Takes pods on the last level alone."""

    levels: tuple[LevelAmounts, ...]
    requests: dict[int, int]
    _taken: IntArray = field(init=False)
    _ids: StateIds = field(init=False)
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = tuple(len(amounts.level) for amounts in self.levels)
        self._taken = np.zeros(len(self.levels[-1].level), dtype=np.int64)
        self._ids = StateIds(self.sizes, [amounts.cells for amounts in self.levels])

    def parents(self, level: int) -> IntArray:
        return self.levels[level].level.parents

    def ids(self, level: int) -> IntArray:
        return self._ids.of(level)

    def room(self, _: Signature, level: int) -> IntArray:
        return self.levels[level].room - self.placed(level)

    def room_if_empty(self, _: Signature, level: int) -> IntArray:
        return self.levels[level].room_if_empty

    def offered(self, _row: int, _: tuple[Signature, ...], level: int, _by: Amounts) -> IntArray:
        """Of pods of one shape their number says all."""
        return np.full(self.sizes[level], _BOUNDLESS)

    def take(self, signature: Signature, wanted: IntArray, level: int) -> IntArray:
        placed = np.minimum(wanted, self.room(signature, level))
        self._taken += placed
        self._ids.touch(placed > 0)
        return placed

    def placed(self, level: int) -> IntArray:
        if level == len(self.levels) - 1:
            return self._taken.copy()
        sums = np.bincount(self.levels[level].cells, weights=self._taken, minlength=self.sizes[level])
        return sums.astype(np.int64)

    def used(self, row: int, level: int) -> IntArray:
        used = self.levels[level].used[row]
        request = self.requests.get(row, 0)
        return used + self.placed(level) * request if request else used

    def allocatable(self, row: int, level: int) -> IntArray:
        return self.levels[level].allocatable[row]

    def save(self) -> _Saved:
        return _Saved(self._taken.copy(), self._ids.save())

    def restore(self, saved: _Saved) -> None:
        self._taken[:] = saved.taken
        self._ids.restore(saved.ids)

    def take_back(self, saved: _Saved, lanes: BoolArray, level: int) -> None:
        concerned = lanes[self.levels[level].cells]
        self._taken[concerned] = saved.taken[concerned]
        self._ids.take_back(saved.ids, lanes, level)
