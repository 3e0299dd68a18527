"""Ids that count, so that a test knows what comes next."""

import itertools


class FakeIds:
    """The n-th id ends in n."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uid(self) -> str:
        """The next id, in the shape of a UUID."""
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"

    def uids(self, count: int) -> list[str]:
        """The next ids."""
        return [self.uid() for _ in range(count)]
