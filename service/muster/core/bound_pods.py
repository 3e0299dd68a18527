"""Which pod runs where: an integer per pod, and per signature how many run on each slot.

Pods are known by ordinal alone; assumed ones are in the counts only, since no pod of its own is bound yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.pod_counts import CountsBySignature

_SLOT_BITS = 31
_FEW_PODS = 64
_SLOT_MASK = (1 << _SLOT_BITS) - 1

Group = tuple[int, Slots, IntArray]
"""A signature, distinct slots, and how many pods on each."""


class BoundPods:
    """`counts`: all pods that use room; `leaving`: those of them with a deletion mark.

    carrying: signatures with pod (anti-)affinity terms; carriers: those of them of which a pod runs;
    carriers_version: counts the changes of those.
    """

    def __init__(self) -> None:
        self.counts: CountsBySignature = {}
        self.leaving: CountsBySignature = {}
        self.carrying: set[int] = set()
        self.carriers: set[int] = set()
        self.carriers_version = 0
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        """How many pods are bound."""
        return len(self._places)

    def __contains__(self, pod: int) -> bool:
        return pod in self._places

    def knows_any(self, pods: tuple[int, ...]) -> bool:
        """Whether one of the pods is bound."""
        return not self._places.keys().isdisjoint(pods)

    def place(self, pod: int) -> tuple[int, int, bool]:
        """Signature, slot, and whether the pod is leaving. Raises KeyError if it is not bound."""
        return _unpacked(self._places[pod])

    def places(self, pods: IntArray) -> tuple[IntArray, Slots, BoolArray]:
        """Columns of signatures, slots, and whether the pods are leaving; slot -1 where a pod is not bound."""
        known = map(self._places.get, pods.tolist(), repeat(-1))
        packed = np.fromiter(known, dtype=np.int64, count=len(pods))
        slots = np.where(packed < 0, -1, (packed >> 1) & _SLOT_MASK).astype(np.intp)
        return packed >> (_SLOT_BITS + 1), slots, (packed & 1).astype(np.bool_)

    def leaving_on(self, slots: Iterable[int]) -> list[int]:
        """Ordinals of the pods that leave these slots, ascending; looks at every bound pod."""
        wanted = set(slots)
        return sorted(
            pod for pod, packed in self._places.items() if packed & 1 and (packed >> 1) & _SLOT_MASK in wanted
        )

    def bind(
        self, pods: tuple[int, ...], signatures: IntArray, slots: Slots, *, leaving: bool
    ) -> list[Group]:
        """Remember where the pods run and count them; they must not be bound. Grouped by signature."""
        packed = (((signatures << _SLOT_BITS) | slots) << 1) | leaving
        self._places.update(zip(pods, packed.tolist(), strict=True))
        groups = grouped(signatures, slots)
        for signature, at, numbers in groups:
            self.shift(signature, at.tolist(), numbers.tolist())
            if leaving:
                self._shift_leaving(signature, at.tolist(), numbers.tolist())
        return groups

    def remember(self, pods: tuple[int, ...], signatures: tuple[int, ...], slots: list[int]) -> None:
        """Where pods run that are not leaving, without counting them."""
        for pod, signature, slot in zip(pods, signatures, slots, strict=True):
            self._places[pod] = ((signature << _SLOT_BITS) | slot) << 1

    def unbind(self, pods: Iterable[int]) -> tuple[IntArray, Slots, IntArray]:
        """Forget the pods that are bound: columns of signatures, slots, and whether they were leaving."""
        known = [self._places.pop(pod) for pod in pods if pod in self._places]
        packed = np.array(known, dtype=np.int64)
        signatures = packed >> (_SLOT_BITS + 1)
        slots: Slots = ((packed >> 1) & _SLOT_MASK).astype(np.intp)
        return signatures, slots, packed & 1

    def uncount(self, group: Group, *, leaving: bool) -> None:
        """Count pods no more that `unbind` has forgotten."""
        signature, slots, numbers = group
        self.shift(signature, slots.tolist(), (-numbers).tolist())
        if leaving:
            self._shift_leaving(signature, slots.tolist(), (-numbers).tolist())

    def mark_leaving(self, pod: int) -> tuple[int, int] | None:
        """The pod got a deletion mark: its signature and slot, or None if that changes nothing."""
        packed = self._places.get(pod)
        if packed is None or packed & 1:
            return None
        self._places[pod] = packed | 1
        signature, slot, _ = _unpacked(packed)
        self._shift_leaving(signature, [slot], [1])
        return signature, slot

    def renumber(self, kept: Sequence[int]) -> None:
        """Signatures are known by their places among the kept ones from now on. Raises KeyError if a pod's is not kept."""
        new_of = {old: new for new, old in enumerate(kept)}
        self.counts = {new_of[old]: by_slot for old, by_slot in self.counts.items()}
        self.leaving = {new_of[old]: by_slot for old, by_slot in self.leaving.items()}
        self.carriers = {new_of[old] for old in self.carriers}
        self.carriers_version += 1
        self.carrying = {new_of[old] for old in self.carrying if old in new_of}
        packed = np.fromiter(self._places.values(), dtype=np.int64, count=len(self._places))
        signatures = np.searchsorted(np.array(kept, dtype=np.int64), packed >> (_SLOT_BITS + 1))
        moved = (signatures << (_SLOT_BITS + 1)) | (packed & ((1 << (_SLOT_BITS + 1)) - 1))
        self._places = dict(zip(self._places, moved.tolist(), strict=True))

    def shift(self, signature: int, slots: list[int], numbers: list[int]) -> None:
        """Count pods of a signature more (or less, by negative numbers) on distinct slots."""
        by_slot = self.counts.get(signature)
        if by_slot is None:
            by_slot = self.counts[signature] = {}
            if signature in self.carrying:
                self.carriers.add(signature)
                self.carriers_version += 1
        _shift(by_slot, slots, numbers)
        if not by_slot:
            self.forget(signature)

    def forget(self, signature: int) -> None:
        """Count no pod of the signature any more, as before the first of them."""
        self.counts.pop(signature, None)
        if signature in self.carriers:
            self.carriers.remove(signature)
            self.carriers_version += 1

    def staying(self) -> tuple[CountsBySignature, CountsBySignature]:
        """Counts to be added up for all pods that are not leaving."""
        gone = {
            signature: {slot: -number for slot, number in by_slot.items()}
            for signature, by_slot in self.leaving.items()
        }
        return self.counts, gone

    def exact_use(self, slot: int, amount_of: dict[int, int]) -> int:
        """What all pods of a slot take together, by signature's amount, in integers without bound."""
        return sum(
            by_slot[slot] * amount_of[signature]
            for signature, by_slot in self.counts.items()
            if slot in by_slot and signature in amount_of
        )

    def pods_by_slot(self) -> dict[int, list[int]]:
        """Ordinals of the bound pods of each slot, leaving ones included; made anew by each call."""
        by_slot: dict[int, list[int]] = {}
        for pod, packed in self._places.items():
            by_slot.setdefault((packed >> 1) & _SLOT_MASK, []).append(pod)
        return by_slot

    def depart(self, signature: int, slots: list[int], numbers: list[int]) -> None:
        """Count leaving pods no more, as if they were gone; negative numbers bring them back."""
        gone = [-number for number in numbers]
        self.shift(signature, slots, gone)
        self._shift_leaving(signature, slots, gone)

    def _shift_leaving(self, signature: int, slots: list[int], numbers: list[int]) -> None:
        by_slot = self.leaving.setdefault(signature, {})
        _shift(by_slot, slots, numbers)
        if not by_slot:
            del self.leaving[signature]


