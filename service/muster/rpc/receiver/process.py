"""The receiver: a process that speaks gRPC with callers, and says what they ask to the service, byte for byte.

It knows methods by their paths, and nothing of what they mean. Heard first: ("serve", options, services); then ("listen", address,
credentials, mode), answered by ("listening", port, ""), or why not; ("start",), answered by ("started",); ("stop", seconds).
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import grpc
from grpc import aio

from muster.rpc.addresses import Address, AddressError, Credentials
from muster.rpc.call_server import InProcessServer, MethodHandler
from muster.rpc.event_loop import new_event_loop
from muster.rpc.receiver.wire import Service, Wire, Word

Context = aio.ServicerContext[bytes, bytes]
REQUESTS_AHEAD = 2
"""Requests of a stream that are said before the service has begun with them."""
PART_BYTES = 256 * 1024
"""Of a request that are said at a time."""

_LOG = logging.getLogger(__name__)
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class _Stream:
    """A call with many requests, or many responses. `room` is for requests; `writing` is the latest response's task."""

    __slots__ = ("context", "room", "writing")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.room = asyncio.Semaphore(REQUESTS_AHEAD)
        self.writing: asyncio.Task[None] | None = None


class Receiver:
    """Between gRPC's server and the wire. `over` is set once there is nothing left to do."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.wire = Wire(self.hear, self.over.set)
        self._loop = asyncio.get_running_loop()
        self._server: InProcessServer
        self._numbers = itertools.count()
        self._answers: dict[int, asyncio.Future[Word]] = {}
        self._streams: dict[int, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, word: Word) -> None:
        """Do what the service says of a call, which may have ended meanwhile, or of the server."""
        kind, *rest = word
        match kind:
            case "answer" | "abort":
                answer = self._answers.get(rest[0])
                if answer is not None and not answer.done():
                    answer.set_result(word)
            case "send" if rest[0] in self._streams:
                stream = self._streams[rest[0]]
                stream.writing = asyncio.create_task(self._write(rest[0], stream.context, rest[1]))
            case "more" if rest[0] in self._streams:
                self._streams[rest[0]].room.release()
            case _:
                self._set_up(kind, *rest)

    def _set_up(self, kind: str, *rest: Any) -> None:  # noqa: ANN401 - as the kind has it
        match kind:
            case "serve":
                self._serve(*rest)
            case "listen":
                self._do(self._listen(*rest))
            case "start":
                self._do(self._start())
            case "stop":
                self._do(self._stop(*rest))

    def _serve(self, options: list[tuple[str, int]], services: list[Service]) -> None:
        self._server = InProcessServer(options)
        for service, methods, known in services:
            handlers = {name: self._handler(f"/{service}/{name}", kind) for name, kind in methods.items()}
            self._server.register(service, handlers, known)

    async def _listen(
        self, address: str, credentials: tuple[bytes, bytes, bytes | None] | None, mode: int | None
    ) -> None:
        try:
            port = await self._server.listen(
                Address(address, credentials and Credentials(*credentials), mode)
            )
        except AddressError as error:
            self.wire.say(("listening", 0, str(error)))
        else:
            self.wire.say(("listening", port, ""))

    async def _start(self) -> None:
        await self._server.start()
        self.wire.say(("started",))

    async def _stop(self, seconds: float) -> None:
        await self._server.stop(seconds)
        self.wire.close()

    def _handler(self, path: str, streams: tuple[bool, bool]) -> MethodHandler:
        """streams: whether there are many requests, and many responses."""
        match streams:
            case False, False:
                return grpc.unary_unary_rpc_method_handler(self._unary(path))
            case False, True:
                return grpc.unary_stream_rpc_method_handler(self._streamed(path))
            case True, False:
                return grpc.stream_unary_rpc_method_handler(self._streamed(path))
            case _:
                return grpc.stream_stream_rpc_method_handler(self._streamed(path))

    def _unary(self, path: str) -> Callable[[bytes, Context], Coroutine[Any, Any, bytes | None]]:
        async def serve(request: bytes, context: Context) -> bytes | None:
            """One request, one response. Raises AbortError."""
            return await _ended(context, await self._answer(next(self._numbers), path, context, request))

        return serve

    def _streamed(self, path: str) -> Callable[[Any, Context], Coroutine[Any, Any, bytes | None]]:
        async def serve(request: bytes | AsyncIterator[bytes], context: Context) -> bytes | None:
            """Many requests, many responses, or both; None once all have been written. Raises AbortError."""
            number, stream = next(self._numbers), _Stream(context)
            self._streams[number] = stream
            whole, reading = None, None
            if isinstance(request, bytes):
                whole = request
            else:
                reading = asyncio.create_task(self._read(number, request, stream.room))
            try:
                answer = await self._answer(number, path, context, whole)
            finally:
                del self._streams[number]
                # A response that is still being written is one that its caller has not taken for too long.
                for task in (reading, stream.writing):
                    if task is not None:
                        task.cancel()
            return await _ended(context, answer)

        return serve

    async def _answer(self, number: int, path: str, context: Context, request: bytes | None) -> Word:
        """Say that there is a call, and return what is said of its end."""
        if request is not None:
            request = await self._rest_of(number, request)
        answer: asyncio.Future[Word] = self._loop.create_future()
        self._answers[number] = answer
        metadata = tuple((key, value) for key, value in context.invocation_metadata() or ())
        remaining: float | None = context.time_remaining()
        deadline = None if remaining is None else time.monotonic() + remaining
        self.wire.say(("call", number, path, metadata, deadline, request))
        try:
            return await answer
        except asyncio.CancelledError:
            self.wire.say(("left", number))
            raise
        finally:
            del self._answers[number]

    async def _rest_of(self, number: int, request: bytes) -> bytes:
        """What is left of a request when all but its last part has been said: beside a large one others have their turn."""
        await self.wire.room()
        said = 0
        try:
            while len(request) - said > PART_BYTES:
                self.wire.say(("part", number, request[said : said + PART_BYTES]))
                said += PART_BYTES
                await self.wire.room()
        except asyncio.CancelledError:
            self.wire.say(("left", number))
            raise
        return request[said:] if said else request

    async def _read(self, number: int, requests: AsyncIterator[bytes], room: asyncio.Semaphore) -> None:
        try:
            async for request in requests:
                await room.acquire()
                self.wire.say(("request", number, await self._rest_of(number, request)))
        finally:
            self.wire.say(("requested", number))

    async def _write(self, number: int, context: Context, response: bytes) -> None:
        # Who has left is written to in vain, and gRPC ends the call.
        with suppress(aio.BaseError):
            try:
                await context.write(response)
            finally:
                self.wire.say(("sent", number))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        """Nobody waits for a receiver that cannot do as it is told: it ends."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _LOG.error("the receiver is at fault", exc_info=task.exception())
            self.over.set()


async def _ended(context: Context, answer: Word) -> bytes | None:
    """The response, None if all have been written. Raises AbortError if the service aborts the call."""
    kind, _, *rest = answer
    if kind == "abort":
        code, message, trailing = rest
        await context.abort(_CODES[code], message, trailing)
    response: bytes | None = rest[0]
    return response


async def _receive(descriptor: int) -> None:
    receiver = Receiver()
    line = socket.socket(fileno=descriptor)
    await asyncio.get_running_loop().create_unix_connection(lambda: receiver.wire, sock=line)
    await receiver.over.wait()


def main(descriptor: int) -> None:
    """Serve the socket that was inherited under this number until its other end is gone. Signals are the service's business."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_receive(descriptor))
        # Without a service there is nobody to say goodbye for.
        os._exit(0)
