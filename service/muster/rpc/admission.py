"""How much a server takes on at once, and when it takes on nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from muster.engine.errors import ResourceExhaustedError, UnavailableError
from muster.rpc.limits import ServingLimits


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

    def refuse_if_draining(self) -> None:
        """Raise UnavailableError once draining has begun."""
        if self.draining.is_set():
            raise UnavailableError(
                "SERVER_DRAINING", "the server is shutting down; call another or try again"
            )

    async def wait_until_idle(self) -> None:
        """Until no call is in work, streams included."""
        await self._idle.wait()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Counts any call while it is in work. Raises UnavailableError while the server drains."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def unary_call(self) -> Iterator[None]:
        """Counts one unary call while it is in work. Raises ResourceExhaustedError when there are too many."""
        self._enter()
        self._unary_calls += 1
        try:
            if self._unary_calls > self.limits.unary_calls:
                raise ResourceExhaustedError(
                    "TOO_MANY_CALLS", f"{self._unary_calls - 1} calls are in work, and no more are taken"
                )
            yield
        finally:
            self._unary_calls -= 1
            self._leave()

    def _enter(self) -> None:
        self.refuse_if_draining()
        self._calls += 1
        self._idle.clear()

    def _leave(self) -> None:
        self._calls -= 1
        if self._calls == 0:
            self._idle.set()

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
