"""Calls that a receiver took, seen from the service's end: what runs, and what is said of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from muster.rpc.receiver.relayed_calls import RESPONSES_AHEAD, Method, RelayedCall, RelayedCalls
from muster.rpc.receiver.wire import Word

METADATA = (("key", "value"),)


def relayed(behaviour: Any) -> tuple[RelayedCalls, list[Word]]:
    """Calls of one method, `/m`, on plain bytes, and what is said of them."""
    said: list[Word] = []
    return RelayedCalls({"/m": Method(bytes, bytes, behaviour)}, said.append), said


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_call_is_answered_with_what_its_method_returns() -> None:
    async def behaviour(request: bytes, call: RelayedCall) -> bytes:
        assert (call.invocation_metadata(), call.time_remaining()) == (METADATA, 3.0)
        return request + b"!"

    calls, said = relayed(behaviour)
    calls.hear(("call", 7, "/m", METADATA, 3.0, b"hello"))
    await turns()

    assert said == [("answer", 7, b"hello!")]


async def test_a_method_that_breaks_tells_its_caller_no_more_than_that() -> None:
    async def behaviour(_request: bytes, _call: RelayedCall) -> bytes:
        raise ValueError("secret")

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()

    assert said == [("abort", 1, grpc.StatusCode.UNKNOWN.value[0], "", ())]


async def test_an_abort_is_the_last_word_of_its_call() -> None:
    async def behaviour(_request: bytes, call: RelayedCall) -> bytes:
        await call.abort(grpc.StatusCode.NOT_FOUND, "no", [("detail-bin", b"\0")])

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()

    assert said == [("abort", 1, 5, "no", (("detail-bin", b"\0"),))]


async def test_a_call_that_its_caller_left_is_cancelled_and_nothing_is_said_of_it() -> None:
    cancelled = asyncio.Event()

    async def behaviour(_request: bytes, _call: RelayedCall) -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return b""

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()
    calls.hear(("left", 1))
    calls.hear(("left", 2))
    await turns()

    assert cancelled.is_set()
    assert said == []


async def test_a_stream_is_only_so_far_ahead_of_its_caller() -> None:
    async def behaviour(_request: bytes, call: RelayedCall) -> None:
        for number in range(RESPONSES_AHEAD + 2):
            await call.write(str(number).encode())

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()
    ahead = len(said)
    for _ in range(2):
        calls.hear(("sent", 1))
    await turns()

    assert ahead == RESPONSES_AHEAD
    assert said[-1] == ("answer", 1, None)
    assert [word[2] for word in said[:-1]] == [b"%d" % number for number in range(RESPONSES_AHEAD + 2)]


async def test_requests_that_come_with_the_call_are_all_read() -> None:
    async def behaviour(requests: AsyncIterator[bytes], _call: RelayedCall) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, None))
    for request in (b"a", b"b"):
        calls.hear(("request", 1, request))
    calls.hear(("requested", 1))
    await turns()

    assert said == [("more", 1), ("send", 1, b"A"), ("more", 1), ("send", 1, b"B"), ("answer", 1, None)]
