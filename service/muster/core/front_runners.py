"""The nodes with the highest keys of a row, in a heap that outlives the unit it was made for.

A pass over the keys of all nodes finds some hundreds of them, and the lowest of those is the floor: no node outside the
heap ranks above it until its key changes, of which the heap is told. So small groups in a row take their nodes from the
front without looking at all others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from muster.core.arrays import IntArray, Slots

_MOST = 256
_FEW_NODES = 256
"""Up to so many are sorted sooner than parted."""
_SURPLUS = 8
"""A heap grown by as many times its size holds little but entries that have been overtaken."""


@dataclass(slots=True)
class FrontRunners:
    """keys: the row's, which whoever changes them tells of; the highest first, negative ones never.

    heap: negated keys with their slots; an entry counts only while it is the slot's key.
    """

    keys: IntArray
    floor: int
    heap: list[tuple[int, int]]

    def put(self, slot: int, key: int) -> None:
        """The slot has this key now."""
        if key >= self.floor:
            heappush(self.heap, (-key, slot))

    def put_all(self, slots: Slots, keys: IntArray) -> None:
        """The slots have these keys now."""
        for place in np.flatnonzero(keys >= self.floor).tolist():
            heappush(self.heap, (-int(keys[place]), int(slots[place])))

    def take(self, count: int, key_after: Callable[[int, int], int]) -> tuple[list[int], dict[int, int]]:
        """Slots for so many pods one after the other, fewer if no key is 0 or above; and how many of them each slot got.

        key_after: of a slot and the number of pods that it got, the key that it has then. Keys are changed.
        """
        order: list[int] = []
        taken: dict[int, int] = {}
        keys, heap = self.keys, self.heap
        while len(order) < count and (heap or self._look_again()):
            entry, slot = heap[0]
            if keys.item(slot) != -entry:
                heappop(heap)
                continue
            order.append(slot)
            number = taken[slot] = taken.get(slot, 0) + 1
            key = keys[slot] = key_after(slot, number)
            if key >= self.floor:
                heapreplace(heap, (-key, slot))
            else:
                heappop(heap)
        return order, taken

    @property
    def is_overgrown(self) -> bool:
        return len(self.heap) > _SURPLUS * _MOST

    def _look_again(self) -> bool:
        """Whether there are others than those that were in the heap, which is empty; they are in it now."""
        if self.floor:
            fresh = front_runners(self.keys)
            self.floor = fresh.floor
            self.heap.extend(fresh.heap)
        return bool(self.heap)


def front_runners(keys: IntArray) -> FrontRunners:
    """Of a row of keys, which are distinct unless negative."""
    slots = largest(keys, _MOST)
    floor = int(keys[slots].min()) if len(slots) == _MOST else 0
    return FrontRunners(keys, floor, _heap(keys, slots))


def leading(keys: IntArray, within: Slots, count: int) -> FrontRunners:
    """Enough of some slots for `count` pods: each takes one of them from the front, so no other comes in reach."""
    inside = keys[within]
    if len(inside) > _FEW_NODES:
        return FrontRunners(keys, 0, _heap(keys, within[largest(inside, count)]))
    places = inside.argsort()[-count:]
    heap = [
        (-key, slot)
        for key, slot in zip(inside[places].tolist(), within[places].tolist(), strict=True)
        if key >= 0
    ]
    heap.reverse()
    return FrontRunners(keys, 0, heap)


def _heap(keys: IntArray, slots: Slots) -> list[tuple[int, int]]:
    heap = list(zip((-keys[slots]).tolist(), slots.tolist(), strict=True))
    heapify(heap)
    return heap


def largest(keys: IntArray, count: int) -> Slots:
    """Places of the up to `count` largest keys that are not negative, in any order."""
    if count == 1 and len(keys):
        best: Slots = np.array([int(keys.argmax())], dtype=np.intp)
        return best[keys[best] >= 0]
    admitted = keys >= 0
    if count >= len(keys) or 4 * np.count_nonzero(admitted) < len(keys):
        # Equal keys, as those of refused nodes are, make partitions slow.
        places = np.flatnonzero(admitted)
        return places if count >= len(places) else places[np.argpartition(keys[places], -count)[-count:]]
    places = np.argpartition(keys, -count)[-count:]
    return places[admitted[places]]
