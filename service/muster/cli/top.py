"""`muster top`: a live view of queue, cluster and recent decisions; one look at it where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta

import click
from rich.markup import escape

from muster.cli.output import print_value, show, table
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.top_readings import (
    DECISION_TITLES,
    UNIT_TITLES,
    Readings,
    as_value,
    decision_row,
    read,
    state_counts,
    unit_row,
)
from muster.cli.units import Duration

DECISIONS_PRINTED = 10
SHORTEST_SECONDS = 0.2


@click.command()
@client_command
@click.option(
    "--every", type=Duration(), default="2s", show_default=True, metavar="TIME", help="Between two looks."
)
@click.option("--once", is_flag=True, help="Print one look and end, as without a terminal.")
def top(session: Session, every: timedelta, *, once: bool) -> None:
    """Watch the queue, what is in use, and what is decided. Keys are shown at the bottom; q ends it."""
    if once or session.output != TABLE or not sys.stdout.isatty():
        _print(session, call(session, lambda client: read(client, session.cluster)))
        return
    from muster.cli.top_screen import TopScreen

    seconds = max(SHORTEST_SECONDS, every.total_seconds())
    call(session, lambda client: TopScreen(client, session, seconds).run_async())


def _print(session: Session, readings: Readings) -> None:
    if session.output != TABLE:
        print_value(as_value(readings), session.output)
        return
    now = readings.read_at
    for line in summary_lines(readings):
        show(escape(line))
    if readings.queue.units:
        show(table(UNIT_TITLES, (tuple(map(escape, unit_row(each, now))) for each in readings.queue.units)))
    recent = readings.decisions.decisions[:DECISIONS_PRINTED]
    if recent:
        show(table(DECISION_TITLES, (tuple(map(escape, decision_row(each, now))) for each in recent)))


def summary_lines(readings: Readings) -> Iterator[str]:
    """What there is, what waits, what is in use: a line each."""
    there = ", ".join(f"{count} {kind}" for kind, count in readings.counts.items() if count)
    yield f"objects: {there or 'none'}"
    waiting = ", ".join(f"{count} {state}" for state, count in state_counts(readings.queue))
    yield f"queue: {waiting or 'empty'} at revision {readings.queue.revision}"
    uses = (f"{use.resource} {use.share:.0%} ({use})" for use in readings.uses)
    yield f"in use: {', '.join(uses) or 'nothing'}"
