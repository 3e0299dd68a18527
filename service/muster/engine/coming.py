"""Decisions that are about to be written: a transaction waits a little for those on units which came with it.

Their pods are written once then, with their nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class ComingDecisions:
    """Of one cluster, whose cycles decide in rounds, between `begin` and `end`, what is in the queue.

    A unit is new if it came with what the next transaction will hold. `round` is the number of the round in work, or of
    the last one.
    """

    __slots__ = ("_changed", "_has_cycle", "_is_deciding", "_may_be_new", "round")

    def __init__(self) -> None:
        self.round = 0
        self._is_deciding = False
        self._has_cycle = False
        self._may_be_new = True
        self._changed: asyncio.Future[None] | None = None

    def begin(self) -> None:
        """Cycles have been woken."""
        if not self._is_deciding:
            self._is_deciding = True
            self.round += 1
            if not self._has_cycle:
                self._may_be_new = True

    def at(self, *, is_new: bool) -> None:
        """Cycles have come to a unit."""
        self._may_be_new = is_new
        self._tell()

    def end(self) -> None:
        """The round is over: the queue has no active unit left, or cycles wait for the transaction themselves."""
        self._is_deciding = False
        self._tell()

    def taken(self) -> None:
        """A transaction has begun, with all that there was."""
        self._may_be_new = False

    @contextmanager
    def cycle(self, *, is_new: bool) -> Iterator[None]:
        """Inside, a unit has its cycle, which may have to wait for a worker."""
        self.at(is_new=is_new)
        self._has_cycle = True
        try:
            yield
        finally:
            self._has_cycle = False
            self._tell()

    def change(self, latest: int) -> asyncio.Future[None] | None:
        """When to look again, if cycles are at a new unit, or may come to one in this round; else None.

        Rounds behind the one of number `latest` do not count, but for cycles that wait for a worker.
        """
        is_in_work = self._has_cycle or (self._is_deciding and self.round <= latest)
        if not is_in_work or not self._may_be_new:
            return None
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    def _tell(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)
