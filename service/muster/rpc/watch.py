"""Streams of batches to one watcher: bookmarks, slow watchers, the end when the server drains.

Decides when something is sent and when a watcher is given up. What a batch holds is the engine's; how a batch
becomes messages is the caller's (`MessagesOf`), with `split_by_size` for those that may grow too large.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message
from grpc import aio

from muster.engine.errors import ResourceExhaustedError
from muster.rpc.admission import Admission

B = TypeVar("B")
E = TypeVar("E")
Context = aio.ServicerContext[Any, Any]
MessagesOf = Callable[[B], Iterable[Message | bytes]]


class WatchStream(Generic[B]):
    """One watch: `messages_of` turns a batch into messages, encoded or not; `bookmark` makes the one that fills a silence.

    `bookmark` answers None while no revision is known that could be promised.
    """

    def __init__(
        self,
        context: Context,
        admission: Admission,
        messages_of: MessagesOf[B],
        bookmark: Callable[[], Message | None],
    ) -> None:
        self._context = context
        self._admission = admission
        self._messages_of = messages_of
        self._bookmark = bookmark
        self._sent_at = 0.0

    async def run(self, batches: AsyncIterator[B]) -> None:
        """Sends until the caller leaves, and raises the refusal that ends the watch otherwise."""
        draining = asyncio.ensure_future(self._admission.draining.wait())
        try:
            await self._send_all(batches, draining)
        finally:
            draining.cancel()
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()
        self._admission.refuse_if_draining()

    async def _send_all(self, batches: AsyncIterator[B], draining: asyncio.Future[Any]) -> None:
        upcoming = asyncio.ensure_future(anext(batches, None))
        self._sent_at = time.monotonic()
        try:
            while not draining.done():
                await asyncio.wait(
                    {upcoming, draining}, timeout=self._quiet_for(), return_when=asyncio.FIRST_COMPLETED
                )
                if upcoming.done():
                    batch = upcoming.result()
                    if batch is None:
                        return
                    for message in self._messages_of(batch):
                        await self._write(message)
                    upcoming = asyncio.ensure_future(anext(batches, None))
                if not self._quiet_for() and not draining.done():
                    await self._write_bookmark()
        finally:
            if not upcoming.done():
                upcoming.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await upcoming

    def _quiet_for(self) -> float:
        """For how much longer nothing need be sent, in seconds: batches that hold nothing for this watcher are silence too."""
        return max(0.0, self._sent_at + self._admission.limits.bookmark_seconds - time.monotonic())

    async def _write_bookmark(self) -> None:
        bookmark = self._bookmark()
        if bookmark is None:
            self._sent_at = time.monotonic()
        else:
            await self._write(bookmark)

    async def _write(self, message: Message | bytes) -> None:
        seconds = self._admission.limits.watcher_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._context.write(message)
                self._sent_at = time.monotonic()
        except TimeoutError:
            raise ResourceExhaustedError(
                "WATCHER_TOO_SLOW",
                f"the watcher took no message for {seconds:g} s; watch again from its revision",
            ) from None


def split_by_size(
    elements: Iterable[E], size_of: Callable[[E], int], most: int, room: int
) -> Iterator[list[E]]:
    """The elements in runs of at most `most`, and of `room` bytes where a single one does not exceed it already."""
    run: list[E] = []
    taken = 0
    for element in elements:
        size = size_of(element)
        if run and (len(run) == most or taken + size > room):
            yield run
            run, taken = [], 0
        run.append(element)
        taken += size
    if run:
        yield run
