"""What a snapshot writes down to take back: pods that were assumed, pods and amounts that were taken as gone (KEP-4671).

How each is done and undone is for `core.snapshot` to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from muster.core.arrays import IntArray, Slots

Assumed = tuple[int, Slots | list[int] | int, IntArray | list[int] | int]
"""A signature, slots, and how many of its pods on each."""


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """Pods of a signature on several slots, and what was free there before: [R, slots].

    is_first: no other pod of the signature was bound or assumed.
    """

    signature: int
    slots: Slots
    counts: IntArray
    before: IntArray
    is_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Departed:
    """Leaving pods of a signature that are taken as gone."""

    signature: int
    slots: Slots
    counts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Lent:
    """Amounts [R, slots] that are taken as free."""

    amounts: IntArray


Entry = Assumed | Several | Departed | Lent


def assumed_pods(journal: Iterable[Entry]) -> dict[tuple[int, int], int]:
    """How many pods are assumed, by signature and slot; 0 where they were taken away again.

    Raises TypeError if pods or amounts are taken as gone, which nobody can confirm.
    """
    assumed: dict[tuple[int, int], int] = {}
    for entry in journal:
        match entry:
            case (signature, list(slots), list(counts)):
                pass
            case (signature, int(slot), int(count)):
                slots, counts = [slot], [count]
            case (signature, slots, counts) | Several(signature=signature, slots=slots, counts=counts):
                slots, counts = np.asarray(slots).tolist(), np.asarray(counts).tolist()
            case _:
                raise TypeError("pods that are only taken as gone cannot be confirmed")
        for slot, count in zip(slots, counts, strict=True):
            assumed[signature, slot] = assumed.get((signature, slot), 0) + count
    return assumed
