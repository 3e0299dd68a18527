"""Work that gives way: done in slices of the event loop's time, with turns for others between them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

TURNS_BETWEEN = 3
"""Turns of the loop that others have between two slices: a read takes about eight from its arrival to its answer."""
OBJECTS_A_SLICE = 100
"""So many take some milliseconds to look at."""

Done = TypeVar("Done")


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
