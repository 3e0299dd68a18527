"""A long run of a real service: `python -m tests.soak.run --seconds N [--out FILE]`, which `make soak` calls.

5 000 nodes, 500 pods a second that come and 500 that go. Says what memory, database and calls came to, with `--out` draws
their course, and ends with 1 if one of them is out of bounds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.place import SQLITE, opened_place
from tests.bench.served import Served, nodes, served_on
from tests.soak.churn import Churn
from tests.soak.course import Finding, Sample, draw, findings

NODES = 5_000
KEEP_SECONDS = "60"
SAMPLE_SECONDS = 1.0
RETENTION = ("--log-retention-seconds", KEEP_SECONDS, "--decision-retention-seconds", KEEP_SECONDS)


def main(arguments: Sequence[str]) -> int:
    """1 if something is out of bounds."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.run")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--out", type=Path, help="a PNG file for the picture")
    options = parser.parse_args(arguments)
    samples, churn = asyncio.run(soaked(options.seconds))
    if options.out is not None:
        draw(samples, options.out)
    found = findings(samples, churn.apply_seconds)
    found.append(Finding(f"calls more than a second late: {churn.late}", not churn.late))
    for each in found:
        sys.stdout.write(f"{'ok  ' if each.holds else 'MISS'} {each.says}\n")
    return 0 if all(each.holds for each in found) else 1


async def soaked(seconds: float) -> tuple[list[Sample], Churn]:
    """A service under churn for so long, and its course."""
    with opened_place() as place, place.store(SQLITE) as url:
        async with served_on(place, url, RETENTION) as service:
            await service.apply(nodes(NODES))
            churn, samples = Churn(service), list[Sample]()
            sampling = asyncio.create_task(_sample(service, Path(url.removeprefix("sqlite:///")), samples))
            await churn.run(seconds)
            sampling.cancel()
            return samples, churn


async def _sample(service: Served, database: Path, samples: list[Sample]) -> None:
    """Look at the service now and then, until cancelled."""
    started = time.perf_counter()
    while True:
        size = sum(part.stat().st_size for part in database.parent.glob(f"{database.name}*"))
        now = time.perf_counter() - started
        samples.append(Sample(now, service.pss_mib(), size / 2**20, service.cpu_seconds()))
        await asyncio.sleep(SAMPLE_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
