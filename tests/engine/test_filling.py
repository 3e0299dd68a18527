"""For whom a transaction waits before it is full."""

from __future__ import annotations

import asyncio

from muster.engine.filling import MOST_EXPECTED, MOST_PATIENCE_SECONDS, Filling
from tests.engine.counting_store import SOON


def after(callers: int, next_callers: int = 0, seconds: float = SOON) -> Filling:
    """One whose last transaction took so long, and answered so many, while others came for the next."""
    filling = Filling()
    filling.begin()
    filling.transaction_ended(seconds, callers, next_callers)
    return filling


async def test_nobody_is_waited_for_at_first() -> None:
    filling = Filling()
    filling.caller_came()

    assert not await filling.another_caller(1)
    await filling.until_full()


async def test_as_many_are_waited_for_as_were_there_last() -> None:
    filling = after(2, next_callers=1)

    async def come() -> None:
        filling.caller_came()

    came = asyncio.create_task(come())
    assert await filling.another_caller(2)
    assert not await filling.another_caller(3)
    await came


async def test_many_wait_for_no_more() -> None:
    assert not await after(10 * MOST_EXPECTED).another_caller(MOST_EXPECTED)


async def test_who_does_not_come_is_waited_for_a_little() -> None:
    filling = after(2)

    async with asyncio.timeout(SOON):
        assert not await filling.another_caller(1)


async def test_a_transaction_that_took_no_time_is_not_waited_with() -> None:
    assert not await after(2, seconds=0).another_caller(1)


async def test_a_transaction_that_nobody_waited_for_says_nothing_of_the_next() -> None:
    filling = after(2)
    filling.transaction_ended(0, callers=0, next_callers=0)

    assert filling.expects_others


async def test_cycles_wait_until_it_is_full() -> None:
    filling = after(2)
    filling.caller_came()
    waiting = asyncio.create_task(filling.until_full())
    await asyncio.sleep(MOST_PATIENCE_SECONDS)
    assert not waiting.done()

    filling.end()
    filling.caller_came()

    async with asyncio.timeout(SOON):
        await waiting
