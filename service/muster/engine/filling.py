"""How long the next transaction goes on filling, by what the last ones were like, and who waits until it is full.

Much of what a transaction and the cycles before it cost is the same for one caller and for many. Callers who wait for
each answer before they call again, and were answered together, come again together: it pays to wait for as many as there
were. Where callers come by themselves it does not, and is tried ever more seldom.
"""

from __future__ import annotations

import asyncio

MOST_EXPECTED = 32
"""Callers behind whom little is left to share: more are taken in only while they come."""
PATIENCE_SECONDS = 0.004
"""For how long the next one is waited for."""
QUIET_TURNS = 3
"""Turns of the loop in which nobody comes, after which nobody is on the way: a call that is there takes as many to be seen."""
MOST_PAUSE = 16
"""Transactions that wait for nobody, at most, after those who were waited for in vain."""


class Filling:
    """Of one writer. Callers are those who wait for what they wrote to be durable."""

    __slots__ = ("_came", "_expected", "_full", "_is_open", "_last_pause", "_pause")

    def __init__(self) -> None:
        self._came = asyncio.Event()
        self._expected = 0
        self._pause = 0
        self._last_pause = 0
        self._is_open = True
        self._full: asyncio.Future[None] | None = None

    @property
    def expects_others(self) -> bool:
        """Whether callers were more than one of late, and it may pay to wait for them."""
        return self._expected > 1 and not self._pause

    def caller_came(self) -> None:
        """One waits for the transaction."""
        self._came.set()
        if self._is_open and self._full is None and self.expects_others:
            self._full = asyncio.get_running_loop().create_future()

    async def another_caller(self, callers: int) -> bool:
        """Whether one more comes soon, if so many are here and more are expected."""
        if not self.expects_others:
            return False
        if callers >= self._expected:
            self._last_pause = 0
            return False
        self._came.clear()
        has_come = await self._comes()
        if not has_come:
            self._last_pause = min(2 * self._last_pause or 1, MOST_PAUSE)
            self._pause = self._last_pause
        return has_come

    async def until_full(self) -> None:
        """Return once the transaction is full that fills for callers of whom more are expected, if one does.

        The one behind it may fill by then: to wait for that as well might never end.
        """
        if self._full is not None:
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

    def transaction_ended(self, callers: int, next_callers: int) -> None:
        """So many were answered by it, and so many wait for the next one already."""
        if callers:
            self._expected = min(callers + next_callers, MOST_EXPECTED)
            self._pause = max(0, self._pause - 1)

    async def _comes(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._came.wait()
        except TimeoutError:
            for _ in range(QUIET_TURNS):
                await asyncio.sleep(0)
        return self._came.is_set()
