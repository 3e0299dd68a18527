"""Where a global option may stand, what it overrides, and which values of options are refused."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from muster.cli.main import muster
from muster.cli.session import Session, client_command, global_options

TOO_LARGE = str(2**63)
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


@pytest.mark.parametrize(
    "line",
    [
        ["delete", "pod/one", "--grace-period", TOO_LARGE],
        ["watch", "--from-revision", TOO_LARGE],
        ["watch", "--from-revision", "-1"],
        ["watch", "decisions", "--from-revision", TOO_LARGE],
        ["schedule", "pod/one", "--wait", f"{TOO_LARGE}s"],
        ["schedule", "pod/one", "--wait", "9" * 40],
        ["apply", "-f", "-", "--wait", f"{TOO_LARGE}h"],
        ["simulate", "--time-limit", f"{TOO_LARGE}ms"],
        ["top", "--once", "--every", f"{TOO_LARGE}m"],
    ],
    ids=" ".join,
)
def test_a_number_that_no_message_holds_is_wrong_usage_of_its_option(line: list[str]) -> None:
    option = next(each for each in reversed(line) if each.startswith("--"))

    result = CliRunner().invoke(muster, line)

    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.stderr
