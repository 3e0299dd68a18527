"""From the threads of the HTTP server to the event loop and back, a few requests at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

from muster.engine.errors import ResourceExhaustedError, UnavailableError
from muster.rpc.refusals import DeadlineError

Answer = TypeVar("Answer")
MOST_AT_ONCE = 8
PATIENCE_SECONDS = 40.0


class Bridge:
    """`run` is called in any thread but the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)

    def run(self, work: Callable[[], Coroutine[object, object, Answer]]) -> Answer:
        """What the coroutine returns. Raises what it raises, and `Refusal`s if there is no room, no time or no loop."""
        if not self._free.acquire(blocking=False):
            raise ResourceExhaustedError(
                "TOO_MANY_CALLS", f"{MOST_AT_ONCE} requests of consoles are in work, and no more are taken"
            )
        try:
            return self._wait_for(work())
        finally:
            self._free.release()

    def _wait_for(self, coroutine: Coroutine[object, object, Answer]) -> Answer:
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise UnavailableError("SERVER_DRAINING", "the server is shutting down") from error
        try:
            return future.result(PATIENCE_SECONDS)
        except TimeoutError as error:
            future.cancel()
            text = f"no answer within {PATIENCE_SECONDS:g} s"
            raise DeadlineError("DEFAULT_DEADLINE", text, seconds=f"{PATIENCE_SECONDS:g}") from error
