"""Answers that several viewers share for a moment, so that ten open consoles cost what one does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
MOST_KEPT = 64


class Recent(Generic[Answer]):
    """On one event loop. `monotonic` tells seconds; an answer serves for `seconds` from when it was asked."""

    def __init__(self, monotonic: Callable[[], float], seconds: float) -> None:
        self._monotonic = monotonic
        self._seconds = seconds
        self._asked: dict[Hashable, tuple[float, asyncio.Future[Answer]]] = {}

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of the moment; one that failed is asked again by the next caller."""
        now = self._monotonic()
        known = self._asked.get(key)
        if known is None or now - known[0] > self._seconds or _failed(known[1]):
            self._asked = {each: kept for each, kept in self._asked.items() if now - kept[0] <= self._seconds}
            known = now, asyncio.ensure_future(ask())
            if len(self._asked) < MOST_KEPT:
                self._asked[key] = known
        # A caller that leaves takes nobody else's answer along.
        return await asyncio.shield(known[1])


def _failed(answer: asyncio.Future[Answer]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
