"""One run of ghz against an address, and what it found.

Decides how ghz is called and how its report is read; the configurations say what is called. A run ends after as many
calls as its configuration says, or when its time is over: calls in work then are waited for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.load.program import output_of

CONFIGURATIONS = Path(__file__).with_name("configurations")
OK = "OK"
NANOSECONDS = 1e6
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class LoadRun:
    """What ghz is to do."""

    configuration: Path
    address: str
    connections: int
    seconds: int

    def arguments(self) -> list[str]:
        connections = str(self.connections)
        return [
            *("--config", self.configuration.name, "--insecure", "--format", "json"),
            *("--connections", connections, "--concurrency", connections),
            *("--max-duration", f"{self.seconds}s", "--duration-stop", "wait", "--timeout", "30s"),
            *(self.address,),
        ]


@dataclass(frozen=True, slots=True)
class LoadReport:
    """calls: all that ended. errors: those of them that were refused or broke, by status. Latencies in milliseconds."""

    calls: int
    calls_a_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    errors: dict[str, int]


async def run_ghz(program: Path, run: LoadRun) -> LoadReport:
    """Run it, by its absolute path, to its end. Raises LoadError."""
    out = await output_of(program, run.arguments(), run.seconds, CONFIGURATIONS)
    return report_of(json.loads(out))


def report_of(found: dict[str, Any]) -> LoadReport:
    """The report that ghz prints as JSON, reduced to what counts."""
    latencies = {
        each["percentage"]: each["latency"] / NANOSECONDS for each in found["latencyDistribution"] or ()
    }
    p50, p95, p99 = (latencies.get(share, 0.0) for share in PERCENTILES)
    statuses = found["statusCodeDistribution"] or {}
    errors = {status: number for status, number in statuses.items() if status != OK}
    return LoadReport(found["count"], found["rps"], p50, p95, p99, errors)
