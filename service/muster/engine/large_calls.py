"""Whose turn it is to write to a cluster, while a large call is admitted in slices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LargeCalls:
    """One at a time. What writes without asking makes the call in work begin anew, no more."""

    def __init__(self) -> None:
        self._in_work: asyncio.Future[None] | None = None

    async def over(self) -> None:
        """Return once none is in work."""
        while self._in_work is not None:
            await asyncio.wait([self._in_work])

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Inside, a large call is in work."""
        await self.over()
        self._in_work = in_work = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._in_work = None
            in_work.set_result(None)
