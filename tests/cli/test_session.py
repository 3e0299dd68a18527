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
        pytest.param("", "", True, "environment:1", id="the environment alone"),
        pytest.param("first:1", "", True, "first:1", id="before the command"),
        pytest.param("", "last:1", True, "last:1", id="behind the command"),
        pytest.param("first:1", "last:1", True, "last:1", id="both"),
        pytest.param("first:1", "", False, "first:1", id="no environment"),
    ],
)
def test_an_option_overrides_the_environment_wherever_it_stands(
    field: str, command: list[str], before: str, after: str, *, is_set: bool, value: str
) -> None:
    options = [[f"--{field}", text] if text else [] for text in (before, after)]
    environment = {FIELDS[field]: "environment:1" if is_set else None}

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


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            " ",
            "host",
            ":50051",
            "host:",
            "host:0",
            "host:65536",
            "::1:50051",
            "http://host:50051",
            "a\nb:1",
        ),
        *("unix:", "unix://relative", f"unix:///{'long' * 27}"),
    ],
)
def test_a_malformed_address_is_wrong_usage_and_nothing_is_called(address: str) -> None:
    result = CliRunner().invoke(root, ["shown", "--server", address])

    assert result.exit_code == 2
    assert result.stderr.endswith(f"{address!r} is neither HOST:PORT nor unix:///path\n")


@pytest.mark.parametrize(
    "address",
    ["host:1", "127.0.0.1:50051", "[::1]:65535", "dns:///host:1", "unix:///a/b", "unix:/a/b", "unix:a"],
)
def test_an_address_that_grpc_can_call_is_taken(address: str) -> None:
    result = CliRunner().invoke(root, ["shown", "--server", address])

    assert f"server={address}" in result.stdout.splitlines()


@pytest.mark.parametrize("token", ["one\nother", "t\xf6ken", "\x7f"], ids=ascii)
def test_a_token_that_no_header_holds_is_wrong_usage_and_not_shown(token: str) -> None:
    result = CliRunner().invoke(root, ["shown"], env={"MUSTER_TOKEN": token})

    assert result.exit_code == 2
    assert "Invalid value for '--token': a token has printable ASCII" in result.stderr
    assert token not in result.stderr
