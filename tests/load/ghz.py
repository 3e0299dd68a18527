"""One run of ghz against an address, and what it found.

Decides how ghz is called and how its report is read; the configurations say what is called. A run ends after as many
calls as its configuration says, or when its time is over: calls in work then are waited for.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIGURATIONS = Path(__file__).with_name("configurations")
OK = "OK"
NANOSECONDS = 1e6
LEEWAY_SECONDS = 60
PERCENTILES = (50, 95, 99)


class GhzError(RuntimeError):
    """ghz ended without a report; the message has what it said."""


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
    """Run it, by its absolute path, to its end. Raises GhzError."""
    process = await asyncio.create_subprocess_exec(
        program, *run.arguments(), cwd=CONFIGURATIONS, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(run.seconds + LEEWAY_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise GhzError(f"ghz did not end within {run.seconds + LEEWAY_SECONDS} s") from None
    if process.returncode:
        raise GhzError(err.decode(errors="replace").strip() or f"ghz ended with {process.returncode}")
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
