"""Time limits of calls that set none themselves: one timer for all that have the same limit.

Such calls come to their end in the order in which they began. `asyncio.timeout` would set up and stop a timer for each
of a thousand calls a second, of which one in a million runs out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from muster.rpc.refusals import DeadlineError

Answer = TypeVar("Answer")


class _Limited:
    """A call in work. `cancellations`: how often others had asked its task to end when it began."""

    __slots__ = ("cancellations", "is_over", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.cancellations = task.cancelling()
        self.is_over = False


class Deadlines:
    """The calls in work, by their limit in seconds and then in the order in which they began."""

    def __init__(self) -> None:
        self._calls: dict[float, dict[_Limited, float]] = {}

    async def within(self, seconds: float, method: str, work: Awaitable[Answer]) -> Answer:
        """What the work gives. Raises DeadlineError at the end of its time, when the work is cancelled."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit is a task's")
        call, loop = _Limited(task), asyncio.get_running_loop()
        alike = self._calls.get(seconds)
        if alike is None:
            alike = self._calls[seconds] = {}
            loop.call_later(seconds, self._look, seconds)
        alike[call] = loop.time() + seconds
        try:
            return await work
        except asyncio.CancelledError:
            if call.is_over and task.uncancel() <= call.cancellations:
                message = f"{method} took longer than {seconds:g} s; set a deadline to allow more"
                raise DeadlineError("DEFAULT_DEADLINE", message, seconds=f"{seconds:g}") from None
            raise
        finally:
            alike.pop(call, None)

    def _look(self, seconds: float) -> None:
        """End the calls whose time is over, and look again when that of the next one is."""
        alike, loop = self._calls[seconds], asyncio.get_running_loop()
        for call, end in list(alike.items()):
            if end > loop.time():
                loop.call_at(end, self._look, seconds)
                return
            del alike[call]
            call.is_over = True
            call.task.cancel()
        del self._calls[seconds]
