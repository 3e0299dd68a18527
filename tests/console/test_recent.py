"""Viewers who ask at the same time share one answer."""

import asyncio

import pytest

from muster.console.recent import MOST_KEPT, Recent


class Asked:
    """Counts how often it was asked; answers once `go_on` is set."""

    def __init__(self) -> None:
        self.times = 0
        self.go_on = asyncio.Event()
        self.now = 0.0

    async def __call__(self) -> int:
        self.times += 1
        number = self.times
        await self.go_on.wait()
        return number


async def test_those_who_ask_at_once_share_an_answer() -> None:
    asked = Asked()
    recent = Recent[int](lambda: asked.now, 1.0)

    both = asyncio.gather(recent.get("key", asked), recent.get("key", asked), recent.get("other", asked))
    asked.go_on.set()

    assert list(await both) == [1, 1, 2]


async def test_an_old_answer_is_asked_again() -> None:
    asked = Asked()
    asked.go_on.set()
    recent = Recent[int](lambda: asked.now, 1.0)

    first = await recent.get("key", asked)
    asked.now = 1.5

    assert (first, await recent.get("key", asked)) == (1, 2)


async def test_one_who_leaves_does_not_take_the_answer_along() -> None:
    asked = Asked()
    recent = Recent[int](lambda: asked.now, 1.0)
    leaving = asyncio.create_task(recent.get("key", asked))
    staying = asyncio.create_task(recent.get("key", asked))
    await asyncio.sleep(0)

    leaving.cancel()
    asked.go_on.set()

    assert await staying == 1


async def test_a_failure_is_nobody_elses() -> None:
    asked = Asked()
    asked.go_on.set()
    recent = Recent[int](lambda: asked.now, 1.0)

    async def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await recent.get("key", fail)

    assert await recent.get("key", asked) == 1


async def test_only_so_many_answers_are_kept() -> None:
    asked = Asked()
    asked.go_on.set()
    recent = Recent[int](lambda: asked.now, 1.0)

    for key in range(MOST_KEPT + 1):
        await recent.get(key, asked)
    await recent.get(MOST_KEPT, asked)

    assert asked.times == MOST_KEPT + 2
