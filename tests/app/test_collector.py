"""When garbage that holds itself is looked for."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from muster.app.collector import Collector

SOON = 10


class Held:
    """An object that holds itself, so that no reference count frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def pace() -> Iterator[None]:
    """Python's own pace is put back."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    made = Collector(look_seconds=0.01, idle_seconds=0.05, least_elders=1)
    made.begin()
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()


def old_garbage() -> asyncio.Event:
    """What only a look through all finds; the event says that it went."""
    held, gone = Held(), asyncio.Event()
    weakref.finalize(held, gone.set)
    gc.collect(1)
    gc.collect(1)
    return gone


async def test_old_garbage_goes_in_a_moment_in_which_nothing_else_is_to_be_done(collector: Collector) -> None:
    garbage = old_garbage()

    async with asyncio.timeout(SOON):
        await garbage.wait()


async def test_nobody_waits_for_a_look_through_all_while_there_is_work(collector: Collector) -> None:
    garbage = old_garbage()

    looks = gc.get_stats()[2]["collections"]
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        sum(range(10_000))
        await asyncio.sleep(0)

    assert not garbage.is_set()
    assert gc.get_stats()[2]["collections"] == looks


async def test_without_an_idle_moment_it_is_done_in_the_end(collector: Collector) -> None:
    collector.longest_seconds = 0.1
    garbage = old_garbage()

    until = time.monotonic() + SOON
    while not garbage.is_set() and time.monotonic() < until:
        sum(range(10_000))
        await asyncio.sleep(0)

    assert garbage.is_set()


def test_what_starts_without_a_collector_has_one_once_it_serves() -> None:
    gc.disable()
    try:
        Collector().begin()
        assert gc.isenabled()
    finally:
        gc.enable()
