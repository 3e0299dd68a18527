"""muster explain: why a unit is where it is, and what would help, in lines that fit a terminal.

First what is true of the whole unit, then its groups with what stopped each, then the changes that would help. Texts
are the server's; codes and numbers for programs are in the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from muster.cli.decision_views import decision_line, queue_line, result_tree
from muster.cli.kinds import ref_of
from muster.cli.output import print_message, show
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.tree_drawing import number_of
from muster.v1.decision_pb2 import GroupResult, Reason
from muster.v1.queue_pb2 import UnitState
from muster.v1.scheduler_service_pb2 import ExplainRequest, ExplainResponse, Help

INDENT = 2
OF_THE_UNIT = frozenset(
    {
        "FIRST_FAILURE",
        "NEXT_TRY",
        "NOTHING_PENDING",
        "PREEMPTION_CANNOT_HELP",
        "PREEMPTION_FORBIDDEN",
        "PREEMPTION_POSSIBLE",
        "PREEMPTION_UNDER_WAY",
        "ROOM_PROMISED",
        "SEARCH_NOT_MADE",
        "SEARCH_PROVED",
        "SEARCH_UNDECIDED",
        "WAITS_FOR_EVENTS",
        "WAITS_FOR_PODS",
    }
)
"""Reasons of the root that are about the whole unit."""
_CLOSEST = "CLOSEST_DOMAIN"
_DOMAINS = frozenset({"DOMAIN_FAILED", "DOMAIN_RULED_OUT", "MORE_DOMAINS"})


@click.command()
@client_command
@click.argument("unit", metavar="KIND/NAME")
@click.option(
    "--what-would-help", is_flag=True, help="Also try which changes would let the unit be scheduled."
)
def explain(session: Session, unit: str, *, what_would_help: bool) -> None:
    """Say why a unit is where it is: per group and domain, with what is missing."""
    request = ExplainRequest(unit=ref_of(unit, session.namespace), what_would_help=what_would_help)
    response = call(session, lambda client: client.explain(request))
    if session.output != TABLE:
        print_message(response, session.output)
        return
    show(explanation_view(response, asked_for_helps=what_would_help))


def explanation_view(response: ExplainResponse, *, asked_for_helps: bool) -> RenderableType:
    """The whole answer: what holds for the unit, its groups, what would help."""
    return Group(*_facts(response), *_groups(response), *_helps(response, asked_for_helps=asked_for_helps))


def _facts(response: ExplainResponse) -> Iterator[RenderableType]:
    yield queue_line(response.queue) if response.HasField("queue") else "queue: not in it"
    for reason in response.result.reasons:
        if reason.code in OF_THE_UNIT:
            yield _item(reason.message)
    if response.HasField("last_decision"):
        yield f"last decision: {decision_line(response.last_decision)}"


def _groups(response: ExplainResponse) -> Iterator[RenderableType]:
    if response.HasField("result"):
        yield f"on the state of revision {response.revision}:"
        yield result_tree(response.result, _notes)


def _helps(response: ExplainResponse, *, asked_for_helps: bool) -> Iterator[RenderableType]:
    if response.helps:
        yield "what would help, each by itself:"
        yield from (_item(_help_text(help_)) for help_ in response.helps)
    elif asked_for_helps and response.queue.state == UnitState.UNIT_STATE_WAITING_FOR_PREEMPTION:
        yield "it waits for pods to leave; no other change was tried"
    elif asked_for_helps and response.HasField("queue"):
        yield "no single change was found that would help"


def _item(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, INDENT))


def _notes(result: GroupResult) -> Iterator[str]:
    """What stopped a group: first in which nodes, then in which domains."""
    others = [reason for reason in result.reasons if reason.code not in OF_THE_UNIT]
    for reason in others:
        if reason.code not in _DOMAINS and reason.code != _CLOSEST:
            yield _note(reason)
    closest = next((reason.details["value"] for reason in others if reason.code == _CLOSEST), None)
    for reason in others:
        if reason.code in _DOMAINS:
            is_closest = closest is not None and reason.details.get("value") == closest
            yield f"{reason.message} (closest)" if is_closest else reason.message


def _note(reason: Reason) -> str:
    if not reason.node_count:
        return reason.message
    examples = reason.details.get("examples", "")
    named = examples.replace(",", ", ")
    more = ", ..." if reason.node_count > examples.count(",") + 1 else ""
    nodes = f" ({named}{more})" if examples else ""
    return f"{number_of(reason.node_count, 'node')}: {reason.message}{nodes}"


def _help_text(help_: Help) -> str:
    is_counted = bool(help_.count) and help_.code != "LOWER_MINIMUM"
    proved = " (no fewer will do)" if is_counted and help_.details.get("proved") == "true" else ""
    return f"{help_.message}{proved}"
