"""The `muster` command: its parts put together, each loaded when it is called, so that none starts slowly for another."""

from __future__ import annotations

from importlib import import_module

import click

from muster.cli.session import global_options

COMMANDS = {
    "serve": "serve",
    "apply": "objects",
    "get": "objects",
    "delete": "objects",
    "watch": "objects",
    "schedule": "units",
    "preempt": "units",
    "explain": "explain",
    "simulate": "simulate",
    "queue": "records",
    "top": "top",
    "decisions": "records",
    "decision": "records",
    "replay-decision": "replay_decision",
    "health": "service",
    "version": "service",
    "demo": "demo",
    "replay": "replay",
}
"""The module of `muster.cli` that has the command, as an attribute of the command's name with underscores."""


class LazyGroup(click.Group):
    """A group whose commands are the COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"muster.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@global_options
def muster() -> None:
    """Decide where whole groups of pods run.

    `muster serve` is the service, everything else a client of it. Exit status: 0 done, 1 refused or unschedulable,
    2 usage.
    """


def main() -> None:
    """Runs the command line."""
    muster(prog_name="muster")


if __name__ == "__main__":
    main()
