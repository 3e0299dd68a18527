"""A worker pool without processes, whose workers answer when the test lets them: what happens meanwhile is a race."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from muster.core.framework import Profile
from muster.core.tree import Unit
from muster.engine.array_feed import ArrayFeed
from muster.engine.worker import decide_on
from muster.engine.worker_pool import WorkerAnswer, WorkerPool


class HeldPool(WorkerPool):
    """Decides at once on the arrays as they are, and keeps the answer until `answer`."""

    def __init__(self, size: int, on_restart: Callable[[], None] = lambda: None) -> None:
        super().__init__(0, on_restart=on_restart)
        self.held: list[asyncio.Event] = []

    @property
    def is_empty(self) -> bool:
        return False

    async def decide(
        self, cluster: str, feed: ArrayFeed, unit: Callable[[], Unit], profile: Profile, *, is_recording: bool
    ) -> WorkerAnswer:
        version = feed.flush().version
        _, decision, events = decide_on(feed.snapshot, unit(), profile, is_recording=is_recording)
        released = asyncio.Event()
        self.held.append(released)
        await released.wait()
        return WorkerAnswer(decision, events, version)

    def answer(self) -> None:
        """Let all that was decided so far be answered."""
        held, self.held = self.held, []
        for each in held:
            each.set()


class BusyPool(HeldPool):
    """Decides only when the test lets it, on the arrays as they are then, as a pool does whose worker was busy."""

    async def decide(
        self, cluster: str, feed: ArrayFeed, unit: Callable[[], Unit], profile: Profile, *, is_recording: bool
    ) -> WorkerAnswer:
        unit()
        free = asyncio.Event()
        self.held.append(free)
        await free.wait()
        asked, snapshot = unit(), feed.flush()
        _, decision, events = decide_on(snapshot, asked, profile, is_recording=is_recording)
        return WorkerAnswer(decision, events, snapshot.version)
