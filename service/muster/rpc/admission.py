"""How much a server takes on at once, and when it takes on nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from muster.engine.errors import ResourceExhaustedError, UnavailableError
from muster.rpc.limits import ServingLimits


class _Counted(AbstractContextManager[None]):
    """Begins a call on entry and ends it on exit; one serves all calls of a kind, as it keeps nothing of them."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *raised: object) -> None:
        self._end()


class Admission:
    """Whether the server takes calls, and how many are in work. `draining` is set once and for good."""

    def __init__(self, limits: ServingLimits) -> None:
        self.limits = limits
        self.draining = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._calls = 0
        self._unary_calls = 0
        self._watches = 0
        self._any = _Counted(self._begin, self._end)
        self._unary = _Counted(self._begin_unary, self._end_unary)

    def refuse_if_draining(self) -> None:
        """Raise UnavailableError once draining has begun."""
        if self.draining.is_set():
            raise UnavailableError(
                "SERVER_DRAINING", "the server is shutting down; call another or try again"
            )

    async def wait_until_idle(self) -> None:
        """Until no call is in work, streams included."""
        await self._idle.wait()

    def call(self) -> AbstractContextManager[None]:
        """Counts any call while it is in work. Raises UnavailableError while the server drains."""
        return self._any

    def unary_call(self) -> AbstractContextManager[None]:
        """Counts one unary call while it is in work. Raises ResourceExhaustedError when there are too many, too."""
        return self._unary

    def _begin(self) -> None:
        """Count a call, or refuse it."""
        self.refuse_if_draining()
        self._calls += 1
        self._idle.clear()

    def _end(self) -> None:
        """The call is over."""
        self._calls -= 1
        if self._calls == 0:
            self._idle.set()

    def _begin_unary(self) -> None:
        """Count a unary call, or refuse it."""
        if self._unary_calls >= self.limits.unary_calls and not self.draining.is_set():
            raise ResourceExhaustedError(
                "TOO_MANY_CALLS", f"{self._unary_calls} calls are in work, and no more are taken"
            )
        self._begin()
        self._unary_calls += 1

    def _end_unary(self) -> None:
        """The unary call is over."""
        self._unary_calls -= 1
        self._end()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Counts one watch while it is open. Raises ResourceExhaustedError when there are too many."""
        if self._watches >= self.limits.watches:
            raise ResourceExhaustedError(
                "TOO_MANY_WATCHES", f"{self._watches} watches are open, and no more are taken"
            )
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1
