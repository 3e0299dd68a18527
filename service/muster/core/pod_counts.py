"""How many pods of a selection run on each node: what affinity, spread and host ports read.

A count is made when a plugin first asks for it and kept up to date by every binding, assumption and revert since.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots, widened
from muster.core.signature import Signature

CountsBySignature = dict[int, dict[int, int]]
"""Signature index, then slot: how many pods."""

_MOST_SELECTIONS = 128


class PodSelection(Hashable, Protocol):
    """A pure rule about signatures; equal rules share one count."""

    @property
    def skips_leaving(self) -> bool:
        """Whether pods with a deletion mark do not count."""
        ...

    def selects(self, signature: Signature) -> bool: ...


class PodCount:
    """One selection's pods per slot, and its verdict on each signature seen so far."""

    def __init__(self, selection: PodSelection, size: int) -> None:
        self.selection = selection
        self.per_slot: IntArray = np.zeros(size, dtype=np.int64)
        self._verdicts: dict[int, bool] = {}

    def selects(self, signature: Signature) -> bool:
        verdict = self._verdicts.get(signature.index)
        if verdict is None:
            verdict = self._verdicts[signature.index] = self.selection.selects(signature)
        return verdict


class PodCounts:
    """The counts asked for so far; the one unused for longest goes when there are too many."""

    def __init__(self) -> None:
        self._counts: dict[PodSelection, PodCount] = {}

    def get(self, selection: PodSelection) -> PodCount | None:
        count = self._counts.pop(selection, None)
        if count is not None:
            self._counts[selection] = count
        return count

    def create(
        self,
        selection: PodSelection,
        size: int,
        signatures: list[Signature],
        counts: Iterable[CountsBySignature],
    ) -> PodCount:
        """Count anew from pods by signature and slot."""
        count = PodCount(selection, size)
        for by_signature in counts:
            for index, by_slot in by_signature.items():
                if by_slot and count.selects(signatures[index]):
                    slots = np.fromiter(by_slot.keys(), dtype=np.intp, count=len(by_slot))
                    numbers = np.fromiter(by_slot.values(), dtype=np.int64, count=len(by_slot))
                    count.per_slot[slots] += numbers
        if len(self._counts) >= _MOST_SELECTIONS:
            del self._counts[next(iter(self._counts))]
        self._counts[selection] = count
        return count

    def shift(
        self, signature: Signature, slots: Slots | int, numbers: IntArray | int, *, leaving: bool
    ) -> None:
        """Pods of a signature came (positive numbers) or went; slots are distinct."""
        for count in self._counts.values():
            if not (leaving and count.selection.skips_leaving) and count.selects(signature):
                count.per_slot[slots] += numbers

    def shift_few(self, signature: Signature, slots: list[int], numbers: list[int]) -> None:
        """As `shift`, of pods that are not leaving."""
        if self._counts:
            self.shift(signature, np.array(slots, dtype=np.intp), np.array(numbers), leaving=False)

    def mark_leaving(self, signature: Signature, slot: int) -> None:
        """One pod got a deletion mark: selections that skip such pods count one less."""
        for count in self._counts.values():
            if count.selection.skips_leaving and count.selects(signature):
                count.per_slot[slot] -= 1

    def widen(self, size: int) -> None:
        for count in self._counts.values():
            if len(count.per_slot) < size:
                count.per_slot = widened(count.per_slot, size, 0)


def occupied(count: PodCount) -> BoolArray:
    """Per slot, whether a pod of the selection runs there."""
    return count.per_slot > 0
