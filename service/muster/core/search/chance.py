"""Chance with a fixed seed, the same on every machine and in every version: what ties and variations are settled by."""

from __future__ import annotations

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407
_MASK = 2**64 - 1


class Chance:
    """A linear congruential generator of 64 bits whose high bits are used (Knuth's MMIX constants)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK
        self.between_zero_and_one()

    def between_zero_and_one(self) -> float:
        """The next number, at least 0 and below 1."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._state >> 11) / 2**53

    def around_one(self, width: float) -> float:
        """A factor within `width` of 1."""
        return 1 + width * (2 * self.between_zero_and_one() - 1)

    def below(self, bound: int) -> int:
        """The next whole number from 0 to bound - 1."""
        return int(self.between_zero_and_one() * bound)
