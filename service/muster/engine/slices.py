"""Work that gives way: done in slices of the event loop's time, with turns for others between them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

SLICE_SECONDS = 0.002
TURNS_BETWEEN = 3
"""Turns of the loop that others have between two slices: a read takes about eight from its arrival to its answer."""

Done = TypeVar("Done")


class Slices:
    """Of one piece of work, which asks between its steps whether a slice `is_over`, and then lets others go on."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_SECONDS

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self._until

    async def give_way(self) -> None:
        """Let others have their turns, and begin the next slice."""
        await give_way()
        self._until = time.perf_counter() + SLICE_SECONDS


async def give_way() -> None:
    """Let others have their turns."""
    for _ in range(TURNS_BETWEEN):
        await asyncio.sleep(0)


def finished(coroutine: Coroutine[Any, Any, Done]) -> Done:
    """The result of a coroutine that waits for nothing, but may give way to others: here are none."""
    while True:
        try:
            waits_for = coroutine.send(None)
        except StopIteration as end:
            result: Done = end.value
            return result
        if waits_for is not None:
            raise RuntimeError("there is no event loop to wait in")
