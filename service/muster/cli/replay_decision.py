"""The command that makes recorded decisions again: `muster replay-decision`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click
from rich.markup import escape

from muster.cli.decision_views import decision_line, decision_view
from muster.cli.output import as_json, print_message, print_value, progress, show
from muster.cli.records import newest
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.tree_drawing import number_of
from muster.cli.units import exit_unless
from muster.client.client import Client
from muster.v1.scheduler_service_pb2 import (
    DecisionRerun,
    GetDecisionRequest,
    GetDecisionResponse,
    ListDecisionsRequest,
)

AT_ONCE = 200
"""Few enough for the server to take them all, and so many that they share its way back."""


@click.command("replay-decision")
@client_command
@click.argument("identities", metavar="[ID]...", nargs=-1)
@click.option("--newest", "count", type=click.IntRange(min=1), metavar="N", help="The newest N on record.")
def replay_decision(session: Session, identities: tuple[str, ...], count: int | None) -> None:
    """Make recorded decisions again from the same input, and say whether they come out equal.

    Works while the revisions that they were made on are kept. Stores nothing. Exit status 1 if one is not equal. With
    --newest, decisions that no cycle made are left out.
    """
    if bool(identities) == (count is not None):
        raise click.UsageError("name the decisions, or say how many with --newest")
    if len(identities) == 1:
        _replay_one(session, identities[0])
    else:
        _replay_many(session, identities, count or 0)


def _replay_one(session: Session, identity: str) -> None:
    response = call(session, lambda client: client.get_decision(_request(identity)))
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        show(decision_line(response.decision))
        _show(response.rerun, response.decision.input_digest)
    exit_unless(response.rerun.equal)


def _replay_many(session: Session, identities: Sequence[str], count: int) -> None:
    responses = call(session, lambda client: _reruns(client, identities, count))
    unequal = [each for each in responses if not each.rerun.equal]
    if session.output != TABLE:
        print_value([_as_json(each) for each in responses], session.output)
    else:
        for each in unequal:
            show(f"{escape(each.decision.id)}: {decision_line(each.decision)}")
            _show(each.rerun, each.decision.input_digest)
        made = number_of(len(responses), "decision")
        show(f"{made} made again: {len(responses) - len(unequal)} equal, {len(unequal)} not")
    exit_unless(not unequal)


def _as_json(response: GetDecisionResponse) -> dict[str, object]:
    """What came of a decision, by its id; the decision itself is what the listing has."""
    return {"id": response.decision.id, "rerun": as_json(response.rerun)}


async def _reruns(client: Client, identities: Sequence[str], count: int) -> list[GetDecisionResponse]:
    """In the order that was asked for; a listing's newest first, which is how the server goes."""
    if count:
        listing = await newest(client, ListDecisionsRequest(), count)
        identities = [each.id for each in listing.decisions if each.input_digest]
    room = asyncio.Semaphore(AT_ONCE)
    with progress() as shown:
        bar = shown.add_task("made again", total=len(identities), remark="")

        async def rerun(identity: str) -> GetDecisionResponse:
            async with room:
                response = await client.get_decision(_request(identity))
            shown.advance(bar)
            return response

        return await asyncio.gather(*map(rerun, identities))


def _request(identity: str) -> GetDecisionRequest:
    return GetDecisionRequest(id=identity, rerun=True)


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
