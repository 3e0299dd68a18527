"""The room left in the cells of a region while parts are given to them, and what the bounds make of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.search import steps
from muster.core.search.domain_form import cells_open_to
from muster.core.search.domain_measures import counting_bound_fails
from muster.core.search.domain_parts import Part
from muster.core.search.domain_regions import Cells


class CellRoom:
    """C cells and K kinds of parts. `take` and `give_back` change it.

    steps: what one part given to a cell costs, besides what is asked of the cell.
    """

    def __init__(self, cells: Cells, parts: Sequence[Part], key: str) -> None:
        known = {part.kind: part for part in parts}
        self.kinds = list(known)
        self.cells = cells
        self._row = {kind: row for row, kind in enumerate(known)}
        self._least: IntArray = np.stack([part.least for part in known.values()])
        self._open: BoolArray = np.stack([cells_open_to(part, cells, key) for part in known.values()])
        self._left: IntArray = cells.room.copy()
        self.steps = steps.assigning(len(known), cells.room.shape[1], len(cells.room))
        self._scale = 1.0 / np.maximum(cells.room.sum(axis=0), 1)

    def clear(self) -> None:
        """All room is free again."""
        self._left[:] = self.cells.room

    def take(self, part: Part, cell: int) -> None:
        self._left[cell] -= part.least

    def give_back(self, part: Part, cell: int) -> None:
        self._left[cell] += part.least

    def price(self, part: Part) -> float:
        """What the part takes at least, as shares of all room."""
        return float((part.least * self._scale).sum())

    def choices(self, part: Part) -> int:
        """How many cells the part could have alone."""
        return int(np.count_nonzero(self._open[self._row[part.kind]]))

    def tightest_first(self, part: Part) -> list[int]:
        """Cells with room for the part."""
        open_ = self._open[self._row[part.kind]] & (self._left >= part.least).all(axis=1)
        cells = np.flatnonzero(open_)
        slack = ((self._left[cells] - part.least) * self._scale).sum(axis=1)
        tightest: list[int] = cells[np.argsort(slack, kind="stable")].tolist()
        return tightest

    def numbers(self, parts: Sequence[Part]) -> IntArray:
        """[K] how many parts there are of each kind."""
        rows = [self._row[part.kind] for part in parts]
        return np.bincount(np.array(rows, dtype=np.intp), minlength=len(self.kinds))

    def without_cell(self, numbers: IntArray) -> list[int]:
        """The kinds of so many parts that have no cell left."""
        wanted = np.flatnonzero(numbers)
        return [self.kinds[row] for row in wanted[~self._still_open(wanted).any(axis=1)].tolist()]

    def counted_out(self, numbers: IntArray) -> bool:
        """Whether so many parts certainly do not all find a cell; False where counting costs too much."""
        wanted = np.flatnonzero(numbers)
        least = self._least[wanted]
        if least.size * len(self._left) > steps.MOST_COMPARED and not self._is_clear():
            return False
        return counting_bound_fails(least, numbers[wanted], self._still_open(wanted), self._left)

    def _still_open(self, rows: IntArray) -> BoolArray:
        enough: BoolArray = np.all(self._left >= self._least[rows][:, None], axis=2)
        return self._open[rows] & enough

    def _is_clear(self) -> bool:
        return np.array_equal(self._left, self.cells.room)
