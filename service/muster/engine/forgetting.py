"""Forgetting what is old of a cluster's history, so that nobody who calls notices.

What is to go is found beside the commits. It goes a slice at a time on the writer's thread, between commits, at rest for
nearly all the time: few calls meet a slice, and those that do wait for a few milliseconds. What is more than that takes
away in good time goes faster, since nothing may grow without bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from muster.engine.cluster import Cluster
from muster.engine.ports import Clock, HistoryBounds, Store
from muster.engine.writer import Writer

REST_PER_WORK = 9.0
GOOD_TIME_SECONDS = 30.0
LITTLE_REST_PER_WORK = 1.0
VALUES_SECONDS = 120.0
"""How often values that nothing uses are looked for: that reads the whole log, and a value is small."""

Left = TypeVar("Left")


class Forgetting:
    """Of one cluster at a time."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._began = 0.0
        self._looked_for_values: WeakKeyDictionary[Cluster, float] = WeakKeyDictionary()

    async def forget(self, cluster: Cluster, bounds: HistoryBounds) -> None:
        """All beyond the bounds, and now and then the values that nothing uses. Raises FencedError, StoreUnavailableError."""
        store, self._began = self._store, self._clock.monotonic()
        name, token = cluster.name, cluster.token
        old = await asyncio.to_thread(store.find_old, name, bounds)
        while old is not None:
            old = await self._slice(partial(store.forget_old, name, token, old))
        last = self._looked_for_values.get(cluster)
        if last is not None and self._began - last < VALUES_SECONDS:
            return
        self._looked_for_values[cluster] = self._began
        unused = await asyncio.to_thread(store.find_unused, name)
        while unused is not None:
            unused = await self._slice(partial(store.forget_unused, name, token, unused))

    async def _slice(self, forget: Callable[[], Left]) -> Left:
        left, seconds = await self._writer.run_apart(lambda: self._timed(forget))
        is_late = self._clock.monotonic() - self._began > GOOD_TIME_SECONDS
        await asyncio.sleep(seconds * (LITTLE_REST_PER_WORK if is_late else REST_PER_WORK))
        return left

    def _timed(self, forget: Callable[[], Left]) -> tuple[Left, float]:
        began = self._clock.monotonic()
        left = forget()
        return left, self._clock.monotonic() - began
