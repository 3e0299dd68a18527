"""The service's end of calls that a receiver took: runs what is registered for them, and says what came of it.

Heard: ("call", number, path, metadata, deadline or None, request or None if many come), ("request", number, request),
("requested", number) after the last, ("sent", number), ("left", number); before a request that is large all of its parts but
the last, each as ("part", number, bytes). Said: ("answer", number, response or None),
("abort", number, code, message, trailing metadata), ("send", number, response), ("more", number).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import grpc
from grpc import aio

from muster.rpc.call_server import MethodHandler
from muster.rpc.receiver.wire import Word

Say = Callable[[Word], None]
Metadata = tuple[tuple[str, str | bytes], ...]

_LOG = logging.getLogger(__name__)


class RelayedCall:
    """Stands in for gRPC's context of one call, as far as servicers use it."""

    __slots__ = ("_deadline", "_metadata", "_number", "_requests", "_say", "_sent", "_serialize")

    def __init__(
        self,
        say: Say,
        number: int,
        metadata: Metadata,
        deadline: float | None,
        serialize: Callable[[Any], bytes],
    ) -> None:
        self._say = say
        self._number = number
        self._metadata = metadata
        self._deadline = deadline
        self._serialize = serialize
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._sent: asyncio.Future[None] | None = None

    def invocation_metadata(self) -> Metadata:
        """What the caller sent beside the request."""
        return self._metadata

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Iterable[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        """End the call with this status. Raises AbortError."""
        trailing = tuple((key, value) for key, value in trailing_metadata)
        self._say(("abort", self._number, code.value[0], details, trailing))
        raise aio.AbortError

    async def write(self, message: Any) -> None:  # noqa: ANN401 - a message, or one that is encoded
        """Send a message of a stream, and return once it has found room in the caller's window."""
        sent = self._sent = asyncio.get_running_loop().create_future()
        self._say(("send", self._number, self._serialize(message)))
        await sent

    def was_sent(self) -> None:
        """The message has found room in the caller's window, or has none to find."""
        if self._sent is not None and not self._sent.done():
            self._sent.set_result(None)

    def comes(self, request: bytes | None) -> None:
        """A request of a stream; None after the last one."""
        self._requests.put_nowait(request)

    async def requests(self, deserialize: Callable[[bytes], Any]) -> AsyncIterator[Any]:
        """The requests of a stream."""
        while (request := await self._requests.get()) is not None:
            self._say(("more", self._number))
            yield deserialize(request)


class Method(NamedTuple):
    """How a method is read, run and answered; `behaviour` gives an awaitable, or its responses one by one."""

    deserialize: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    behaviour: Callable[[Any, RelayedCall], Any]


def method_of(handler: MethodHandler) -> Method:
    """What gRPC calls a handler, in one form for all four kinds."""
    behaviours = handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream
    behaviour = next(each for each in behaviours if each is not None)
    parts: Any = handler.request_deserializer, handler.response_serializer, behaviour
    return Method(*parts)


class RelayedCalls:
    """All calls of one receiver. `methods` by their paths."""

    def __init__(self, methods: Mapping[str, Method], say: Say) -> None:
        self._methods = methods
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, tuple[asyncio.Task[None], RelayedCall]] = {}
        self._parts: dict[int, list[bytes]] = {}

    @property
    def count(self) -> int:
        """Of those that are in work."""
        return len(self._calls)

    def hear(self, word: Word) -> None:
        """Take what is said about a call; that it has ended may not be known yet to who said it."""
        kind, number, *rest = word
        if kind == "call":
            self._begin(number, *rest)
        elif kind == "part":
            self._parts.setdefault(number, []).append(*rest)
        elif number in self._calls:
            task, call = self._calls[number]
            match kind:
                case "sent":
                    call.was_sent()
                case "request":
                    call.comes(self._whole(number, *rest))
                case "requested":
                    call.comes(None)
                case "left":
                    task.cancel()
        if kind == "left":
            self._parts.pop(number, None)

    def _whole(self, number: int, last: bytes) -> bytes:
        """The request of which this is the last part, mostly the only one."""
        parts = self._parts.pop(number, None)
        return last if parts is None else b"".join((*parts, last))

    def _forget(self, number: int) -> None:
        del self._calls[number]
        self._parts.pop(number, None)

    def leave_all(self) -> None:
        """Cancel all: nobody waits for them any more."""
        for task, _ in self._calls.values():
            task.cancel()

    def _begin(
        self, number: int, path: str, metadata: Metadata, deadline: float | None, request: bytes | None
    ) -> None:
        method = self._methods[path]
        call = RelayedCall(self._say, number, metadata, deadline, method.serialize)
        if request is not None:
            request = self._whole(number, request)
        task = self._loop.create_task(self._run(number, method, call, request))
        self._calls[number] = task, call
        # Not by the task itself: who leaves at once has it cancelled before it begins.
        task.add_done_callback(lambda _: self._forget(number))

    async def _run(self, number: int, method: Method, call: RelayedCall, request: bytes | None) -> None:
        try:
            answer = await _served(method, call, request)
            self._say(("answer", number, None if answer is None else method.serialize(answer)))
        except (aio.AbortError, asyncio.CancelledError):
            # Whoever aborts has said so, and whoever cancels waits for nothing.
            pass
        except Exception as error:  # noqa: BLE001 - with the words and the code of gRPC's own server
            _LOG.exception("a call broke")
            why = f"Unexpected {type(error)}: {error}"
            self._say(("abort", number, grpc.StatusCode.UNKNOWN.value[0], why, ()))


async def _served(method: Method, call: RelayedCall, request: bytes | None) -> Any:  # noqa: ANN401
    """What the method answers, None if it has written its answers."""
    given = call.requests(method.deserialize) if request is None else method.deserialize(request)
    result = method.behaviour(given, call)
    if not isinstance(result, AsyncIterator):
        return await result
    async for response in result:
        await call.write(response)
    return None
