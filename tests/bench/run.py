"""Runs benchmarks: `python -m tests.bench.run [--out FILE] [--only PATTERN]`, which `make bench` calls.

Prints a table; with `--out` also writes the figures as JSON and, beside it, a picture of the growth curves. A row that
breaks is said at once and makes the exit status 1; the others still run. A missed target is a figure, not a failure.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.bench.catalogue import ROWS
from tests.bench.place import Place, opened_place
from tests.bench.report import console, draw_growth, shown_curve, shown_number, table, write_json
from tests.bench.row import Figure, Row
from tests.bench.stopwatch import settled_memory

PICTURE = "growth.png"


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if a row broke."""
    options = _options(arguments)
    rows = chosen(options.only)
    if not rows:
        say(f"no row matches {options.only!r}")
        return 2
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever reads may have seen enough
        for row in rows:
            say(f"{row.name}: {row.unit}, against {row.baseline}")
        return 0
    busy_before = os.getloadavg()[0]
    figures = figures_of(rows, options.out)
    console().print(table(figures))
    say(f"{os.cpu_count()} cores, load {busy_before:.1f} before, {os.getloadavg()[0]:.1f} after")
    curves = {f.row.name: f.measured.curve for f in figures if f.measured.curve is not None}
    picture = options.picture or (options.out.with_name(PICTURE) if options.out is not None else None)
    if curves and picture is not None:
        draw_growth(curves, picture)
        say(f"the growth curves are in {picture}")
    return 0 if len(figures) == len(rows) else 1


def figures_of(rows: Iterable[Row], out: Path | None) -> list[Figure]:
    """Of all rows that did not break; the file, if there is one, has those that are known at any time."""
    figures: list[Figure] = []
    with opened_place() as place:
        for row in rows:
            figure = attempted(row, place)
            if figure is not None:
                figures.append(figure)
            if out is not None:
                write_json(figures, out)
    return figures


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures what Muster takes, against targets and plain forms."
    )
    parser.add_argument("--out", type=new_file, help="write the figures as JSON")
    parser.add_argument(
        "--only", default="", help="rows whose name contains this, or matches it as a shell pattern"
    )
    parser.add_argument(
        "--picture", type=new_file, help="where to draw the growth curves; beside the JSON unless given"
    )
    parser.add_argument("--list", action="store_true", help="say which rows there are, and measure nothing")
    return parser.parse_args(arguments)


def new_file(text: str) -> Path:
    """A path that can be written to, as an option: what was measured for half an hour should not be lost."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in a folder that exists")
    return path


def chosen(pattern: str, rows: Iterable[Row] = ROWS) -> list[Row]:
    """The rows that the pattern is about, in their order."""
    return [row for row in rows if is_chosen(row.name, pattern)]


def is_chosen(name: str, pattern: str) -> bool:
    """Whether a name contains the pattern, or matches it as a shell pattern."""
    return pattern in name or fnmatch.fnmatchcase(name, pattern)


def attempted(row: Row, place: Place) -> Figure | None:
    """The row's figure, which is said too; None if it broke."""
    try:
        figure = measured(row, place)
    except Exception:  # noqa: BLE001 - whatever it is, the other rows are still worth measuring
        say(f"{row.name} broke:\n{traceback.format_exc()}")
        return None
    value, ratio = shown_number(figure.measured.value), shown_number(figure.baseline_ratio)
    say(f"{row.name}: {value} {row.unit} {figure.verdict} ({ratio} x {row.baseline})")
    if figure.measured.curve is not None:
        say(f"  {shown_curve(figure.measured.curve)}")
    return figure


def measured(row: Row, place: Place) -> Figure:
    """One row's figure. What earlier rows left in memory is not looked through again while it is measured."""
    with settled_memory():
        started = time.perf_counter()
        return Figure(row, row.measure(place), time.perf_counter() - started)


def say(line: str) -> None:
    """Print at once."""
    print(line, flush=True)  # noqa: T201 - its purpose


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
