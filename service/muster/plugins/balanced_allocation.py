"""Score: nodes whose resources would be used evenly (Kubernetes' NodeResourcesBalancedAllocation).

100 minus the standard deviation of the used fractions, in percent. Fractions are whole ten-thousandths, and
squares stay far below 2^52, so the root rounds the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from muster.core.arrays import Amount
from muster.core.framework import MAX_SCORE, Offer

_WHOLE = 10_000


@dataclass(frozen=True)
class BalancedAllocation:
    resources: tuple[str, ...]

    def score(self, offer: Offer[Amount]) -> Amount:
        nothing: Amount = offer.allocatable(self.resources[0]) * 0
        number = total = squares = nothing
        for resource in self.resources:
            allocatable = offer.allocatable(resource)
            used = _used(offer.left(resource), allocatable)
            number = number + (allocatable > 0)
            total = total + used
            squares = squares + used * used
        deviation = _root(number * squares - total * total) // (number + (number == 0))
        score: Amount = MAX_SCORE - deviation * MAX_SCORE // _WHOLE
        return score


def _used(left: Amount, allocatable: Amount) -> Amount:
    """Used ten-thousandths, at most all; none where the node lacks the resource."""
    taken = allocatable - left * (left > 0)
    used: Amount = taken * (taken > 0) * _WHOLE // (allocatable + (allocatable == 0))
    return used


def _root(square: Amount) -> Amount:
    """The square root, rounded down; exact for arrays too, since squares are far below 2^52."""
    value: Any = square
    value = isqrt(value) if isinstance(value, int) else np.sqrt(value).astype(np.int64)
    root: Amount = value
    return root
