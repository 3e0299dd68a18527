"""What a long run shows: memory, database size and CPU over time, how long calls took, and whether all that stays bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.figure import Figure

WARM_UP_SECONDS = 60.0
HISTORY_SECONDS = 240.0
"""Until history is forgotten as fast as it comes: it is kept for a minute, and looked at after half a minute, its values after two."""
MOST_GROWTH = 1.1
MOST_APPLY_MS = 50.0
SIZE_INCHES = (9, 7)
DOTS_PER_INCH = 120


@dataclass(frozen=True, slots=True)
class Sample:
    """seconds: since the start. cpu_seconds: spent so far. Memory and CPU time are the service's with its workers."""

    seconds: float
    memory_mib: float
    database_mib: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was to be shown."""

    says: str
    holds: bool


def findings(samples: Sequence[Sample], apply_seconds: Sequence[float]) -> list[Finding]:
    """Flat memory and database once each has its size, for which half of a short run is left; quick calls."""
    settled, bounded = _after(samples, WARM_UP_SECONDS), _after(samples, HISTORY_SECONDS)
    cores = (settled[-1].cpu_seconds - settled[0].cpu_seconds) / (settled[-1].seconds - settled[0].seconds)
    p50, p99 = (percentile(apply_seconds, share) * 1000 for share in (0.5, 0.99))
    return [
        _flat("memory", [each.memory_mib for each in settled]),
        _flat("database", [each.database_mib for each in bounded]),
        Finding(
            f"Apply: p50 {p50:.1f} ms, p99 {p99:.1f} ms, at most {MOST_APPLY_MS:g} ms", p99 <= MOST_APPLY_MS
        ),
        Finding(f"CPU: {cores:.2f} cores", holds=True),
    ]


def _after(samples: Sequence[Sample], seconds: float) -> list[Sample]:
    start = min(seconds, samples[-1].seconds / 2)
    return [each for each in samples if each.seconds >= start]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _flat(name: str, values: Sequence[float]) -> Finding:
    """Compares the medians of the first and the last third, so that no single peak decides."""
    third = max(1, len(values) // 3)
    first, last = median(values[:third]), median(values[-third:])
    text = f"{name}: {first:.0f} MiB in the first third, {last:.0f} MiB in the last, {max(values):.0f} MiB at most"
    return Finding(text, last <= first * MOST_GROWTH)


def draw(samples: Sequence[Sample], path: Path) -> None:
    """A picture of memory, database size and CPU over time."""
    mpl.use("Agg")
    drawing = Figure(figsize=SIZE_INCHES, layout="constrained")
    memory, database, cpu = drawing.subplots(3, sharex=True)
    seconds = [each.seconds for each in samples]
    memory.plot(seconds, [each.memory_mib for each in samples])
    memory.set_ylabel("memory (MiB)")
    database.plot(seconds, [each.database_mib for each in samples])
    database.set_ylabel("database (MiB)")
    spent = pairwise(samples)
    cpu.plot(seconds[1:], [(b.cpu_seconds - a.cpu_seconds) / (b.seconds - a.seconds) for a, b in spent])
    cpu.set_ylabel("CPU (cores)")
    cpu.set_xlabel("seconds")
    for axes in (memory, database, cpu):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    drawing.savefig(path, dpi=DOTS_PER_INCH)
