"""A `muster serve` in a process of its own, for as long as somebody needs it.

Decides how the process is started, how its address is learnt and how it is stopped; what it serves is its own affair.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

READY = "serving on "
START_SECONDS = 60.0
STOP_SECONDS = 20.0
LOG_LINES_SHOWN = 15


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers at `address`, in `process`."""

    address: str
    process: Process


class ServerStartError(RuntimeError):
    """The process ended, or said nothing in time; the message has the end of its log."""


@contextlib.asynccontextmanager
async def serving(
    arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningServer]:
    """Runs `muster serve` with the arguments, yields it once it is ready, and stops it at the end.

    Its log goes to the file `log`; `environment` is set beside that of this process. Raises ServerStartError.
    """
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "muster.cli.main",
            "serve",
            *arguments,
            stdout=PIPE,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        try:
            yield RunningServer(await _address(process, log), process)
        finally:
            await stop(process)


async def stop(process: Process) -> None:
    """Asks the process to drain and end, and ends it if that takes too long."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _address(process: Process, log: Path) -> str:
    """The first address that the process says it serves on."""
    if process.stdout is None:
        raise ServerStartError("the server's output is not read")
    try:
        async with asyncio.timeout(START_SECONDS):
            while line := (await process.stdout.readline()).decode():
                if line.startswith(READY):
                    return line.removeprefix(READY).strip()
    except TimeoutError:
        raise ServerStartError(
            f"muster serve was not ready after {START_SECONDS:.0f} s{_tail(log)}"
        ) from None
    raise ServerStartError(f"muster serve ended with status {await process.wait()}{_tail(log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n  ".join(["; its log ends:", *lines]) if lines else ""
