"""The pace of the garbage collector while large calls are in work."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from muster.engine import collector_rest
from muster.engine.collector_rest import LEAST_OBJECTS, MOST_YOUNG, CollectorRest

PACE = (2_000, 2, 2**31 - 1)


@pytest.fixture(autouse=True)
def pace() -> Iterator[None]:
    """Python's own pace is put back."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*PACE)
    yield
    gc.set_threshold(*thresholds)


async def test_a_large_call_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_rest, "REST_SECONDS", 0.05)

    CollectorRest().begin(LEAST_OBJECTS)
    during = gc.get_threshold()

    assert during == (MOST_YOUNG, *PACE[1:])
    await asyncio.sleep(0.2)
    assert gc.get_threshold() == PACE


async def test_a_small_call_changes_nothing() -> None:
    CollectorRest().begin(LEAST_OBJECTS - 1)

    assert gc.get_threshold() == PACE


async def test_several_large_calls_end_with_the_pace_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = CollectorRest()

    for seconds in (60.0, 60.0, 0.05):
        monkeypatch.setattr(collector_rest, "REST_SECONDS", seconds)
        rest.begin(20_000)

    assert gc.get_threshold() == (MOST_YOUNG, *PACE[1:])
    await asyncio.sleep(0.2)
    assert gc.get_threshold() == PACE


async def test_who_looks_more_rarely_than_that_keeps_the_pace() -> None:
    rest, rare = CollectorRest(), (2 * MOST_YOUNG, *PACE[1:])
    gc.set_threshold(*rare)

    rest.begin(LEAST_OBJECTS)
    during = gc.get_threshold()
    rest.end()

    assert during == gc.get_threshold() == rare
