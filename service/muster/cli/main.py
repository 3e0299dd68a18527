"""The `muster` command: its parts put together."""

from __future__ import annotations

import click

from muster.cli.demo import demo
from muster.cli.explain import explain
from muster.cli.objects import apply, delete, get, watch
from muster.cli.records import decision, decisions, queue
from muster.cli.replay import replay
from muster.cli.replay_decision import replay_decision
from muster.cli.service import health, serve, version
from muster.cli.session import global_options
from muster.cli.simulate import simulate
from muster.cli.top import top
from muster.cli.units import preempt, schedule


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@global_options
def muster() -> None:
    """Decide where whole groups of pods run.

    `muster serve` is the service, everything else a client of it. Exit status: 0 done, 1 refused or unschedulable,
    2 usage.
    """


for _command in (
    serve,
    apply,
    get,
    delete,
    watch,
    schedule,
    preempt,
    explain,
    simulate,
    queue,
    top,
    decisions,
    decision,
    replay_decision,
    health,
    version,
    demo,
    replay,
):
    muster.add_command(_command)


def main() -> None:
    """Runs the command line."""
    muster(prog_name="muster")


if __name__ == "__main__":
    main()
