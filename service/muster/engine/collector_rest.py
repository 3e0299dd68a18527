"""Python does not look for garbage while a call of thousands of objects is in work: tens of thousands are made that stay.

To look through them, twice each as it does, took a tenth of such a call. It is done once behind the call instead.
"""

from __future__ import annotations

import asyncio
import gc

LEAST_OBJECTS = 1_000
"""Of a call: fewer leave little to look through."""
REST_SECONDS = 1.0
MOST_YOUNG = 100_000
"""So many new objects are looked through all the same, which takes about ten milliseconds: large calls may never cease."""


class CollectorRest:
    """Lengthens the collector's pace for a while, in an event loop; one of them in a process."""

    def __init__(self) -> None:
        self._end: asyncio.TimerHandle | None = None
        self._young = 0

    def begin(self, objects: int) -> None:
        """A call of so many objects is about to be worked on."""
        if objects < LEAST_OBJECTS:
            return
        if self._end is None:
            self._young, *elders = gc.get_threshold()
            gc.set_threshold(max(MOST_YOUNG, self._young), *elders)
        else:
            self._end.cancel()
        self._end = asyncio.get_running_loop().call_later(REST_SECONDS, self.end)

    def end(self) -> None:
        """Back to the pace from before."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            gc.set_threshold(self._young, *gc.get_threshold()[1:])
