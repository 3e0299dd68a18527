"""What a replay saw, and the figures that follow from it.

Decides how each figure is computed; the driver of the replay only notes what happens.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from muster.cli.trace import Gang


@dataclass(slots=True)
class Unit:
    """One gang of the trace: when it was submitted, decided, placed and ended.

    Wall times are seconds of a monotonic clock, trace times seconds of the trace; None is not yet.
    """

    gang: Gang
    submitted_wall: float
    decided_wall: float | None = None
    placed_at: float | None = None
    ended_at: float | None = None
    evicted_pods: int = 0
    placement: tuple[tuple[str, str], ...] = ()

    @property
    def running(self) -> bool:
        """Whether its pods are bound now."""
        return self.placed_at is not None and self.ended_at is None


@dataclass(frozen=True, slots=True)
class Sample:
    """The state after one event of the trace."""

    at: float
    gpus_used: int
    waiting: int


@dataclass(slots=True)
class Record:
    """Everything that is noted while a replay runs."""

    gpus_in_all: int
    nodes: int
    gpus_used: int = 0
    waiting: int = 0
    units: dict[str, Unit] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    decisions: int = 0
    preemptions: int = 0
    victims: int = 0
    seconds: float = 0.0
    checks: int = 0
    faults: list[str] = field(default_factory=list)
    waiting_reasons: dict[str, str] = field(default_factory=dict)

    def submit(self, gang: Gang) -> None:
        """A gang is about to be applied."""
        self.units[gang.name] = Unit(gang, submitted_wall=time.monotonic())
        self.waiting += 1

    def decide(self, unit: Unit) -> None:
        """A decision about the gang was seen."""
        if unit.decided_wall is None:
            unit.decided_wall = time.monotonic()

    def place(self, unit: Unit, at: float, placement: Iterable[tuple[str, str]]) -> None:
        """All pods of the gang were bound."""
        unit.placed_at = at
        unit.placement = tuple(placement)
        self.waiting -= 1
        self.gpus_used += unit.gang.gpus * unit.gang.pods

    def evict(self, unit: Unit) -> None:
        """One pod of the gang was chosen as a victim."""
        unit.evicted_pods += 1
        self.gpus_used -= unit.gang.gpus

    def end(self, unit: Unit, at: float) -> None:
        """The time of the gang is over."""
        unit.ended_at = at
        self.gpus_used -= unit.gang.gpus * (unit.gang.pods - unit.evicted_pods)

    def sample(self, at: float) -> None:
        """Notes the state at a time of the trace; of several events at one time the last counts."""
        if self.samples and self.samples[-1].at == at:
            self.samples.pop()
        self.samples.append(Sample(at, self.gpus_used, self.waiting))

    def placements(self) -> Iterator[str]:
        """A line a pod that was ever placed: time of the trace, gang, pod, node; in the order of the gangs."""
        for name in sorted(self.units):
            unit = self.units[name]
            yield from (f"{unit.placed_at:g},{name},{pod},{node}" for pod, node in unit.placement)

    def digest(self) -> str:
        """A hash of all placements, equal for two replays that decided the same."""
        return hashlib.sha256("\n".join(self.placements()).encode()).hexdigest()

    def report(self) -> dict[str, object]:
        """The figures as JSON's types; times in seconds, latencies in milliseconds."""
        units = list(self.units.values())
        placed = [unit for unit in units if unit.placed_at is not None]
        latencies = [
            1_000 * (unit.decided_wall - unit.submitted_wall)
            for unit in units
            if unit.decided_wall is not None
        ]
        waits = [unit.placed_at - unit.gang.submit_seconds for unit in units if unit.placed_at is not None]
        return {
            "nodes": self.nodes,
            "gpus": self.gpus_in_all,
            "gangs": len(units),
            "pods": sum(unit.gang.pods for unit in units),
            "placed": len(placed),
            "placed_pods": sum(unit.gang.pods for unit in placed),
            "waiting": len(units) - len(placed),
            "waiting_reasons": self.waiting_reasons,
            "decisions": self.decisions,
            "seconds": round(self.seconds, 3),
            "gangs_per_second": _ratio(len(placed), self.seconds),
            "pods_per_second": _ratio(sum(unit.gang.pods for unit in placed), self.seconds),
            "latency_ms": {"p50": percentile(latencies, 50), "p99": percentile(latencies, 99)},
            "wait_trace_seconds": {
                "p50": percentile(waits, 50),
                "p99": percentile(waits, 99),
                "longest": percentile(waits, 100),
            },
            "gpu_utilisation": {"mean": self._mean_utilisation(), "peak": self._peak_utilisation()},
            "preemptions": {"decisions": self.preemptions, "evicted_pods": self.victims},
            "checks": {"made": self.checks, "faults": self.faults},
            "placements_sha256": self.digest(),
        }

    def utilisation(self) -> list[float]:
        """The share of all GPUs in use after each event; zeros without GPUs."""
        return [sample.gpus_used / self.gpus_in_all if self.gpus_in_all else 0.0 for sample in self.samples]

    def _mean_utilisation(self) -> float:
        """Over the time of the trace: each state counts as long as it lasted."""
        spans = [
            later.at - earlier.at for earlier, later in zip(self.samples, self.samples[1:], strict=False)
        ]
        weighted = sum(span * share for span, share in zip(spans, self.utilisation(), strict=False))
        return _ratio(weighted, sum(spans))

    def _peak_utilisation(self) -> float:
        return round(max(self.utilisation(), default=0.0), 4)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent of the values do not exceed; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = max(0, -(-len(ordered) * percent // 100) - 1)
    return round(ordered[int(place)], 3)


def grouped(names_and_reasons: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many waiting gangs there are for each reason, most first."""
    counts: dict[str, int] = {}
    for _, reason in names_and_reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _ratio(amount: float, whole: float) -> float:
    return round(amount / whole, 4) if whole else 0.0
