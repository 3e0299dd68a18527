"""The line between the receiver and the service: tuples of plain values, all that are said in one turn of a loop together.

Both ends are this program in the same version, on a socket that nobody else has. So the quickest encoding will do.
"""

from __future__ import annotations

import asyncio
import marshal
from collections.abc import Callable
from typing import Any, TypeAlias, cast

Word: TypeAlias = tuple[Any, ...]
"""What is said at a time: its kind, and values that `marshal` knows."""

Service: TypeAlias = tuple[str, dict[str, tuple[bool, bool]], list[str]]
"""A service's name; which of its methods have many requests, and many responses; those that are known by name."""

MOST_UNSENT_BYTES = 1024 * 1024
"""More than so many bytes that the other end has not taken are waited for by those who can wait."""

_HEAD = 8
"""Bytes before each batch, which hold its length."""


class Wire(asyncio.Protocol):
    """One end. `heard` is called with each word in its order, `ended` once nothing can be said any more."""

    def __init__(self, heard: Callable[[Word], None], ended: Callable[[], None]) -> None:
        self._heard = heard
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsaid: list[Word] = []
        self._received = bytearray()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The line stands."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=MOST_UNSENT_BYTES)

    def connection_lost(self, _error: Exception | None) -> None:
        """The other end is gone, or this one was closed."""
        self._transport = None
        self._has_room.set()
        self._ended()

    def pause_writing(self) -> None:
        """The other end takes nothing at the moment."""
        self._has_room.clear()

    def resume_writing(self) -> None:
        """The other end has taken most of it."""
        self._has_room.set()

    async def room(self) -> None:
        """Return once little waits to be taken by the other end."""
        while not self._has_room.is_set():
            await self._has_room.wait()

    def say(self, word: Word) -> None:
        """Send it with all else that is said in this turn of the loop; nobody hears it if the other end is gone."""
        if not self._unsaid:
            self._loop.call_soon(self._send)
        self._unsaid.append(word)

    def close(self) -> None:
        """Send what was said, and end the line."""
        self._send()
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Hear the batches that are whole by now."""
        if not self._received and _length(data) == len(data) - _HEAD:
            self._hear(memoryview(data)[_HEAD:])
            return
        received = self._received
        received += data
        start = 0
        while len(received) - start >= _HEAD:
            begin = start + _HEAD
            end = begin + _length(received[start:begin])
            if end > len(received):
                break
            with memoryview(received) as view, view[begin:end] as batch:
                self._hear(batch)
            start = end
        del received[:start]

    def _hear(self, batch: memoryview) -> None:
        for word in marshal.loads(batch):  # noqa: S302 - from our own process
            self._heard(word)

    def _send(self) -> None:
        words, self._unsaid = self._unsaid, []
        if words and self._transport is not None:
            batch = marshal.dumps(words)
            self._transport.write(len(batch).to_bytes(_HEAD, "little") + batch)


def _length(head: bytes | bytearray) -> int:
    return int.from_bytes(head[:_HEAD], "little")
