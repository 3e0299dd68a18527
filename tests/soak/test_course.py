"""What a long run is judged by."""

from pathlib import Path

import pytest

from tests.soak.churn import CALLS_A_SECOND, PODS_A_SECOND, arriving, leaving
from tests.soak.course import Sample, draw, findings, percentile


def course(*, growth: float = 0.0) -> list[Sample]:
    return [Sample(second, 100 + growth * second, 50, second / 2) for second in range(600)]


def test_what_stays_as_it_is_holds() -> None:
    assert all(each.holds for each in findings(course(), [0.01] * 100))


def test_memory_that_grows_slowly_does_not() -> None:
    memory, *others = findings(course(growth=0.1), [0.01] * 100)

    assert not memory.holds
    assert all(each.holds for each in others)


def test_growth_in_the_first_minute_does_not_count() -> None:
    start = [Sample(second, 10, 50, second / 2) for second in range(60)]

    assert all(each.holds for each in findings([*start, *course()[60:]], [0.01] * 100))


def test_one_slow_call_in_a_hundred_is_too_many_and_one_in_a_thousand_is_not() -> None:
    holds = [findings(course(), [1.0, *[0.01] * others])[2].holds for others in (98, 999)]

    assert holds == [False, True]


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 3), (0.99, 4)])
def test_percentile(share: float, value: int) -> None:
    assert percentile([4, 2, 3, 1], share) == value


def test_a_call_takes_away_all_that_another_gave() -> None:
    request = leaving("c", arriving(7))

    pods = [each.ref.name for each in request.refs if each.ref.kind == "Pod"]
    assert len(set(pods)) == PODS_A_SECOND // CALLS_A_SECOND
    assert [each.ref.name for each in request.refs if each.ref.kind == "PodGroup"] == ["gang-7"]


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(course(), tmp_path / "soak.png")

    assert (tmp_path / "soak.png").stat().st_size > 0
