"""Forgetting what is old of a cluster's history, so that nobody who calls notices.

What is to go is found beside the commits. It goes a slice at a time on the writer's thread, between commits, at rest for
nearly all the time: few calls meet a slice, and those that do wait for a few milliseconds. What is more than that takes
away in good time goes faster, since nothing may grow without bound. Values are many and take longest, so history goes
on being forgotten in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from muster.engine.cluster import Cluster
from muster.engine.ports import Clock, HistoryBounds, OldHistory, Store, UnusedValues
from muster.engine.writer import Writer

REST_PER_WORK = 9.0
LITTLE_REST_PER_WORK = 1.0
HISTORY_SECONDS = 30.0
"""The good time for history, and how often it is looked at while values are forgotten."""
VALUES_SECONDS = 120.0
"""The good time for values that nothing uses, and how often they are looked for: that reads the whole log."""

Left = TypeVar("Left")


class Forgetting:
    """Of one cluster at a time."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._looked_for_values: WeakKeyDictionary[Cluster, float] = WeakKeyDictionary()

    async def forget(self, cluster: Cluster, bounds: Callable[[], HistoryBounds]) -> None:
        """All beyond the bounds, and now and then the values that nothing uses. Raises FencedError, StoreUnavailableError."""
        started = self._clock.monotonic()
        old = await self._find_old(cluster, bounds())
        while old is not None:
            old = await self._forget_old(cluster, old, started)
        if started - self._looked_for_values.get(cluster, -VALUES_SECONDS) >= VALUES_SECONDS:
            self._looked_for_values[cluster] = started
            await self._forget_values(cluster, bounds)

    async def _forget_values(self, cluster: Cluster, bounds: Callable[[], HistoryBounds]) -> None:
        """With slices of history in between, as far as it has been searched for uses of the values."""
        started = looked = self._clock.monotonic()
        unused = await asyncio.to_thread(self._store.find_unused, cluster.name)
        old: OldHistory | None = None
        while unused is not None:
            now = self._clock.monotonic()
            if old is None and now - looked >= HISTORY_SECONDS:
                looked = now
                old = await self._find_old(cluster, bounds(), unused.revision)
            if old is not None:
                old = await self._forget_old(cluster, old, looked)
            unused = await self._forget_unused(cluster, unused, started)

    async def _find_old(
        self, cluster: Cluster, bounds: HistoryBounds, log_to: int | None = None
    ) -> OldHistory | None:
        old = await asyncio.to_thread(self._store.find_old, cluster.name, bounds)
        if old is None or log_to is None:
            return old
        return replace(old, log_to=max(old.log_after, min(old.log_to, log_to)))

    def _forget_old(self, cluster: Cluster, old: OldHistory, found: float) -> Awaitable[OldHistory | None]:
        forget = partial(self._store.forget_old, cluster.name, cluster.token, old)
        return self._slice(forget, found + HISTORY_SECONDS)

    def _forget_unused(
        self, cluster: Cluster, unused: UnusedValues, found: float
    ) -> Awaitable[UnusedValues | None]:
        forget = partial(self._store.forget_unused, cluster.name, cluster.token, unused)
        return self._slice(forget, found + VALUES_SECONDS)

    async def _slice(self, forget: Callable[[], Left], late_from: float) -> Left:
        left, seconds = await self._writer.run_apart(lambda: self._timed(forget))
        is_late = self._clock.monotonic() > late_from
        await asyncio.sleep(seconds * (LITTLE_REST_PER_WORK if is_late else REST_PER_WORK))
        return left

    def _timed(self, forget: Callable[[], Left]) -> tuple[Left, float]:
        began = self._clock.monotonic()
        left = forget()
        return left, self._clock.monotonic() - began
