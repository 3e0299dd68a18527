"""Forgetting what is old of a cluster's history, so that nobody who calls notices.

What is to go is found beside the commits. It goes a slice at a time on the writer's thread, between commits, at rest for
most of the time: few calls meet a slice, and those that do wait for a few milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from muster.engine.ports import Clock, HistoryBounds, Store
from muster.engine.writer import Writer

REST_PER_WORK = 4.0

Left = TypeVar("Left")


class Forgetting:
    """Of one cluster at a time."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock

    async def forget(self, cluster: str, token: int, bounds: HistoryBounds) -> None:
        """All beyond the bounds, then the values that nothing uses any more. Raises FencedError, StoreUnavailableError."""
        store = self._store
        old = await asyncio.to_thread(store.find_old, cluster, bounds)
        while old is not None:
            old = await self._slice(partial(store.forget_old, cluster, token, old))
        unused = await asyncio.to_thread(store.find_unused, cluster)
        while unused is not None:
            unused = await self._slice(partial(store.forget_unused, cluster, token, unused))

    async def _slice(self, forget: Callable[[], Left]) -> Left:
        left, seconds = await self._writer.run_apart(lambda: self._timed(forget))
        await asyncio.sleep(seconds * REST_PER_WORK)
        return left

    def _timed(self, forget: Callable[[], Left]) -> tuple[Left, float]:
        began = self._clock.monotonic()
        left = forget()
        return left, self._clock.monotonic() - began
