"""Score: nodes whose resources would be used evenly (Kubernetes' NodeResourcesBalancedAllocation).

100 minus the standard deviation of the used fractions, in percent. Fractions are whole ten-thousandths, and
squares stay far below 2^52, so the root rounds the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import IntArray
from muster.core.framework import MAX_SCORE, Offer

_WHOLE = 10_000


@dataclass(frozen=True)
class BalancedAllocation:
    resources: tuple[str, ...]

    def score(self, offer: Offer) -> IntArray:
        total: IntArray | int = 0
        squares: IntArray | int = 0
        offered: IntArray | int = 0
        for resource in self.resources:
            allocatable = offer.allocatable(resource)
            has = (allocatable > 0).astype(np.int64)
            used = _used(offer.left(resource), np.maximum(allocatable, 1)) * has
            total, squares, offered = total + used, squares + used * used, offered + has
        number = np.maximum(offered, 1)
        deviation = np.sqrt(number * squares - np.asarray(total) ** 2).astype(np.int64) // number
        score: IntArray = MAX_SCORE - deviation * MAX_SCORE // _WHOLE
        return score


def _used(left: IntArray, allocatable: IntArray) -> IntArray:
    """Used ten-thousandths, at most all; coarser amounts where the product would overflow."""
    shift = max(0, int(allocatable.max(initial=1)).bit_length() - 49)
    if shift:
        left, allocatable = left >> shift, np.maximum(allocatable >> shift, 1)
    used: IntArray = np.clip((allocatable - left) * _WHOLE // allocatable, 0, _WHOLE)
    return used
