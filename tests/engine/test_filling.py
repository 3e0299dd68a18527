"""For whom a transaction waits before it is full."""

from __future__ import annotations

import asyncio

from muster.engine.filling import MOST_EXPECTED, MOST_PAUSE, PATIENCE_SECONDS, Filling
from tests.engine.counting_store import SOON


def after(callers: int, next_callers: int = 0) -> Filling:
    """One whose last transaction answered so many, while others came for the next."""
    filling = Filling()
    filling.begin()
    filling.transaction_ended(callers, next_callers)
    return filling


async def waits(filling: Filling) -> bool:
    """Whether the next transaction is held for more than the one caller that it has; it then ends as the last one did."""
    filling.caller_came()
    is_held = filling.expects_others
    assert not await filling.another_caller(1)
    filling.end()
    filling.begin()
    filling.transaction_ended(2, 0)
    return is_held


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


async def test_callers_who_never_come_are_waited_for_ever_more_seldom() -> None:
    filling = after(2)

    waited = [await waits(filling) for _ in range(4 * MOST_PAUSE)]

    assert [number for number, each in enumerate(waited) if each] == [0, 1, 3, 7, 15, 31, 47, 63]


async def test_who_turns_up_is_waited_for_each_time() -> None:
    filling = after(2)
    assert await waits(filling)
    while not filling.expects_others:
        filling.transaction_ended(2, 0)

    assert not await filling.another_caller(2)

    assert await waits(filling)
    filling.transaction_ended(2, 0)
    assert filling.expects_others


async def test_a_transaction_that_nobody_waited_for_says_nothing_of_the_next() -> None:
    filling = after(2)
    filling.transaction_ended(callers=0, next_callers=0)

    assert filling.expects_others


async def test_cycles_wait_until_it_is_full() -> None:
    filling = after(2)
    filling.caller_came()
    waiting = asyncio.create_task(filling.until_full())
    await asyncio.sleep(PATIENCE_SECONDS)
    assert not waiting.done()

    filling.end()
    filling.caller_came()

    async with asyncio.timeout(SOON):
        await waiting


async def test_cycles_do_not_wait_for_the_one_behind_it() -> None:
    filling = after(2)
    filling.caller_came()
    waiting = asyncio.create_task(filling.until_full())
    await asyncio.sleep(0)

    filling.end()
    filling.begin()
    filling.caller_came()

    async with asyncio.timeout(SOON):
        await waiting
