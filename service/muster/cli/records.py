"""Commands that look at the queue and at what was decided: queue, decisions, decision."""

from __future__ import annotations

import click
from rich.markup import escape

from muster.cli.decision_views import decision_line, decision_view, full_seconds, state_name
from muster.cli.kinds import ref_of, shown_ref
from muster.cli.output import NONE, print_message, show, table
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.tree_drawing import number_of
from muster.client.client import LARGEST_PAGE, Client
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.queue_pb2 import UnitQueueState, UnitState
from muster.v1.scheduler_service_pb2 import (
    GetDecisionRequest,
    GetQueueRequest,
    GetQueueResponse,
    ListDecisionsRequest,
    ListDecisionsResponse,
)

STATES = [name.removeprefix("UNIT_STATE_").lower() for name in UnitState.keys()[1:]]
CODES = [name.removeprefix("DECISION_CODE_").lower() for name in DecisionCode.keys()[1:]]


@click.command()
@client_command
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Units in this state.")
def queue(session: Session, states: tuple[str, ...]) -> None:
    """Show the units that wait, in the order of the queue, and the objects that wait for a missing one."""
    request = GetQueueRequest(states=[UnitState.Value(f"UNIT_STATE_{each.upper()}") for each in states])
    response = call(session, lambda client: _whole_queue(client, request))
    if session.output != TABLE:
        print_message(response, session.output)
        return
    _show_queue(response)


async def _whole_queue(client: Client, request: GetQueueRequest) -> GetQueueResponse:
    request.page_size = LARGEST_PAGE
    whole = await client.get_queue(request)
    while whole.next_page_token:
        request.page_token = whole.next_page_token
        page = await client.get_queue(request)
        whole.units.extend(page.units)
        whole.next_page_token = page.next_page_token
    return whole


def _show_queue(response: GetQueueResponse) -> None:
    titles = ("UNIT", "STATE", "PRIORITY", "PLACE", "ATTEMPTS", "PENDING PODS", "REASON")
    if response.units:
        show(table(titles, map(_unit_row, response.units)))
    for pending in (*response.pending_pod_groups, *response.pending_pod_group_members):
        show(escape(f"{shown_ref(pending.ref)} waits for {shown_ref(pending.missing)}"))
    counts = [f"{each.count} {_state_word(each.state)}" for each in response.counts]
    groups, pods = response.pending_pod_group_count, response.pending_pod_group_member_count
    rootless = [number_of(count, word) for count, word in ((groups, "group"), (pods, "pod")) if count]
    if rootless:
        counts.append(f"{' and '.join(rootless)} without a root")
    show(f"{', '.join(counts) or 'empty'} at revision {response.revision}")


def _state_word(state: UnitState.ValueType) -> str:
    return UnitState.Name(state).removeprefix("UNIT_STATE_").lower().replace("_", " ")


def _unit_row(state: UnitQueueState) -> tuple[str, ...]:
    return (
        escape(shown_ref(state.unit)),
        state_name(state).lower().replace("_", " "),
        str(state.priority),
        str(state.position or NONE),
        str(state.attempts),
        str(state.pending_pod_count),
        escape(_why(state)),
    )


def _why(state: UnitQueueState) -> str:
    """The messages, or the first code where there is none."""
    messages = [each.message for each in state.reasons if each.message]
    return "; ".join(messages or (each.code for each in state.reasons[:1]))


@click.command()
@client_command
@click.option("--unit", metavar="KIND/NAME", help="Decisions about this unit.")
@click.option("--code", "codes", multiple=True, type=click.Choice(CODES), help="Decisions with this outcome.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The newest so many."
)
def decisions(session: Session, unit: str | None, codes: tuple[str, ...], limit: int) -> None:
    """Show decisions, newest first."""
    request = ListDecisionsRequest(
        codes=[DecisionCode.Value(f"DECISION_CODE_{each.upper()}") for each in codes]
    )
    if unit:
        request.unit.CopyFrom(ref_of(unit, session.namespace))
    response = call(session, lambda client: newest(client, request, limit))
    if session.output != TABLE:
        print_message(response, session.output)
        return
    if not response.decisions:
        click.echo("nothing decided yet", err=True)
        return
    rows = [
        (escape(each.id), full_seconds(each.create_time), decision_line(each)) for each in response.decisions
    ]
    show(table(("ID", "TIME", "DECISION"), rows))


async def newest(client: Client, request: ListDecisionsRequest, limit: int) -> ListDecisionsResponse:
    """The first page, and as many more as the limit needs; the token is that of the last page read."""
    whole = ListDecisionsResponse()
    while True:
        request.page_size = min(limit - len(whole.decisions), LARGEST_PAGE)
        page = await client.list_decisions(request)
        whole.decisions.extend(page.decisions)
        whole.next_page_token, whole.revision = page.next_page_token, page.revision
        if not page.next_page_token or len(whole.decisions) >= limit:
            return whole
        request.page_token = page.next_page_token


@click.command()
@client_command
@click.argument("identity", metavar="ID")
def decision(session: Session, identity: str) -> None:
    """Show one decision: groups, placement, preemption."""
    response = call(session, lambda client: client.get_decision(GetDecisionRequest(id=identity)))
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        show(decision_view(response.decision))
