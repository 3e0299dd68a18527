"""Commands about one unit, or about what would be: schedule, preempt, simulate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import click

from muster.cli.decision_views import decision_line, decision_view, queue_line
from muster.cli.kinds import ref_of
from muster.cli.output import print_message, show
from muster.cli.session import TABLE, Session, call, client_command
from muster.client.manifests import Manifests, read_paths
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.scheduler_service_pb2 import (
    InlineBase,
    Overlay,
    PreemptRequest,
    ScheduleRequest,
    SimulateRequest,
    SimulateResponse,
)

REFUSED = 1
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3_600}

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
        return timedelta(seconds=float(match["number"]) * _SECONDS[match["unit"]])


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
    _exit_unless(response.decision.code in SCHEDULED)


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
    _exit_unless(response.decision.code in PREEMPTED)


@click.command()
@client_command
@click.option("-f", "--file", "paths", multiple=True, metavar="FILE|DIR|-", help="Manifests that are added.")
@click.option("--inline", is_flag=True, help="Start from nothing but the manifests, instead of the cluster.")
@click.option("--remove", "removed", multiple=True, metavar="KIND/NAME", help="Objects that are taken away.")
@click.option("--drain", "drained", multiple=True, metavar="NODE", help="Nodes that are emptied.")
@click.option(
    "--unit", "units", multiple=True, metavar="KIND/NAME", help="Units to decide; the whole queue if none."
)
@click.option("--without-preemption", is_flag=True, help="Place only.")
@click.option("--time-limit", type=Duration(), metavar="TIME", help="At most 60s.")
def simulate(  # noqa: PLR0913 - one an option
    session: Session,
    paths: Sequence[str],
    removed: Sequence[str],
    drained: Sequence[str],
    units: Sequence[str],
    *,
    inline: bool,
    without_preemption: bool,
    time_limit: timedelta | None,
) -> None:
    """Show what would be decided if objects were added or taken away. Stores nothing.

    Exit status 1 if a unit would not be scheduled.
    """
    manifests = call(session, lambda _: _read(paths))
    overlay = Overlay(removed=[ref_of(each, session.namespace) for each in removed], drained_nodes=drained)
    request = SimulateRequest(
        overlay=overlay,
        units=[ref_of(each, session.namespace) for each in units],
        whole_queue=not units,
        without_preemption=without_preemption,
    )
    if inline:
        request.inline.CopyFrom(InlineBase(objects=manifests.objects))
    else:
        request.overlay.objects.extend(manifests.objects)
    if time_limit is not None:
        request.time_limit.FromTimedelta(time_limit)
    response = call(session, lambda client: client.simulate(request), manifests.origins)
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        _show_simulation(response)
    _exit_unless(not response.totals.unscheduled_units and not response.partial)


async def _read(paths: Sequence[str]) -> Manifests:
    return read_paths(paths)


def _show_simulation(response: SimulateResponse) -> None:
    for decision in response.decisions:
        show(decision_line(decision))
    totals = response.totals
    show(
        f"{totals.units} units: {totals.scheduled_units} scheduled, {totals.preempting_units} after preemption, "
        f"{totals.unscheduled_units} not; {totals.placed_pods} pods placed, {totals.pending_pods} pending, "
        f"{totals.victim_pods} evicted"
    )
    if response.partial:
        show("[yellow]time was over before every unit was decided[/]")


def _exit_unless(condition: object) -> None:
    if not condition:
        raise click.exceptions.Exit(REFUSED)
