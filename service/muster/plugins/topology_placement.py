"""Placement scorer: which of the domains that hold a group is best (semantics 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from muster.core.framework import PlacementView


@dataclass(frozen=True)
class MostPodsThenFullest:
    """Most pods of the group, then the domain that is fullest with them: the mean share used, exactly."""

    def score(self, view: PlacementView) -> tuple[Fraction | int, ...]:
        shares = [
            Fraction(used, allocatable)
            for used, allocatable in zip(view.used, view.allocatable, strict=True)
            if allocatable
        ]
        return view.placed, sum(shares, Fraction(0)) / max(len(shares), 1)
