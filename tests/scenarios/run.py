"""Runs case files: `python tests/scenarios/run.py DIR [--jobs N] [--only GLOB]`.

Each case gets a server process of its own on a fresh SQLite file. Prints a line a case and a summary; the exit status
is 1 if a case failed, 2 if a file does not have the format.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from muster.cli.server_process import ServerStartError, serving  # noqa: E402
from tests.scenarios.case import Case, CaseFailureError, CaseFormatError, cases, run  # noqa: E402
from tests.scenarios.expectations import UnknownExpectationError  # noqa: E402
from tests.scenarios.short_form import ShortFormError  # noqa: E402

LOCAL = "127.0.0.1:0"


def case_files(path: Path) -> list[Path]:
    """A file itself, or the case files directly in a folder."""
    return sorted(path.glob("*.yaml")) if path.is_dir() else [path]


async def outcome(case: Case) -> str:
    """Runs a case on a server of its own; "" if it passed, else why not."""
    with tempfile.TemporaryDirectory(prefix="muster-case-") as folder:
        store = f"sqlite:///{Path(folder) / 'muster.db'}"
        try:
            async with serving(["--listen", LOCAL, "--store", store], Path(folder) / "server.log") as server:
                await run(case, server.address)
        except (CaseFailureError, ServerStartError, ShortFormError, UnknownExpectationError) as failure:
            return str(failure)
    return ""


async def run_all(chosen: Iterable[Case], jobs: int) -> int:
    """Runs cases, `jobs` at a time, prints a line for each as it ends, and returns how many failed."""
    places = asyncio.Semaphore(jobs)

    async def one(case: Case) -> bool:
        async with places:
            start = time.monotonic()
            failure = await outcome(case)
        print(f"{case.id}: {'failed' if failure else 'passed'} ({time.monotonic() - start:.1f} s)", end="")
        print(f": {failure}" if failure else "", flush=True)
        return not failure

    passed = await asyncio.gather(*map(one, chosen))
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return len(passed) - sum(passed)


def main(arguments: list[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Runs case files, each case on a server of its own.")
    parser.add_argument("path", type=Path, help="a folder of case files, or one file")
    parser.add_argument("--jobs", type=int, default=1, help="cases that run at the same time")
    parser.add_argument("--only", default="*", help="a glob that the id must match")
    options = parser.parse_args(arguments)
    try:
        found = [case for path in case_files(options.path) for case in cases(path)]
    except (CaseFormatError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [case for case in found if fnmatchcase(case.id, options.only)]
    return 1 if asyncio.run(run_all(chosen, options.jobs)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
