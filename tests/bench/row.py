"""How a benchmark is declared: a row has a name, a unit, perhaps a target, and a function that measures it.

What is measured is said by the module that declares the row; how rows are chosen, run and shown is `run`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bench.place import Place

RATES = "/s"


@dataclass(frozen=True, slots=True)
class Curve:
    """Milliseconds of CPU time by the number of nodes."""

    milliseconds: dict[int, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out, in the row's unit.

    cpu_seconds: of what was measured alone, without preparation. baseline: the plain form, in the same unit and the same
    run. curve: for rows about growth.
    """

    value: float
    cpu_seconds: float
    baseline: float | None = None
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One benchmark. Values are better the smaller they are, rates the larger.

    baseline: in words, the plain form that the value is compared with. poor: the bound that no value may pass.
    """

    name: str
    unit: str
    measure: Callable[[Place], Measured]
    baseline: str
    target: float | None = None
    poor: float | None = None

    @property
    def is_rate(self) -> bool:
        return self.unit.endswith(RATES)


@dataclass(frozen=True, slots=True)
class Figure:
    """What a row came to."""

    row: Row
    measured: Measured
    seconds: float = field(compare=False)

    @property
    def baseline_ratio(self) -> float | None:
        """How many times better than the baseline the value is; None without one, and where no ratio can tell."""
        value, baseline = self.measured.value, self.measured.baseline
        if baseline is None or min(value, baseline) <= 0:
            return None
        return value / baseline if self.row.is_rate else baseline / value

    @property
    def verdict(self) -> str:
        """ "met", "missed" or "poor"; empty without a target."""
        if self.row.target is None:
            return ""
        if self._holds(self.row.target):
            return "met"
        return "missed" if self.row.poor is None or self._holds(self.row.poor) else "poor"

    def _holds(self, bound: float) -> bool:
        return self.measured.value >= bound if self.row.is_rate else self.measured.value <= bound

    def record(self) -> dict[str, object]:
        """As it stands in the JSON."""
        return {
            "name": self.row.name,
            "value": self.measured.value,
            "unit": self.row.unit,
            "target": self.row.target,
            "baseline_ratio": self.baseline_ratio,
            "cpu_seconds": self.measured.cpu_seconds,
        }
