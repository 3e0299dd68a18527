"""Calls that a receiver took, seen from the service's end: what runs, and what is said of it."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from muster.rpc.receiver.relayed_calls import Method, RelayedCall, RelayedCalls
from muster.rpc.receiver.wire import Word

METADATA = (("key", "value"),)


def relayed(behaviour: Any) -> tuple[RelayedCalls, list[Word]]:
    """Calls of one method, `/m`, on plain bytes, and what is said of them."""
    said: list[Word] = []
    return RelayedCalls({"/m": Method(bytes, bytes, behaviour)}, said.append), said


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def test_a_call_is_answered_with_what_its_method_returns() -> None:
    async def behaviour(request: bytes, call: RelayedCall) -> bytes:
        assert call.invocation_metadata() == METADATA
        assert 2.0 < (call.time_remaining() or 0.0) <= 3.0
        return request + b"!"

    calls, said = relayed(behaviour)
    calls.hear(("call", 7, "/m", METADATA, time.monotonic() + 3.0, b"hello"))
    await turns()

    assert said == [("answer", 7, b"hello!")]


async def test_a_method_that_breaks_ends_its_call_in_the_words_of_grpc() -> None:
    async def behaviour(_request: bytes, _call: RelayedCall) -> bytes:
        raise ValueError("odd")

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()

    assert said == [("abort", 1, 2, "Unexpected <class 'ValueError'>: odd", ())]


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


async def test_a_response_of_a_stream_waits_until_the_one_before_was_sent() -> None:
    async def behaviour(_request: bytes, call: RelayedCall) -> None:
        for response in (b"one", b"two"):
            await call.write(response)

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, b""))
    await turns()
    before = list(said)
    for _ in range(2):
        calls.hear(("sent", 1))
        await turns()

    assert before == [("send", 1, b"one")]
    assert said == [*before, ("send", 1, b"two"), ("answer", 1, None)]


async def test_a_large_request_comes_in_parts_between_which_others_are_served() -> None:
    async def behaviour(request: bytes, _call: RelayedCall) -> bytes:
        return request

    calls, said = relayed(behaviour)
    calls.hear(("part", 1, b"ab"))
    calls.hear(("call", 2, "/m", METADATA, None, b"small"))
    calls.hear(("part", 1, b"cd"))
    calls.hear(("call", 1, "/m", METADATA, None, b"e"))
    calls.hear(("part", 3, b"never finished"))
    calls.hear(("left", 3))
    calls.hear(("call", 3, "/m", METADATA, None, b"other"))
    await turns()

    assert said == [("answer", 2, b"small"), ("answer", 1, b"abcde"), ("answer", 3, b"other")]


async def test_a_call_that_comes_and_leaves_at_once_leaves_nothing_behind() -> None:
    async def behaviour(request: bytes, _call: RelayedCall) -> bytes:
        return request

    calls, said = relayed(behaviour)
    for number in range(10):
        calls.hear(("call", number, "/m", METADATA, None, b""))
        calls.hear(("left", number))
    await turns()

    assert (said, calls.count) == ([], 0)


async def test_requests_that_come_with_the_call_are_all_read() -> None:
    async def behaviour(requests: AsyncIterator[bytes], _call: RelayedCall) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()

    calls, said = relayed(behaviour)
    calls.hear(("call", 1, "/m", METADATA, None, None))
    for request in (b"a", b"b"):
        calls.hear(("request", 1, request))
    calls.hear(("requested", 1))
    for _ in range(2):
        await turns()
        calls.hear(("sent", 1))
    await turns()

    assert said == [("more", 1), ("send", 1, b"A"), ("more", 1), ("send", 1, b"B"), ("answer", 1, None)]
