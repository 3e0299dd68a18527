"""One run of the Go client's load: gangs of 8, each applied and waited for until it is bound."""

from __future__ import annotations

import json
from pathlib import Path

from tests.load.ghz import LoadReport
from tests.load.program import output_of

GANGS_UNTIL_BOUND = "gangs-until-bound"


async def run_gangs(program: Path, address: str, clients: int, seconds: int) -> LoadReport:
    """Run it to its end. Raises LoadError."""
    arguments = ("--server", address, "--clients", str(clients), "--seconds", str(seconds))
    return LoadReport(**json.loads(await output_of(program, arguments, seconds)))
