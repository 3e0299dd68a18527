"""How long the next transaction goes on filling, by what the last one was like, and who waits until it is full.

Much of what a transaction and the cycles before it cost is the same for one caller and for many. Callers who were
answered together come again together, so it pays to wait for as many as there were, though not for much longer than a
transaction of their own would take: whoever does not come costs the others little then.
"""

from __future__ import annotations

import asyncio

MOST_EXPECTED = 32
"""Callers behind whom little is left to share: more are taken in only while they come."""
PATIENCE = 2.0
"""For how long the next caller is waited for, as a multiple of the time that the last transaction took."""
MOST_PATIENCE_SECONDS = 0.02


class Filling:
    """Of one writer. Callers are those who wait for what they wrote to be durable."""

    __slots__ = ("_came", "_expected", "_full", "_is_open", "_patience")

    def __init__(self) -> None:
        self._came = asyncio.Event()
        self._expected = 0
        self._patience = 0.0
        self._is_open = True
        self._full: asyncio.Future[None] | None = None

    @property
    def expects_others(self) -> bool:
        """Whether callers were more than one of late."""
        return self._expected > 1

    def caller_came(self) -> None:
        """One waits for the transaction."""
        self._came.set()
        if self._is_open and self._full is None and self.expects_others:
            self._full = asyncio.get_running_loop().create_future()

    async def another_caller(self, callers: int) -> bool:
        """Whether one more comes soon, if so many are here and more are expected."""
        if callers >= self._expected or not self._patience:
            return False
        self._came.clear()
        try:
            async with asyncio.timeout(self._patience):
                await self._came.wait()
        except TimeoutError:
            return False
        return True

    async def until_full(self) -> None:
        """Return once no transaction fills for callers of whom more are expected."""
        while self._full is not None:
            await asyncio.wait([self._full])

    def begin(self) -> None:
        """The next transaction begins to fill, as the one before is on its way."""
        self._is_open = True

    def end(self) -> None:
        """The transaction is full: what comes now may share it, but nobody waits for that."""
        self._is_open = False
        full, self._full = self._full, None
        if full is not None:
            full.set_result(None)

    def transaction_ended(self, seconds: float, callers: int, next_callers: int) -> None:
        """It took so long; so many were answered by it, and so many wait for the next one already."""
        if callers:
            self._expected = min(callers + next_callers, MOST_EXPECTED)
            self._patience = min(PATIENCE * seconds, MOST_PATIENCE_SECONDS)
