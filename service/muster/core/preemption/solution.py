"""What a search for victims arrives at: a placement and the units that must go for it."""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.arrays import BoolArray
from muster.core.decision import Fate
from muster.core.preemption.placement import Placement


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A placement, the units [U] that must go for it, and the fates of those that were put back."""

    evicted: BoolArray
    placement: Placement
    fates: dict[int, Fate]
