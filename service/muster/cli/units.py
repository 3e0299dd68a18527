"""Commands about one unit: schedule, preempt."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from muster.cli.decision_views import decision_view, queue_line
from muster.cli.kinds import ref_of
from muster.cli.output import print_message, show
from muster.cli.session import TABLE, Session, call, client_command
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.scheduler_service_pb2 import (
    PreemptRequest,
    ScheduleRequest,
)

REFUSED = 1
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3_600}
# The most that a message holds: a google.protobuf.Duration, and a whole number of 64 bits.
LONGEST_SECONDS = 315_576_000_000
LARGEST_NUMBER = 2**63 - 1

# What the unit's pods need no more waiting after, and what a request for preemption calls a success.
SCHEDULED = frozenset({DecisionCode.DECISION_CODE_SCHEDULED, DecisionCode.DECISION_CODE_UNCHANGED})
PREEMPTED = frozenset(
    {DecisionCode.DECISION_CODE_WAITING_FOR_PREEMPTION, DecisionCode.DECISION_CODE_FITS_WITHOUT_PREEMPTION}
)


class Duration(click.ParamType[timedelta]):
    """A length of time: 30s, 500ms, 2m, 1h; a bare number is seconds."""

    name = "duration"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Reads the text. Raises click.BadParameter."""
        if isinstance(value, timedelta):
            return value
        match = _DURATION.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a length of time such as 30s", param, ctx)
        seconds = float(match["number"]) * _SECONDS[match["unit"]]
        if seconds > LONGEST_SECONDS:
            self.fail(f"{value!r} is longer than {LONGEST_SECONDS} seconds", param, ctx)
        return timedelta(seconds=seconds)


@click.command()
@client_command
@click.argument("unit", metavar="KIND/NAME")
@click.option("--dry-run", is_flag=True, help="Decide on a copy, store nothing.")
@click.option(
    "--wait", type=Duration(), metavar="TIME", help="Go on through later cycles for this long, such as 30s."
)
def schedule(session: Session, unit: str, *, dry_run: bool, wait: timedelta | None) -> None:
    """Hurry a unit and show what was decided. Exit status 1 unless its pods are bound."""
    request = ScheduleRequest(unit=ref_of(unit, session.namespace), validate_only=dry_run)
    if wait is not None:
        request.wait.FromTimedelta(wait)
    response = call(session, lambda client: client.schedule(request))
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        show(decision_view(response.decision))
        if response.HasField("queue"):
            show(queue_line(response.queue))
    exit_unless(response.decision.code in SCHEDULED)


@click.command()
@client_command
@click.argument("unit", metavar="KIND/NAME")
@click.option("--dry-run", is_flag=True, help="Decide on a copy, store nothing.")
def preempt(session: Session, unit: str, *, dry_run: bool) -> None:
    """Run one cycle for a unit that may evict others for it. Exit status 1 if that does not help."""
    request = PreemptRequest(unit=ref_of(unit, session.namespace), validate_only=dry_run)
    response = call(session, lambda client: client.preempt(request))
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        show(decision_view(response.decision))
    exit_unless(response.decision.code in PREEMPTED)


def exit_unless(condition: object) -> None:
    """Ends the program with exit status 1 unless the condition holds."""
    if not condition:
        raise click.exceptions.Exit(REFUSED)
