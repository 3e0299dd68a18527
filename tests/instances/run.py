"""Runs families of placement instances: `python tests/instances/run.py DIR [--out FILE] [--only GLOB]`.

Each instance goes through the API of one server twice, each time in a cluster of its own: by the default profile, and
by one that places greedily alone. Every placement is judged by `checker`. Prints a line a family; the exit status is 1
if a placement breaks a rule or contradicts the proved verdict, 2 if a file is no family of instances.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from muster.cli.server_process import serving  # noqa: E402
from tests.instances.asking import REFUSED, Answer, ask  # noqa: E402
from tests.instances.checker import violations  # noqa: E402
from tests.instances.instance import FEASIBLE, INFEASIBLE, Case, InstanceFormatError, family  # noqa: E402

GREEDY = "greedy"
TITLES = (
    "FAMILY", "INSTANCES", "VIOLATIONS", "FEASIBLE", "PLACED", "GREEDY", "INFEASIBLE", "PROVED", "MEDIAN MS", "WORST MS",
)  # fmt: skip
WIDTH = 120


@dataclass(frozen=True, slots=True)
class Result:
    """One case: the answer, the answer of greedy placement alone, and everything that is wrong with either."""

    case: Case
    answer: Answer
    greedy: Answer
    faults: tuple[str, ...]


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The address of a fresh server with a second scheduler that searches nothing."""
    with tempfile.TemporaryDirectory(prefix="muster-instances-") as folder:
        config = Path(folder) / "server.yaml"
        profiles = [{"name": "default-scheduler"}, {"name": GREEDY, "greedyOnly": True}]
        config.write_text(yaml.safe_dump({"profile_definitions": profiles}), encoding="utf-8")
        store = f"sqlite:///{Path(folder) / 'muster.db'}"
        arguments = ["--listen", "127.0.0.1:0", "--store", store, "--config", str(config)]
        async with serving(arguments, Path(folder) / "server.log") as running:
            yield running.address


async def result_of(address: str, case: Case) -> Result:
    """Asks both schedulers about a case and judges what they say."""
    cluster = f"{case.family.replace('_', '-')}-{case.seed}"
    answer = await ask(address, cluster, case.instance)
    greedy = await ask(address, f"{cluster}-{GREEDY}", case.instance, GREEDY)
    faults = [*faults_of(case, answer), *(f"greedy: {fault}" for fault in faults_of(case, greedy))]
    return Result(case, answer, greedy, tuple(faults))


def faults_of(case: Case, answer: Answer) -> list[str]:
    """Rules that a placement breaks, and a verdict that cannot be true."""
    found = violations(case.instance, answer.placements, answer.evicted)
    if answer.status == REFUSED:
        found.append(f"the server refused it: {answer.message}")
    if answer.status == "SCHEDULED" and not answer.is_placed:
        found.append("says that it is scheduled, and nothing was placed")
    if answer.is_placed and not found and case.verdict == INFEASIBLE:
        found.append("placed what is proved to be infeasible")
    if answer.exhaustive and case.verdict == FEASIBLE:
        found.append(f"declared impossible what is proved to be feasible: {answer.message}")
    return found


def line(name: str, results: Sequence[Result]) -> tuple[str, ...]:
    """The figures of a family, as `TITLES` names them."""
    feasible = [each for each in results if each.case.verdict == FEASIBLE]
    infeasible = [each for each in results if each.case.verdict == INFEASIBLE]
    times = [each.answer.ms for each in results]
    counts = (
        len(results),
        sum(len(each.faults) for each in results),
        len(feasible),
        sum(each.answer.is_placed for each in feasible),
        sum(each.greedy.is_placed for each in feasible),
        len(infeasible),
        sum(each.answer.exhaustive for each in infeasible),
    )
    return (name, *map(str, counts), f"{statistics.median(times):.1f}", f"{max(times):.1f}")


def records(results: Iterable[Result]) -> list[dict[str, object]]:
    """What is written to a file: what the default profile decided, a record a case."""
    return [
        {
            "family": each.case.family,
            "seed": each.case.seed,
            "status": each.answer.status,
            "placements": each.answer.placements,
            "evicted": list(each.answer.evicted),
            "ms": each.answer.ms,
            "exhaustive": each.answer.exhaustive,
        }
        for each in results
    ]


async def run(families: dict[str, list[Case]], console: Console) -> list[Result]:
    """Runs all cases, prints what is wrong as it is seen, and the table at the end."""
    table = Table(*TITLES, box=None, pad_edge=False)
    done: list[Result] = []
    async with server() as address:
        for name, cases in families.items():
            results = [await result_of(address, case) for case in cases]
            for each in results:
                for fault in each.faults:
                    console.print(
                        f"{name} {each.case.seed}: {fault}", markup=False, highlight=False, soft_wrap=True
                    )
            table.add_row(*line(name, results))
            done += results
    console.print(table)
    return done


def main(arguments: list[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Runs families of placement instances against a server.")
    parser.add_argument("path", type=Path, help="a folder of families, or one file")
    parser.add_argument("--out", type=Path, help="a file for a JSON list with a record a case")
    parser.add_argument("--only", default="*", help="a glob that the name of a family must match")
    options = parser.parse_args(arguments)
    paths = sorted(options.path.glob("*.json")) if options.path.is_dir() else [options.path]
    try:
        families = {path.stem: family(path) for path in paths if fnmatchcase(path.stem, options.only)}
    except (InstanceFormatError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not any(families.values()):
        sys.stderr.write(f"{options.path}: no instances\n")
        return 2
    results = asyncio.run(
        run({name: cases for name, cases in families.items() if cases}, Console(width=WIDTH))
    )
    if options.out is not None:
        options.out.write_text(json.dumps(records(results), indent=1), encoding="utf-8")
    return 1 if any(each.faults for each in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
