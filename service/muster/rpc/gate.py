"""What happens around every call of the API: admission, identity, limits, deadlines, errors, metrics, trace context.

Requests that cannot be read come here as such, so that they end as others that are refused do.

Methods are wrapped once, where they are registered: an interceptor would cost every call a task more. Health and
reflection are not registered here: they must answer while the server drains or is full. Servicers below raise
refusals and never abort.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio

from muster.engine.errors import InvalidArgumentError
from muster.rpc.admission import Admission
from muster.rpc.auth import Tokens
from muster.rpc.call_server import CallServer, MethodHandler
from muster.rpc.deadlines import Deadlines
from muster.rpc.errors import as_refusal, to_wire
from muster.rpc.limits import MAX_WAIT_SECONDS
from muster.rpc.telemetry_port import RpcTelemetry

Context = aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Awaitable[Any]]

KNOWN_BY_NAME = frozenset({"Apply", "Schedule"})
"""Methods that grpc.aio gets to know one by one: those that come by the hundred a second.

Calls of different ones are accepted beside each other, all others one after the other. Yet with every call of any
method the server waits anew for each method that it knows.
"""

WAITING = frozenset({"Apply", "Schedule"})
"""Methods whose requests may say for how long they wait."""


class _Unreadable(NamedTuple):
    """Stands in for a request whose bytes are no message of its method."""

    why: str


class Ungated:
    """Stands in for the server where generated code registers a service: passes its methods on as they are."""

    def __init__(self, server: CallServer) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Pass nothing on: these are the same methods once more, without their names."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, MethodHandler]
    ) -> None:
        """Register the methods of a service of few calls: none of them is known by name."""
        self._server.register(service_name, method_handlers)


class Gate:
    """Stands in for the server where generated code registers a service: passes its methods on, wrapped."""

    def __init__(
        self, server: CallServer, admission: Admission, telemetry: RpcTelemetry, tokens: Tokens | None
    ) -> None:
        self._server = server
        self._admission = admission
        self._telemetry = telemetry
        self._tokens = tokens
        self._deadlines = Deadlines()

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Pass nothing on: these are the same methods once more, without their names."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: Mapping[str, MethodHandler]
    ) -> None:
        """Register the methods of a service, wrapped."""
        wrapped = {method: self._wrap(method, handler) for method, handler in method_handlers.items()}
        self._server.register(service_name, wrapped, KNOWN_BY_NAME)

    def _wrap(self, method: str, handler: MethodHandler) -> MethodHandler:
        make, behaviour = _parts(handler)
        guarded = self._guarded(method, behaviour, streams=_streams(handler))
        wrapped: MethodHandler = make(
            guarded,
            request_deserializer=_deserializer(handler),
            response_serializer=_serializer(handler),
        )
        return wrapped

    def _guarded(self, method: str, behaviour: Behaviour, *, streams: bool) -> Behaviour:
        run = self._stream if streams else self._unary

        async def guarded(request: Message | AsyncIterator[Message], context: Context) -> Any:  # noqa: ANN401
            """Serve one call; whatever it raises becomes a status, and it is counted before its caller hears of it."""
            started = time.perf_counter()
            code = grpc.StatusCode.CANCELLED
            self._telemetry.rpc_started(method)
            try:
                with self._telemetry.caller_trace(context.invocation_metadata):
                    answer = await run(method, behaviour, request, context)
                code = grpc.StatusCode.OK
                return answer
            except aio.AbortError:
                raise
            except Exception as error:  # noqa: BLE001 - every error becomes a status
                refusal = as_refusal(error, method)
                wire = to_wire(refusal)
                code = wire.code
                self._telemetry.refused(method, refusal.reason)
            finally:
                self._telemetry.rpc_ended(method, code.name, time.perf_counter() - started)
            return await context.abort(*wire)

        return guarded

    async def _unary(self, method: str, behaviour: Behaviour, request: Any, context: Context) -> Any:  # noqa: ANN401
        with self._admission.unary_call():
            self._check_token(method, context)
            _refuse_unreadable(method, request)
            if context.time_remaining() is not None:
                return await behaviour(request, context)
            seconds = self._default_seconds(method, request)
            return await self._deadlines.within(seconds, method, behaviour(request, context))

    async def _stream(
        self, method: str, behaviour: Behaviour, request: Message | AsyncIterator[Message], context: Context
    ) -> None:
        with self._admission.call():
            self._check_token(method, context)
            if not isinstance(request, AsyncIterator):
                _refuse_unreadable(method, request)
                await behaviour(request, context)
            else:
                await behaviour(_readable(method, request), context)

    def _check_token(self, method: str, context: Context) -> None:
        if self._tokens is not None:
            self._tokens.check(method, context.invocation_metadata() or ())

    def _default_seconds(self, method: str, request: Any) -> float:  # noqa: ANN401
        limits = self._admission.limits
        if method in WAITING:
            # A wait out of range is refused at once, and its timer would stay for as long.
            return limits.deadline_seconds + min(max(0.0, float(request.wait.seconds)), MAX_WAIT_SECONDS)
        return limits.simulate_seconds if method == "Simulate" else limits.deadline_seconds


def _streams(handler: MethodHandler) -> bool:
    return bool(handler.request_streaming or handler.response_streaming)


def _deserializer(handler: MethodHandler) -> Callable[[bytes], Any]:
    """What makes messages of bytes. An error would end the call behind the gate's back, so it is passed on as a value."""
    read = cast("Callable[[bytes], Any]", handler.request_deserializer)

    def deserialized(encoded: bytes) -> Any:  # noqa: ANN401
        try:
            return read(encoded)
        except DecodeError as error:
            return _Unreadable(str(error))

    return deserialized


def _refuse_unreadable(method: str, request: Any) -> None:  # noqa: ANN401
    if type(request) is _Unreadable:
        raise InvalidArgumentError(
            "INVALID_REQUEST", f"what was sent is no request of {method}: {request.why}"
        )


async def _readable(method: str, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The requests of a stream up to one that cannot be read, which raises InvalidArgumentError."""
    async for request in requests:
        _refuse_unreadable(method, request)
        yield request


def _serializer(handler: MethodHandler) -> Callable[[Any], bytes]:
    """What a stream sends may be encoded already: many watchers are sent the same."""
    serialize = cast("Callable[[Any], bytes]", handler.response_serializer)
    if not _streams(handler):
        return serialize
    return lambda message: message if type(message) is bytes else serialize(message)


def _parts(handler: MethodHandler) -> tuple[Callable[..., Any], Any]:
    """The function that makes such a handler, and what the handler calls."""
    match handler.request_streaming, handler.response_streaming:
        case False, False:
            return grpc.unary_unary_rpc_method_handler, handler.unary_unary
        case False, True:
            return grpc.unary_stream_rpc_method_handler, handler.unary_stream
        case True, False:
            return grpc.stream_unary_rpc_method_handler, handler.stream_unary
        case _:
            return grpc.stream_stream_rpc_method_handler, handler.stream_stream
