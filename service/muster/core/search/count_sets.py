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
        self._masks: dict[tuple[int, int], CountSet] = {}
        self._closing = [
            (self._strides[place] * step, self._below(place, step))
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
        for place, count in enumerate(counts):
            if count:
                members = self._raised(members, place, count)
        return members

    def plus_any(self, members: CountSet, vectors: Sequence[Counts]) -> CountSet:
        """All sums of a member and one of the vectors; those with a common beginning share the work if they are sorted."""
        depth = len(self.most)
        raised = [members] * (depth + 1)
        total = 0
        before: Counts = (-1,) * depth
        for counts in vectors:
            place = 0
            while place < depth and counts[place] == before[place]:
                place += 1
            for at in range(place, depth):
                count = counts[at]
                raised[at + 1] = self._raised(raised[at], at, count) if count else raised[at]
            total |= raised[depth]
            before = counts
        return total

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

    def _raised(self, members: CountSet, place: int, count: int) -> CountSet:
        return (members & self._below(place, count)) << (self._strides[place] * count)

    def _below(self, place: int, step: int) -> CountSet:
        """All vectors that have room for `step` more at one place."""
        known = self._masks.get((place, step))
        if known is None:
            known = 1
            for at, most in enumerate(self.most):
                known = _repeated(known, self._strides[at], most + 1 - (step if at == place else 0))
            self._masks[place, step] = known
        return known


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
