"""What a run shows: verdicts and ratios that read the same for times and rates, JSON as documented, curves that are drawn."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.catalogue import ROWS
from tests.bench.place import Place, opened_place
from tests.bench.report import draw_growth, write_json
from tests.bench.row import Curve, Figure, Measured, Row
from tests.bench.run import attempted, chosen, main
from tests.bench.stopwatch import exponent, percentile


def measuring(value: float, baseline: float | None = None) -> Callable[[Place], Measured]:
    return lambda _: Measured(value, 0.5, baseline)


def figure(value: float, unit: str, target: float | None = 10, baseline: float | None = None) -> Figure:
    measure = measuring(value, baseline)
    row = Row("name", unit, measure, "a plain form", target, 100 if unit == "ms" else 1)
    return Figure(row, Measured(value, 0.5, baseline), 1.0)


@pytest.mark.parametrize(
    ("value", "unit", "verdict"),
    [
        (10, "ms", "met"),
        (11, "ms", "missed"),
        (101, "ms", "poor"),
        (10, "pods/s", "met"),
        (9, "pods/s", "missed"),
        (0.5, "pods/s", "poor"),
    ],
)
def test_times_are_better_small_and_rates_large(value: float, unit: str, verdict: str) -> None:
    assert figure(value, unit).verdict == verdict


@pytest.mark.parametrize(("value", "unit", "baseline"), [(2, "ms", 20), (20, "pods/s", 2)])
def test_the_ratio_says_how_many_times_better_than_the_plain_form(
    value: float, unit: str, baseline: float
) -> None:
    assert figure(value, unit, baseline=baseline).baseline_ratio == 10


def test_the_json_is_a_list_of_records_with_the_documented_fields(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"

    write_json([figure(2, "ms", baseline=20)], path)

    assert json.loads(path.read_text(encoding="utf-8")) == [
        {"name": "name", "value": 2, "unit": "ms", "target": 10, "baseline_ratio": 10, "cpu_seconds": 0.5}
    ]


def test_the_growth_of_times_as_the_square_of_nodes_is_two() -> None:
    assert exponent({10: 1.0, 100: 100.0, 1_000: 10_000.0}) == pytest.approx(2)


def test_curves_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "growth.png"

    draw_growth({"one": Curve({1_000: 1.0, 5_000: 4.0})}, path)

    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_99th_percentile_is_exceeded_by_one_in_a_hundred() -> None:
    assert percentile([float(number) for number in range(1, 101)], 0.99) == 99


def test_names_of_rows_are_unique() -> None:
    names = [row.name for row in ROWS]

    assert len(set(names)) == len(names)


def test_rows_are_chosen_by_a_part_of_their_name_or_a_pattern() -> None:
    rows = [Row(name, "ms", measuring(1), "nothing") for name in ("store/add", "store/bind", "watch/all")]

    assert [row.name for row in chosen("store", rows)] == ["store/add", "store/bind"]
    assert [row.name for row in chosen("*/a*", rows)] == ["store/add", "watch/all"]


def test_a_row_that_breaks_is_told_and_leaves_the_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: Place) -> Measured:
        raise RuntimeError("no such luck")

    with opened_place() as place:
        assert attempted(Row("broken", "ms", broken, "nothing"), place) is None

    assert "no such luck" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--out", "--picture"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(option: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "placement/hopeless-gang", option, "no/such/folder/file"])

    assert ended.value.code == 2


def test_no_row_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing-like-this"]) == 2
    assert "no row matches" in capsys.readouterr().out


def test_a_list_that_nobody_reads_to_its_end_ends_quietly() -> None:
    command = f"{sys.executable} -m tests.bench.run --list | true"

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)

    assert done.stderr == ""
