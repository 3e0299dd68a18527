"""The picture of a replay: GPUs in use and gangs waiting, over the time of the trace."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from muster.cli.replay_record import Record

SECONDS_PER_DAY = 86_400
SIZE_INCHES = (11, 6)
DOTS_PER_INCH = 120


def draw(record: Record, path: Path) -> None:
    """Writes a PNG; the state between two events is that after the first."""
    mpl.use("Agg")
    first = record.samples[0].at if record.samples else 0.0
    days = [(sample.at - first) / SECONDS_PER_DAY for sample in record.samples]
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.step(days, [100 * share for share in record.utilisation()], where="post", color="tab:blue")
    upper.set_ylabel("GPUs in use (%)")
    upper.set_ylim(0, 100)
    lower.step(days, [sample.waiting for sample in record.samples], where="post", color="tab:orange")
    lower.set_ylabel("gangs waiting")
    lower.set_ylim(bottom=0)
    lower.set_xlabel("days since the first gang")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.suptitle(f"{len(record.units)} gangs on {record.nodes} nodes with {record.gpus_in_all} GPUs")
    figure.savefig(path, dpi=DOTS_PER_INCH)
