"""Sets of count vectors (so many pods of each type) as one big integer each, in mixed radix.

Bit i stands for the vector whose digits i is made of. Adding a vector to all members is a shift, a union is an OR:
a set of ten thousand members costs as much as a few machine instructions each thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

CountSet = int
Counts = tuple[int, ...]


class CountSpace:
    """Vectors with 0 to `most[i]` as the i-th count."""

    def __init__(self, most: Sequence[int]) -> None:
        self.most = tuple(most)
        strides = [1]
        for count in self.most:
            strides.append(strides[-1] * (count + 1))
        self.size = strides.pop()
        self._strides = strides
        self._masks: dict[Counts, CountSet] = {}
        self._closing = [
            (self._stride_times(place, step), self._below(place, step))
            for place in range(len(self.most))
            for step in _powers(self.most[place])
        ]

    @property
    def closing_steps(self) -> int:
        """How many passes `closed` takes."""
        return len(self._closing)

    def index(self, counts: Sequence[int]) -> int:
        """The bit of a vector."""
        return sum(count * stride for count, stride in zip(counts, self._strides, strict=True))

    def holds(self, counts: Sequence[int]) -> bool:
        return all(count <= most for count, most in zip(counts, self.most, strict=True))

    def counts(self, index: int) -> Counts:
        """The vector of a bit."""
        digits = []
        rest = index
        for most in self.most:
            rest, digit = divmod(rest, most + 1)
            digits.append(digit)
        return tuple(digits)

    def contains(self, members: CountSet, counts: Sequence[int]) -> bool:
        return bool(members >> self.index(counts) & 1)

    def plus(self, members: CountSet, counts: Counts) -> CountSet:
        """All members with the vector added, without those that leave the space."""
        return (members & self._room(counts)) << self.index(counts)

    def closed(self, members: CountSet) -> CountSet:
        """The members and all vectors below one of them."""
        for shift, mask in self._closing:
            members |= members >> shift & mask
        return members

    def members(self, members: CountSet) -> Iterator[Counts]:
        """The vectors of a set, lowest bit first."""
        left = members
        while left:
            lowest = left & -left
            yield self.counts(lowest.bit_length() - 1)
            left ^= lowest

    def _room(self, counts: Counts) -> CountSet:
        """All vectors to which the given one can be added."""
        known = self._masks.get(counts)
        if known is None:
            known = 1
            for place, count in enumerate(counts):
                known = _repeated(known, self._strides[place], self.most[place] - count + 1)
            self._masks[counts] = known
        return known

    def _below(self, place: int, step: int) -> CountSet:
        """All vectors that have room for `step` more at one place."""
        return self._room(tuple(step if at == place else 0 for at in range(len(self.most))))

    def _stride_times(self, place: int, step: int) -> int:
        return self._strides[place] * step


def _powers(most: int) -> list[int]:
    """1, 2, 4, ... whose sums reach every number up to `most`."""
    return [1 << bit for bit in range(most.bit_length())]


def _repeated(block: CountSet, stride: int, times: int) -> CountSet:
    """The block side by side with itself; by doubling."""
    if times <= 0:
        return 0
    whole, done = block, 1
    while 2 * done <= times:
        whole |= whole << (stride * done)
        done *= 2
    if done < times:
        whole |= whole << (stride * (times - done))
    return whole
