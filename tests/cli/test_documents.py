"""docs/cli.md names commands and options that exist, and every command."""

import re
import shlex
from pathlib import Path

import click
import pytest

from muster.cli.main import COMMANDS, muster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
FENCES = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
LINES = [part.strip() for fence in FENCES for line in fence.splitlines() for part in line.split("|")]


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_exists_with_its_options(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    command = muster.get_command(click.Context(muster), name)
    assert command is not None
    known = {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    }

    assert program == "muster"
    assert {each for each in arguments if each.startswith("-") and each != "-"} <= known


def test_the_page_shows_every_command() -> None:
    assert {shlex.split(line)[1] for line in LINES} == set(COMMANDS)
