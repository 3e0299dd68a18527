"""Wall and CPU time of what runs in this process, and figures made of many times.

The best of some runs is what the code takes; the rest of a run is what else the machine was doing.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

RUNS = 5
MOST_RUNS = 1_000
LEAST_SECONDS, MOST_SECONDS = 0.2, 10.0
"""On a busy machine a short piece of work needs several tries to be run without an interruption."""


@dataclass(frozen=True, slots=True)
class Timing:
    """In seconds."""

    wall: float
    cpu: float

    @property
    def wall_ms(self) -> float:
        return self.wall * 1e3

    def scaled(self, factor: float) -> Timing:
        """What so many times as much would take."""
        return Timing(self.wall * factor, self.cpu * factor)


class Stopwatch:
    """Runs from when it is made until `stop`."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> Timing:
        return Timing(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def timed(run: Callable[[], object]) -> Timing:
    """Of one run."""
    watch = Stopwatch()
    run()
    return watch.stop()


@contextmanager
def settled_memory() -> Iterator[None]:
    """What is in memory now is not looked through for garbage in the block, as in a service that has started."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def best_of(run: Callable[[], object], runs: int = RUNS) -> Timing:
    """The least wall time and the least CPU time of so many runs: of more if they are short, of fewer if they are long."""
    with settled_memory():
        timings = [timed(run)]
        spent = timings[0].wall
        while spent < (LEAST_SECONDS if len(timings) >= runs else MOST_SECONDS) and len(timings) < MOST_RUNS:
            timings.append(timed(run))
            spent += timings[-1].wall
    return least(timings)


def least(timings: Sequence[Timing]) -> Timing:
    """The least wall time and the least CPU time."""
    return Timing(min(each.wall for each in timings), min(each.cpu for each in timings))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that the share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def exponent(values: Mapping[int, float]) -> float:
    """The slope of the values over their sizes, both as logarithms, by least squares."""
    points = [(math.log(size), math.log(value)) for size, value in values.items()]
    middle = sum(x for x, _ in points) / len(points)
    height = sum(y for _, y in points) / len(points)
    return sum((x - middle) * (y - height) for x, y in points) / sum((x - middle) ** 2 for x, _ in points)
