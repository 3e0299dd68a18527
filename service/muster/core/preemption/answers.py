"""What is known of a small case: packings that were found, and rooms for which none was.

An answer is one for other rooms too: a packing wherever there is as much, and that none was found where there is no more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import IntArray
from muster.core.preemption.adjusting import Adjustable
from muster.core.preemption.wanted_room import WantedRoom
from muster.core.search.domain_search import DomainPacking
from muster.core.search.packing import Verdict
from muster.core.search.problem import Problem

_MOST_FOUND = 64
_MOST_ADJUSTED = 2
"""So many of the packings found are tried to be made to fit, those that lack least."""


@dataclass(slots=True)
class Answers:
    """Of one problem. loads: [found, n, r] what each packing takes. short: [S, n, r] rooms for which nothing was found."""

    problem: Problem
    room: WantedRoom
    found: list[Adjustable] = field(default_factory=list)
    loads: IntArray = field(init=False)
    short: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.loads = self.short = np.zeros((0, *self.room.full.shape), dtype=np.int64)

    def is_short(self, left: IntArray) -> bool:
        """Whether nothing was found for as much room [n, r] or more."""
        return bool((self.short >= left).all(axis=(1, 2)).any())

    def fitting(self, left: IntArray) -> DomainPacking | None:
        """A packing that was found and fits as it is."""
        fits = np.flatnonzero((self.loads <= left).all(axis=(1, 2)))
        return self.found[int(fits[0])].packing if len(fits) else None

    def adjusted(self, left: IntArray) -> DomainPacking | None:
        """A packing that was found with some pods moved, if that makes it fit."""
        lacking = np.maximum(self.loads - left, 0).sum(axis=(1, 2))
        nearest: list[int] = np.argsort(lacking, kind="stable")[:_MOST_ADJUSTED].tolist()
        for place in nearest:
            packing = self.found[place].within(left)
            if packing is not None:
                return packing
        return None

    def keep(self, left: IntArray, packing: DomainPacking) -> None:
        """Remember what the answer for a room was."""
        if packing.packing.verdict is not Verdict.FOUND:
            self.short = np.concatenate((self.short, left[None]))
        elif len(self.found) < _MOST_FOUND:
            self.found.append(Adjustable(packing, self.problem, self.room))
            load = self.room.load(packing.packing.placed)
            self.loads = np.concatenate((self.loads, load[None]))
