"""Loads a service and shows what it takes: `python -m tests.load.run --ghz PROGRAM --gangs PROGRAM`, as `make load` does.

Every configuration in `configurations` is run by ghz, and gangs are begun and waited for by a Go client, over TCP and over
a unix socket, from 1, 16 and 64 connections, each time on a service of its own on an empty SQLite file, on this machine
alone. One case is run once more with gangs that end, and two are with a receiver. Memory is that of the service and its workers, before, halfway, after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from muster.v1.object_pb2 import Object
from tests.bench.place import Place, opened_place
from tests.bench.report import console
from tests.bench.run import is_chosen, new_file, say
from tests.bench.served import WITH_RECEIVER, Served, served
from tests.endtoend.service import gang
from tests.load.ending import ending
from tests.load.gangs import GANGS_UNTIL_BOUND, run_gangs
from tests.load.ghz import CONFIGURATIONS, LoadReport, LoadRun, run_ghz

CONNECTIONS = (1, 16, 64)
TCP, SOCKET = "tcp", "unix"
APPLY_GANG = "apply-gang"
GANGS_THAT_END = "apply-gang-that-ends"
"""As APPLY_GANG, while somebody takes away what was scheduled some seconds ago."""
NODES = 1_000
SECONDS = 5
WAITING_PODS = 8
WAITING_UNITS = 100


@dataclass(frozen=True, slots=True)
class Case:
    """`what` is the stem of a configuration of ghz, GANGS_THAT_END or GANGS_UNTIL_BOUND."""

    what: str
    transport: str
    connections: int
    has_receiver: bool = False

    @property
    def name(self) -> str:
        what = f"{self.what}-with-receiver" if self.has_receiver else self.what
        return f"{what}/{self.transport}/{self.connections}"


@dataclass(frozen=True, slots=True)
class Programs:
    """What makes the calls; absolute paths."""

    ghz: Path
    gangs: Path


@dataclass(frozen=True, slots=True)
class Outcome:
    case: Case
    report: LoadReport
    mib_before: float
    mib_halfway: float
    mib_after: float

    def record(self) -> dict[str, object]:
        """As it stands in the JSON."""
        memory = {
            "mib_before": self.mib_before,
            "mib_halfway": self.mib_halfway,
            "mib_after": self.mib_after,
        }
        return {"name": self.case.name, **asdict(self.report), **memory}


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; 1 if a call failed."""
    options = _options(arguments)
    cases = [case for case in all_cases() if is_chosen(case.name, options.only)]
    if not cases:
        say(f"no case matches {options.only!r}")
        return 2
    programs = Programs(options.ghz.resolve(), options.gangs.resolve())
    with opened_place() as place:
        outcomes = [asyncio.run(loaded(place, case, programs, options.seconds)) for case in cases]
    console().print(table(outcomes))
    if options.out is not None:
        records = [outcome.record() for outcome in outcomes]
        options.out.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 1 if any(outcome.report.errors for outcome in outcomes) else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Loads a service with calls from many connections.")
    parser.add_argument("--ghz", type=Path, required=True, help="the program")
    parser.add_argument("--gangs", type=Path, required=True, help="clients/go/cmd/gangs, built")
    parser.add_argument("--out", type=new_file, help="write the figures as JSON")
    parser.add_argument(
        "--only",
        default="",
        help="cases whose name contains this, or matches it as a shell pattern: apply-gang/tcp/16",
    )
    parser.add_argument("--seconds", type=bounded, default=SECONDS, help="how long each case may take")
    return parser.parse_args(arguments)


def bounded(text: str) -> int:
    """A number of seconds, as an option: to ghz none at all means without end."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of seconds from 1")
    return int(text)


def all_cases() -> Iterator[Case]:
    configurations = sorted(each.stem for each in CONFIGURATIONS.glob("*.json"))
    inside = [(what, False) for what in (*configurations, GANGS_THAT_END, GANGS_UNTIL_BOUND)]
    received = [(what, True) for what in (APPLY_GANG, GANGS_UNTIL_BOUND)]
    for what, has_receiver in (*inside, *received):
        for transport in (TCP, SOCKET):
            for connections in CONNECTIONS:
                yield Case(what, transport, connections, has_receiver)


async def loaded(place: Place, case: Case, programs: Programs, seconds: int) -> Outcome:
    """One case on a service of its own."""
    socket = place.folder / "load.sock"
    receiver = WITH_RECEIVER if case.has_receiver else ()
    async with served(place, arguments=("--uds", str(socket), *receiver)) as started:
        service = started.on("default")
        await prepare(service)
        before = service.pss_mib()
        address = service.address if case.transport == TCP else f"unix://{socket}"
        halfway = asyncio.create_task(_memory_after(service, seconds / 2))
        async with ending(service) if case.what == GANGS_THAT_END else nullcontext():
            report = await _report(case, address, programs, seconds)
        say(f"{case.name}: {report.calls_a_second:,.0f} calls a second, p99 {report.p99_ms:.1f} ms")
        return Outcome(case, report, before, await halfway, service.pss_mib())


async def _report(case: Case, address: str, programs: Programs, seconds: int) -> LoadReport:
    if case.what == GANGS_UNTIL_BOUND:
        return await run_gangs(programs.gangs, address, case.connections, seconds)
    name = APPLY_GANG if case.what == GANGS_THAT_END else case.what
    configuration = CONFIGURATIONS / f"{name}.json"
    return await run_ghz(programs.ghz, LoadRun(configuration, address, case.connections, seconds))


async def _memory_after(service: Served, seconds: float) -> float:
    await asyncio.sleep(seconds)
    return service.pss_mib()


async def prepare(service: Served) -> None:
    """Nodes with room for all that comes, and gangs that wait for more than any of them has."""
    await service.apply([roomy_node(f"node-{number}") for number in range(NODES)])
    for number in range(WAITING_UNITS):
        await service.apply(waiting_gang(f"waiting-{number}" if number else "waiting"))


def roomy_node(name: str) -> Object:
    made = Object()
    made.node.metadata.name = name
    made.node.status.allocatable.update({"cpu": "1000", "memory": "1Ti", "pods": "10000"})
    return made


def waiting_gang(name: str) -> list[Object]:
    group, *pods = gang(name, WAITING_PODS)
    for each in pods:
        [container] = each.pod.spec.containers
        container.resources.requests["cpu"] = "10000"
    return [group, *pods]


def table(outcomes: Sequence[Outcome]) -> Table:
    """A line a case."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("CALL/TRANSPORT/CONNECTIONS", no_wrap=True)
    for column in (
        "CALLS",
        "CALLS/S",
        "P50 MS",
        "P95 MS",
        "P99 MS",
        "ERRORS",
        "MIB BEFORE",
        "HALFWAY",
        "AFTER",
    ):
        made.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes:
        report = outcome.report
        errors = ", ".join(f"{number} {status}" for status, number in sorted(report.errors.items()))
        made.add_row(
            outcome.case.name,
            f"{report.calls:,}",
            f"{report.calls_a_second:,.0f}",
            *(f"{latency:.1f}" for latency in (report.p50_ms, report.p95_ms, report.p99_ms)),
            errors or "0",
            *(f"{mib:.0f}" for mib in (outcome.mib_before, outcome.mib_halfway, outcome.mib_after)),
        )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
