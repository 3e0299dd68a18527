"""Where a global option may stand, and what it overrides."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from muster.cli.session import Session, client_command, global_options

FIELDS = {"server": "MUSTER_SERVER", "cluster": "MUSTER_CLUSTER", "token": "MUSTER_TOKEN"}


@click.group()
@global_options
def root() -> None:
    """As the command `muster`."""


@root.group()
def within() -> None:
    """A group of commands."""


@click.command()
@client_command
def shown(session: Session) -> None:
    for field in FIELDS:
        click.echo(f"{field}={getattr(session, field)}")


root.add_command(shown)
within.add_command(shown)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("command", [["shown"], ["within", "shown"]], ids=" ".join)
@pytest.mark.parametrize(
    ("before", "after", "is_set", "value"),
    [
        pytest.param("", "", True, "environment", id="the environment alone"),
        pytest.param("first", "", True, "first", id="before the command"),
        pytest.param("", "last", True, "last", id="behind the command"),
        pytest.param("first", "last", True, "last", id="both"),
        pytest.param("first", "", False, "first", id="no environment"),
    ],
)
def test_an_option_overrides_the_environment_wherever_it_stands(
    field: str, command: list[str], before: str, after: str, *, is_set: bool, value: str
) -> None:
    options = [[f"--{field}", text] if text else [] for text in (before, after)]
    environment = {FIELDS[field]: "environment" if is_set else None}

    result = CliRunner().invoke(root, [*options[0], *command, *options[1]], env=environment)

    assert f"{field}={value}" in result.stdout.splitlines()
