"""When Python looks for garbage that holds itself: among the young often, among all only while nobody is served.

Reference counts free nearly all; what is left are a few small objects of each gRPC call, which die young. A look through
a million objects takes a second, in which no call is answered, and would find nothing. So it waits for a moment in which
the process has nothing to do; what was looked through then is never looked through again.
"""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass

YOUNG = 2_000
"""So many more objects than before: the youngest are looked through, which takes a millisecond or two; their elders every third time."""
_EVERY_OTHER = 2
_NEVER = 2**31 - 1


@dataclass(slots=True)
class Collector:
    """Takes over from Python's own pace. look_seconds: how often it is asked whether the moment has come.

    least_elders: looks through the elder ones, each of some six thousand objects, before it is worth it.
    longest_seconds: without an idle moment it is done anyway after so long.
    """

    look_seconds: float = 10.0
    idle_seconds: float = 0.1
    idle_share: float = 0.1
    least_elders: int = 40
    longest_seconds: float = 3_600.0
    _elders: int = 0
    _looked: float = 0.0

    def settle(self) -> None:
        """Look through all, and take what there is out of sight for good."""
        gc.collect()
        self.begin()

    def begin(self) -> None:
        """Take what there is out of sight, unlooked at: a start leaves a thousand objects, a look for them takes 0.1 to 0.4 s.

        Who starts without a collector has one now.
        """
        gc.freeze()
        gc.enable()
        gc.set_threshold(YOUNG, _EVERY_OTHER, _NEVER)
        self._elders, self._looked = _looks_at_elders(), time.monotonic()

    async def run(self) -> None:
        """Settle again whenever it is worth it and nothing else is to be done. Ends by being cancelled."""
        while True:
            await asyncio.sleep(self.look_seconds)
            if _looks_at_elders() - self._elders < self.least_elders:
                continue
            if await self._is_idle() or time.monotonic() - self._looked > self.longest_seconds:
                self.settle()

    async def _is_idle(self) -> bool:
        """Whether all threads together use little of the time."""
        used = time.process_time()
        await asyncio.sleep(self.idle_seconds)
        return time.process_time() - used < self.idle_seconds * self.idle_share


def _looks_at_elders() -> int:
    """Since the process began."""
    return int(gc.get_stats()[1]["collections"])
