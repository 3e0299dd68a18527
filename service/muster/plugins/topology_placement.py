"""Placement scorer: which of the domains that hold a group is best (semantics 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muster.core.arrays import BoolArray, IntArray
from muster.core.framework import PlacementView, PlacementViews

_DOUBT = 1e-12
"""Shares in floating point that differ relatively by less are compared exactly."""


@dataclass(slots=True, eq=False)
class _Share:
    """So many of so many, not in lowest terms; of two the larger one sorts first."""

    used: int
    whole: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Share) and self.used * other.whole == other.used * self.whole

    def __lt__(self, other: _Share) -> bool:
        return self.used * other.whole > other.used * self.whole

    def __hash__(self) -> int:
        return hash(Fraction(self.used, self.whole))


@dataclass(frozen=True)
class MostPodsThenFullest:
    """Most pods of the group, then the domain that is fullest with them: the mean share used, exactly."""

    def score(self, view: PlacementView) -> tuple[Fraction | int, ...]:
        share = _mean_share(view)
        return view.placed, Fraction(share.used, share.whole)

    def sort_key(self, view: PlacementView) -> tuple[int | float | _Share, ...]:
        """Most shares are told apart in floating point, which never disagrees."""
        share = _mean_share(view)
        return -view.placed, -(share.used / share.whole), share

    def ranks(self, views: PlacementViews) -> IntArray:
        """By floating point where that settles it, exactly inside each run of candidates that it cannot tell apart."""
        shares = _approximate_shares(views)
        order = np.lexsort((shares, views.placed))
        placed, shares = views.placed[order], shares[order]
        apart = np.ones(len(order), dtype=np.bool_)
        apart[1:] = (placed[1:] > placed[:-1]) | (shares[1:] - shares[:-1] > _DOUBT * shares[1:])
        classes = np.arange(len(order)) if apart.all() else self._classes(views, order, apart)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = classes
        return ranks

    def _classes(self, views: PlacementViews, order: IntArray, apart: BoolArray) -> IntArray:
        """Of the candidates in order: equal for equal scores. apart: whether one is surely above the one before."""
        unlike = apart.copy()
        for amounts in (*views.used, *views.allocatable):
            sorted_ = amounts[order]
            unlike[1:] |= sorted_[1:] != sorted_[:-1]
        classes: IntArray = np.cumsum(apart) - 1
        if (unlike & ~apart).any():
            classes = self._settled(views, order, classes, unlike)
        return classes

    def describe(self, view: PlacementView) -> str:
        total, number = 0.0, 0
        for used, allocatable in zip(view.used, view.allocatable, strict=True):
            if allocatable:
                total, number = total + used / allocatable, number + 1
        pods = "1 pod" if view.placed == 1 else f"{view.placed} pods"
        return f"{pods}, {total / (number or 1):.1%} full"

    def _settled(
        self, views: PlacementViews, order: IntArray, classes: IntArray, unlike: BoolArray
    ) -> IntArray:
        """Classes in which the members of each run are told apart by their exact scores, alike neighbours as one."""
        firsts = np.flatnonzero(unlike)
        in_class = classes[firsts]
        exact = np.zeros(len(firsts), dtype=np.int64)
        shared = np.flatnonzero(np.bincount(in_class) > 1)
        for doubtful in shared.tolist():
            run = np.flatnonzero(in_class == doubtful)
            scores = [self.score(views[place]) for place in order[firsts[run]].tolist()]
            rank_of = {score: rank for rank, score in enumerate(sorted(set(scores)))}
            exact[run] = [rank_of[score] for score in scores]
        settled = classes * len(order) + exact[np.cumsum(unlike) - 1]
        dense: IntArray = np.unique(settled, return_inverse=True)[1]
        return dense


def _mean_share(view: PlacementView) -> _Share:
    total, whole, number = 0, 1, 0
    for used, allocatable in zip(view.used, view.allocatable, strict=True):
        if allocatable:
            total, whole, number = total * allocatable + used * whole, whole * allocatable, number + 1
    return _Share(total, whole * (number or 1))


def _approximate_shares(views: PlacementViews) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.zeros(len(views.placed))
    number: IntArray | int = 0
    for used, allocatable in zip(views.used, views.allocatable, strict=True):
        if allocatable.all():
            total += used / allocatable
            number = number + 1
        else:
            total += used / np.maximum(allocatable, 1) * (allocatable > 0)
            number = number + (allocatable > 0)
    return total / np.maximum(number, 1)
