"""Time limits of calls that share a timer."""

from __future__ import annotations

import asyncio

import pytest

from muster.rpc.deadlines import Deadlines
from muster.rpc.refusals import DeadlineError

LONG, SHORT = 30.0, 0.02


async def test_calls_with_one_limit_end_each_at_its_own_time() -> None:
    deadlines, never = Deadlines(), asyncio.Event()
    first = asyncio.ensure_future(deadlines.within(SHORT, "Get", never.wait()))
    await asyncio.wait([first], timeout=SHORT / 2)
    second = asyncio.ensure_future(deadlines.within(SHORT, "Get", never.wait()))

    done, pending = await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)

    assert (done, pending) == ({first}, {second})
    for call in (first, second):
        with pytest.raises(DeadlineError, match=r"Get took longer than 0.02 s"):
            await call


async def test_a_long_limit_does_not_hold_up_a_short_one() -> None:
    deadlines, never = Deadlines(), asyncio.Event()
    long = asyncio.ensure_future(deadlines.within(LONG, "Apply", never.wait()))

    with pytest.raises(DeadlineError):
        await deadlines.within(SHORT, "Get", never.wait())

    assert not long.done()
    never.set()
    assert await long


async def test_a_call_that_ended_in_time_is_left_alone() -> None:
    deadlines, never = Deadlines(), asyncio.Event()

    async def one_after_another() -> str:
        await deadlines.within(SHORT, "Get", asyncio.sleep(0))
        with pytest.raises(DeadlineError):
            await deadlines.within(SHORT, "Get", never.wait())
        return "went on"

    assert await one_after_another() == "went on"


async def test_a_caller_that_leaves_is_cancelled_and_not_told_of_a_limit() -> None:
    deadlines, begun = Deadlines(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(deadlines.within(LONG, "Get", work()))
    await begun.wait()

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_failure_of_the_work_stays_what_it_is() -> None:
    async def work() -> None:
        raise TimeoutError("the disk")

    with pytest.raises(TimeoutError, match="the disk"):
        await Deadlines().within(LONG, "Get", work())
