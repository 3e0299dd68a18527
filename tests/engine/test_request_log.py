"""Answers kept in memory: those in work always, of the others the newest, by weight."""

from __future__ import annotations

import asyncio

import pytest

from muster.engine.api import AppliedObject, ApplyAnswer, RequestIdentity
from muster.engine.ports import RequestRecord
from muster.engine.request_log import RequestLog
from muster.validation.admission import Outcome


def identity(number: int) -> RequestIdentity:
    return RequestIdentity("Apply", f"request-{number}", b"digest")


def answer(objects: int) -> ApplyAnswer:
    return ApplyAnswer(1, (AppliedObject(Outcome.CREATED, "uid", 1),) * objects)


async def not_stored(*_: str) -> RequestRecord | None:
    return None


async def answered(log: RequestLog, number: int, objects: int) -> ApplyAnswer:
    async def work() -> ApplyAnswer:
        return answer(objects)

    return await log.once("c", identity(number), lambda _: b"answer", work)


async def is_known(log: RequestLog, number: int) -> bool:
    return await log.find("c", identity(number)) is not None


@pytest.mark.parametrize("objects", [1, 1_000])
async def test_the_oldest_answers_are_given_up_the_sooner_the_more_they_tell(
    objects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engine.request_log.MOST_WEIGHT", 10_000)
    log = RequestLog(not_stored)

    for number in range(2_000):
        await answered(log, number, objects)

    known = [number for number in range(2_000) if await is_known(log, number)]
    assert len(known) == 10_000 // (8 + objects)
    assert known[-1] == 1_999


async def test_a_call_in_work_is_known_however_many_come_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.engine.request_log.MOST_WEIGHT", 100)
    log, finish, runs = RequestLog(not_stored), asyncio.Event(), list[int]()

    async def work() -> ApplyAnswer:
        runs.append(1)
        await finish.wait()
        return answer(1)

    async def call() -> ApplyAnswer:
        return await log.once("c", identity(-1), lambda _: b"answer", work)

    first = asyncio.create_task(call())
    await asyncio.sleep(0)
    for number in range(100):
        await answered(log, number, 1)
    second = asyncio.create_task(call())
    await asyncio.sleep(0)
    finish.set()

    assert await first is await second
    assert runs == [1]


async def test_a_call_that_failed_is_not_kept() -> None:
    log = RequestLog(not_stored)

    async def work() -> ApplyAnswer:
        raise ValueError("not this time")

    with pytest.raises(ValueError, match="not this time"):
        await log.once("c", identity(1), lambda _: b"answer", work)

    assert not await is_known(log, 1)
    assert await answered(log, 1, 1) == answer(1)
