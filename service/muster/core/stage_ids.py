"""Numbers for the states that domains are in, so that it shows at once in which of them nothing has changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.core.arrays import BoolArray, IntArray


class StateIds:
    """A number per domain and level; equal numbers of one domain at two times mean equal states.

    elements: per level, for each of the smallest things that change, the place of its domain, -1 for none.
    """

    def __init__(self, sizes: Sequence[int], elements: Sequence[IntArray]) -> None:
        self._elements = elements
        self._ids: list[IntArray] = [np.zeros(size, dtype=np.int64) for size in sizes]
        self._last = 0

    def of(self, level: int) -> IntArray:
        return self._ids[level]

    def touch(self, changed: BoolArray | IntArray) -> None:
        """These elements, given as a mask or as places, are in a state not seen before."""
        self._last += 1
        for ids, elements in zip(self._ids, self._elements, strict=True):
            domains = elements[changed]
            ids[domains[domains >= 0]] = self._last

    def save(self) -> list[IntArray]:
        return [ids.copy() for ids in self._ids]

    def restore(self, saved: list[IntArray]) -> None:
        for ids, earlier in zip(self._ids, saved, strict=True):
            ids[:] = earlier

    def take_back(self, saved: list[IntArray], lanes: BoolArray, level: int) -> None:
        """Domains of a level are as they were; what holds them is in a state of its own, since others there moved on."""
        concerned = (self._elements[level] >= 0) & lanes[self._elements[level]]
        self.touch(concerned)
        self._ids[level][lanes] = saved[level][lanes]
        for below in range(level + 1, len(self._ids)):
            domains = self._elements[below][concerned]
            domains = domains[domains >= 0]
            self._ids[below][domains] = saved[below][domains]
