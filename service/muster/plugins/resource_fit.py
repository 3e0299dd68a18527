"""Score: how full the pod would leave a node, by one of three strategies (Kubernetes' NodeResourcesFit).

Each is a weighted mean over the resources that the node has at all. Whether the pod fits is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from muster.core.arrays import IntArray
from muster.core.framework import MAX_SCORE, Offer

Resources = tuple[tuple[str, int], ...]
"""Names and weights."""
Shape = tuple[tuple[int, int], ...]
"""Points (utilization 0 to 100, score 0 to 100) by rising utilization."""


@dataclass(frozen=True)
class LeastAllocated:
    """Prefers nodes with the most left: spreads pods."""

    resources: Resources

    def score(self, offer: Offer) -> IntArray:
        return _mean(self.resources, offer, _share_left)


@dataclass(frozen=True)
class MostAllocated:
    """Prefers nodes with the least left: packs pods."""

    resources: Resources

    def score(self, offer: Offer) -> IntArray:
        return _mean(self.resources, offer, _share_used)


@dataclass(frozen=True)
class RequestedToCapacityRatio:
    """Scores utilization by a curve of straight lines, flat beyond its ends."""

    resources: Resources
    shape: Shape

    def score(self, offer: Offer) -> IntArray:
        curve = _curve(self.shape)

        def by_curve(left: IntArray, allocatable: IntArray) -> IntArray:
            scores: IntArray = curve[_share_used(left, allocatable)]
            return scores

        return _mean(self.resources, offer, by_curve)


def _share_left(left: IntArray, allocatable: IntArray) -> IntArray:
    """Percentage that is left, rounded down; 0 where nothing is."""
    return np.maximum(left, 0) * MAX_SCORE // allocatable


def _share_used(left: IntArray, allocatable: IntArray) -> IntArray:
    """Percentage that is used, rounded down; 100 where too much is."""
    return np.minimum((allocatable - np.maximum(left, 0)), allocatable) * MAX_SCORE // allocatable


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


def _mean(resources: Resources, offer: Offer, share: Callable[[IntArray, IntArray], IntArray]) -> IntArray:
    """The weighted mean over the resources, leaving out on each node those that it lacks."""
    total: IntArray | int = 0
    weights: IntArray | int = 0
    for resource, weight in resources:
        allocatable = offer.allocatable(resource)
        if allocatable.all():
            total = total + weight * share(offer.left(resource), allocatable)
            weights = weights + weight
        else:
            offered = (allocatable > 0).astype(np.int64)
            total = total + weight * offered * share(offer.left(resource), np.maximum(allocatable, 1))
            weights = weights + weight * offered
    mean: IntArray = np.asarray(total) // np.maximum(weights, 1)
    return mean
