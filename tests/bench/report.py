"""What is shown of a run: a table for people, a JSON list for programs, a picture of how times grow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing
from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.row import Curve, Figure
from tests.bench.stopwatch import exponent

COLOURS = {"met": "green", "missed": "yellow", "poor": "red"}
SIZE_INCHES = (10, 6)
DOTS_PER_INCH = 120
WIDTH = 170
PALETTE = 10
MARKERS = "osv^"
"""The colours come again after so many curves, with another marker."""


def shown_number(value: float | None) -> str:
    """Three digits that matter, and no more."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def shown_curve(curve: Curve) -> str:
    """Its points in words."""
    return ", ".join(f"{size:,} nodes {shown_number(ms)} ms" for size, ms in curve.milliseconds.items())


def table(figures: Iterable[Figure]) -> Table:
    """A line a row."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("ROW", no_wrap=True)
    for column in ("VALUE", "UNIT", "TARGET", "", "X BASELINE", "CPU S", "TOOK S"):
        made.add_column(column, justify="right", no_wrap=True)
    for figure in figures:
        verdict = figure.verdict
        made.add_row(
            figure.row.name,
            shown_number(figure.measured.value),
            figure.row.unit,
            shown_number(figure.row.target),
            f"[{COLOURS[verdict]}]{verdict}[/]" if verdict else "",
            shown_number(figure.baseline_ratio),
            shown_number(figure.measured.cpu_seconds),
            shown_number(figure.seconds),
        )
    return made


def console() -> Console:
    """Standard output, wide enough for the table where it is no terminal."""
    made = Console()
    return made if made.is_terminal else Console(width=WIDTH)


def write_json(figures: Iterable[Figure], path: Path) -> None:
    """A list of records, one a row."""
    path.write_text(json.dumps([figure.record() for figure in figures], indent=1) + "\n", encoding="utf-8")


def draw_growth(curves: Mapping[str, Curve], path: Path) -> None:
    """A picture of CPU time over the number of nodes, with the exponent of each curve beside its name."""
    mpl.use("Agg")
    drawing = Drawing(figsize=SIZE_INCHES, layout="constrained")
    axes = drawing.subplots()
    for number, (name, curve) in enumerate(curves.items()):
        sizes, times = list(curve.milliseconds), list(curve.milliseconds.values())
        label = f"{name.rpartition('/')[2]}: nodes^{exponent(curve.milliseconds):.2f}"
        axes.plot(sizes, times, marker=MARKERS[number // PALETTE % len(MARKERS)], label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(ticks := sorted({size for curve in curves.values() for size in curve.milliseconds}))
    axes.set_xticklabels([f"{size:,}" for size in ticks])
    axes.minorticks_off()
    axes.set_xlabel("nodes")
    axes.set_ylabel("CPU time (ms)")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    drawing.savefig(path, dpi=DOTS_PER_INCH)
