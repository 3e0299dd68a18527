"""Amounts as small integers that are exact in what can be packed: divided, cut off, and without idle resources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray

_MOST = 2**52
"""Sums over all nodes stay below this, so that they are exact in floating point too."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """demand: [T, R]. free: [N, R], not negative. exact: False if amounts had to be rounded to the safe side."""

    demand: IntArray
    free: IntArray
    exact: bool


def scaled(requests: IntArray, room: IntArray, hosts: BoolArray, most: IntArray) -> Amounts:
    """Requests [T, R] and room [N, R] scaled; resources that cannot bind are dropped.

    hosts: [T, N]; room of nodes that host nothing does not count. most: [T] how many pods of each type there are.
    """
    used = np.logical_or.reduce(hosts, axis=0)
    columns: list[tuple[IntArray, IntArray]] = []
    exact = True
    for index in np.flatnonzero(requests.any(axis=0)).tolist():
        divisor = int(np.gcd.reduce(requests[:, index]))
        demand = requests[:, index] // divisor
        total = sum(count * amount for count, amount in zip(most.tolist(), demand.tolist(), strict=True))
        free = np.where(used, np.clip(room[:, index] // divisor, 0, min(total, 2**62)), 0)
        if (free[used] >= total).all():
            continue
        largest = max(total.bit_length(), int(free.max()).bit_length() + len(free).bit_length())
        shift = max(0, largest - _MOST.bit_length())
        if shift:
            exact = False
            demand, free = -(-demand >> shift), free >> shift
        columns.append((demand, free))
    kept = _binding(columns, used)
    if not kept:
        return Amounts(np.zeros((len(requests), 0), np.int64), np.zeros((len(room), 0), np.int64), exact)
    demand_kept = np.stack([demand for demand, _ in kept], axis=1)
    return Amounts(demand_kept, np.stack([free for _, free in kept], axis=1), exact)


def _binding(columns: list[tuple[IntArray, IntArray]], used: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """The columns less those that another of them implies."""
    kept = list(columns)
    for column in columns:
        others = [other for other in kept if other is not column]
        if any(_implies(other, column, used) for other in others):
            kept = others
    return kept


def _implies(first: tuple[IntArray, IntArray], second: tuple[IntArray, IntArray], used: BoolArray) -> bool:
    """Whether pods that fit in the first resource always fit in the second."""
    (taken, room), (other_taken, other_room) = first, second
    asking = other_taken > 0
    if (taken[asking] == 0).any():
        return False
    # The pod that takes most of the second for each piece of the first: no mix of pods takes more.
    ratios = other_taken[asking] / taken[asking]
    worst = int(np.argmax(ratios))
    numerator, denominator = int(other_taken[asking][worst]), int(taken[asking][worst])
    largest = max(int(amounts.max()) for amounts in (taken, room, other_taken, other_room))
    if max(numerator, denominator) * largest >= 2**62:
        return False
    if (other_taken[asking] * denominator > taken[asking] * numerator).any():
        return False
    return bool((room[used] * numerator <= other_room[used] * denominator).all())
