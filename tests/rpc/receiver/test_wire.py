"""The line between receiver and service: what is said is heard, in order, however the bytes come."""

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.rpc.receiver.wire import MOST_UNSENT_BYTES, Wire, Word

VALUES = (
    st.none() | st.integers() | st.binary(max_size=40) | st.text(max_size=10) | st.floats(allow_nan=False)
)
WORDS = st.lists(st.lists(VALUES, max_size=4).map(tuple), max_size=8)


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing is held back here."""


def written(turns: list[list[Word]]) -> bytes:
    """The bytes of what is said in turns of a loop."""

    async def say() -> bytes:
        transport: Any = Transport()
        wire = Wire(lambda _: None, lambda: None)
        wire.connection_made(transport)
        for words in turns:
            for word in words:
                wire.say(word)
            await asyncio.sleep(0)
        return bytes(transport.written)

    return asyncio.run(say())


@given(st.lists(WORDS, max_size=4), st.data())
def test_what_is_said_is_heard_in_order_however_its_bytes_are_cut(
    turns: list[list[Word]], data: st.DataObject
) -> None:
    said = written(turns)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=6)))
    heard: list[Word] = []

    async def hear() -> None:
        wire = Wire(heard.append, lambda: None)
        for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
            wire.data_received(said[start:end])

    asyncio.run(hear())

    assert heard == [word for words in turns for word in words]


def test_what_is_said_in_one_turn_of_the_loop_is_one_batch() -> None:
    together, apart = written([[("a",), ("b",)]]), written([[("a",)], [("b",)]])

    assert len(together) < len(apart)


@pytest.fixture
async def pair() -> tuple[Wire, asyncio.Event, list[Word], Wire]:
    """One end, whether it has ended, and what the other end heard, and that end."""
    ended, heard = asyncio.Event(), list[Word]()
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    one, other = Wire(lambda _: None, ended.set), Wire(heard.append, lambda: None)
    await loop.create_unix_connection(lambda: one, sock=ours)
    await loop.create_unix_connection(lambda: other, sock=theirs)
    return one, ended, heard, other


async def test_there_is_no_room_until_the_other_end_has_taken_what_was_said(
    pair: tuple[Wire, asyncio.Event, list[Word], Wire],
) -> None:
    one, _, heard, other = pair
    await one.room()
    one.say(("much", b"x" * (4 * MOST_UNSENT_BYTES)))
    await asyncio.sleep(0)
    has_room = asyncio.ensure_future(one.room())
    had_room_at_once = (await asyncio.wait([has_room], timeout=0))[0]
    await has_room

    assert not had_room_at_once
    assert [word[0] for word in heard] in ([], ["much"])
    one.close()
    other.close()


async def test_closing_sends_what_was_said_and_the_other_end_hears_of_it(
    pair: tuple[Wire, asyncio.Event, list[Word], Wire],
) -> None:
    one, ended, heard, other = pair

    one.say(("last",))
    one.close()
    await ended.wait()
    one.say(("too late",))
    await asyncio.sleep(0.01)

    assert heard == [("last",)]
    other.close()
