"""Runs a program that loads a server, for a bounded time."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path

LEEWAY_SECONDS = 60


class LoadError(RuntimeError):
    """A program ended without a report; the message has what it said."""


async def output_of(program: Path, arguments: Sequence[str], seconds: int, cwd: Path | None = None) -> bytes:
    """What it prints, run by its absolute path and for about so many seconds. Raises LoadError."""
    process = await asyncio.create_subprocess_exec(program, *arguments, cwd=cwd, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(seconds + LEEWAY_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise LoadError(f"{program.name} did not end within {seconds + LEEWAY_SECONDS} s") from None
    if process.returncode:
        said = err.decode(errors="replace").strip()
        raise LoadError(said or f"{program.name} ended with {process.returncode}")
    return out
