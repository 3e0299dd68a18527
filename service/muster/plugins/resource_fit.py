"""Score: how full the pod would leave a node, by one of three strategies (Kubernetes' NodeResourcesFit).

Each is a weighted mean over the resources that the node has at all. Whether the pod fits is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from muster.core.arrays import Amount, IntArray
from muster.core.framework import MAX_SCORE, Offer

Resources = tuple[tuple[str, int], ...]
"""Names and weights."""
Shape = tuple[tuple[int, int], ...]
"""Points (utilization 0 to 100, score 0 to 100) by rising utilization."""


@dataclass(frozen=True)
class LeastAllocated:
    """Prefers nodes with the most left: spreads pods."""

    resources: Resources

    def score(self, offer: Offer[Amount]) -> Amount:
        return _mean(self.resources, offer, _share_left)


@dataclass(frozen=True)
class MostAllocated:
    """Prefers nodes with the least left: packs pods."""

    resources: Resources

    def score(self, offer: Offer[Amount]) -> Amount:
        return _mean(self.resources, offer, _share_used)


@dataclass(frozen=True)
class RequestedToCapacityRatio:
    """Scores utilization by a curve of straight lines, flat beyond its ends."""

    resources: Resources
    shape: Shape

    def score(self, offer: Offer[Amount]) -> Amount:
        curve = _curve(self.shape)

        def by_curve(left: Amount, allocatable: Amount) -> Amount:
            scores: Amount = curve[_share_used(left, allocatable)]
            return scores

        return _mean(self.resources, offer, by_curve)


def _share_left(left: Amount, allocatable: Amount) -> Amount:
    """Percentage that is left, rounded down; 0 where nothing is."""
    return left * (left > 0) * MAX_SCORE // allocatable


def _share_used(left: Amount, allocatable: Amount) -> Amount:
    """Percentage that is used, rounded down; 100 where too much is."""
    return (allocatable - left * (left > 0)) * MAX_SCORE // allocatable


@lru_cache(maxsize=64)
def _curve(shape: Shape) -> IntArray:
    """The score for each whole percentage of utilization."""
    curve = np.empty(101, dtype=np.int64)
    curve[: shape[0][0]] = shape[0][1]
    curve[shape[-1][0] :] = shape[-1][1]
    for (left, low), (right, high) in pairwise(shape):
        steps = np.arange(right - left, dtype=np.int64)
        curve[left:right] = low + (high - low) * steps // (right - left)
    return curve


def _mean(resources: Resources, offer: Offer[Amount], share: Callable[[Amount, Amount], Amount]) -> Amount:
    """The weighted mean over the resources, leaving out on each node those that it lacks."""
    total: Amount = offer.allocatable(resources[0][0]) * 0
    weights: Amount = total
    for resource, weight in resources:
        allocatable = offer.allocatable(resource)
        share_of_it = share(offer.left(resource), allocatable + (allocatable == 0))
        weight_of_it = weight * (allocatable > 0)
        total = total + weight_of_it * share_of_it
        weights = weights + weight_of_it
    mean: Amount = total // (weights + (weights == 0))
    return mean
