"""Fakes keep the promises that the real ones make."""

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.ids import FakeIds


def test_both_faces_of_the_clock_move_together() -> None:
    clock = FakeClock()
    start_us = clock.now_us()

    clock.advance(1.5)

    assert clock.now_us() - start_us == 1_500_000
    assert clock.monotonic() == 1.5


def test_a_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        FakeClock().advance(-1)


def test_no_id_comes_twice() -> None:
    ids = FakeIds()

    assert len({ids.uid() for _ in range(100)}) == 100