def grouped(signatures: IntArray, slots: Slots) -> list[Group]:
    """Pods in columns as groups: per signature its distinct slots and the number of pods on each."""
    if len(slots) <= _FEW_PODS:
        return _few_grouped(signatures.tolist(), slots.tolist())
    pairs, numbers = np.unique((signatures << _SLOT_BITS) | slots, return_counts=True)
    of_pair = pairs >> _SLOT_BITS
    at = (pairs & _SLOT_MASK).astype(np.intp)
    firsts = np.flatnonzero(np.diff(of_pair, prepend=-1))
    ends = np.append(firsts[1:], len(pairs))[: len(firsts)].tolist()
    return [
        (int(of_pair[first]), at[first:end], numbers[first:end])
        for first, end in zip(firsts.tolist(), ends, strict=True)
    ]


def _few_grouped(signatures: list[int], slots: list[int]) -> list[Group]:
    """The same in plain integers, which is quicker for a handful."""
    groups: dict[int, dict[int, int]] = {}
    for signature, slot in sorted(zip(signatures, slots, strict=True)):
        by_slot = groups.setdefault(signature, {})
        by_slot[slot] = by_slot.get(slot, 0) + 1
    return [
        (signature, np.array(list(by_slot), dtype=np.intp), np.array(list(by_slot.values()), dtype=np.int64))
        for signature, by_slot in groups.items()
    ]


def _shift(by_slot: dict[int, int], slots: list[int], numbers: list[int]) -> None:
    if not by_slot:
        by_slot.update(zip(slots, numbers, strict=True))
        return
    for slot, number in zip(slots, numbers, strict=True):
        left = by_slot.get(slot, 0) + number
        if left:
            by_slot[slot] = left
        else:
            del by_slot[slot]


def _unpacked(packed: int) -> tuple[int, int, bool]:
    return packed >> (_SLOT_BITS + 1), (packed >> 1) & _SLOT_MASK, bool(packed & 1)
