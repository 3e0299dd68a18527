"""The command that makes a recorded decision again: `muster replay-decision`."""

from __future__ import annotations

import click
from rich.markup import escape

from muster.cli.decision_views import decision_line, decision_view
from muster.cli.output import print_message, show
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.units import exit_unless
from muster.v1.scheduler_service_pb2 import DecisionRerun, GetDecisionRequest


@click.command("replay-decision")
@client_command
@click.argument("identity", metavar="ID")
def replay_decision(session: Session, identity: str) -> None:
    """Make a recorded decision again from the same input, and say whether it comes out equal.

    Works while the revision that it was made on is kept. Stores nothing. Exit status 1 if it is not equal.
    """
    request = GetDecisionRequest(id=identity, rerun=True)
    response = call(session, lambda client: client.get_decision(request))
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        show(decision_line(response.decision))
        _show(response.rerun, response.decision.input_digest)
    exit_unless(response.rerun.equal)


def _show(rerun: DecisionRerun, digest: str) -> None:
    if rerun.not_possible:
        show(f"[yellow]not made again[/]: {escape(rerun.not_possible)}")
        return
    if rerun.equal:
        show(f"[green]equal[/]: made again from the same input ({digest})")
        return
    inputs = "the same input" if rerun.same_input else "another input than the one on record"
    show(f"[red]not equal[/]: {', '.join(rerun.differences)}; made from {inputs}. Now it is:")
    show(decision_view(rerun.decision))
