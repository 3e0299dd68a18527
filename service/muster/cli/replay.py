"""`muster replay`: a trace's gangs on a trace's cluster, and a report on what became of them.

Puts the parts together: `trace` reads, `replay_drive` runs, `state_check` looks at the result, `replay_record` computes,
`replay_picture` draws.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.markup import escape

from muster.cli.output import NONE, print_value, progress, show, table
from muster.cli.replay_drive import DecisionsStoppedError, Pace, Replay
from muster.cli.replay_record import Record, grouped
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.trace import GPU, Gang, TraceError, read_gangs, read_nodes
from muster.client.client import Client
from muster.client.errors import NotFoundError
from muster.v1.cluster_service_pb2 import ApplyRequest, DeleteClusterRequest, ListRequest
from muster.v1.object_pb2 import Object
from muster.v1.outcome_pb2 import DeleteOutcome

CLUSTER = "replay"
NODES_PER_CALL = 5_000
RETRY_SECONDS = 30.0
MAX_SPEED = "max"
REASONS_SHOWN = 5


class Speed(click.ParamType[Pace]):
    """`max`, or how many seconds of the trace pass in one."""

    name = "speed"

    def convert(self, value: str | Pace, param: click.Parameter | None, ctx: click.Context | None) -> Pace:
        """Reads the text. Raises click.BadParameter."""
        if isinstance(value, Pace):
            return value
        if value == MAX_SPEED:
            return Pace()
        try:
            speed = float(value)
        except ValueError:
            speed = 0.0
        if not 0 < speed < float("inf"):
            self.fail(f"{value!r} is neither {MAX_SPEED!r} nor a number above 0", param, ctx)
        return Pace(speed)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@client_command
@click.option(
    "--nodes", "nodes_path", type=_FILE, required=True, metavar="CSV", help="The machines of the cluster."
)
@click.option(
    "--gangs", "gangs_path", type=_FILE, required=True, metavar="CSV[.gz]", help="The gangs of the trace."
)
@click.option("--source", metavar="NAME", help="Gangs of this source only.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The first so many gangs.")
@click.option(
    "--speed", type=Speed(), default=MAX_SPEED, show_default=True, help="max, or times the trace's own."
)
@click.option(
    "--report", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Where to write it."
)
@click.option("--replace", "replacing", is_flag=True, help="Delete what the cluster holds first.")
def replay(  # noqa: PLR0913, PLR0917 - one an option
    session: Session,
    nodes_path: Path,
    gangs_path: Path,
    source: str | None,
    limit: int | None,
    speed: Pace,
    report: Path | None,
    *,
    replacing: bool,
) -> None:
    """Run the gangs of a trace on a cluster, and report.

    At --speed max an event of the trace is given to the server when the one before has been dealt with, so that two runs
    can be compared. The cluster is called `replay` unless --cluster names another. Exit status 1 if the check of what is
    stored finds a fault.
    """
    try:
        nodes, gangs = read_nodes(nodes_path), read_gangs(gangs_path, source, limit)
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    session = replace(session, cluster=session.cluster or CLUSTER)
    record = Record(
        gpus_in_all=sum(int(each.node.status.capacity.get(GPU, "0")) for each in nodes), nodes=len(nodes)
    )
    try:
        call(session, lambda client: _run(client, nodes, gangs, speed, record, replacing=replacing))
    except DecisionsStoppedError as error:
        raise click.ClickException(str(error)) from error
    if report is not None:
        _write(record, report)
    if session.output == TABLE:
        _show(record, report)
    else:
        print_value(record.report(), session.output)
    if record.faults:
        raise click.exceptions.Exit(1)


async def _run(
    client: Client, nodes: list[Object], gangs: list[Gang], pace: Pace, record: Record, *, replacing: bool
) -> None:
    client.retry_seconds = RETRY_SECONDS
    await _make_room(client, replacing=replacing)
    with progress() as bar:
        loading = bar.add_task("loading nodes", total=len(nodes), remark="")
        revision = 0
        for start in range(0, len(nodes), NODES_PER_CALL):
            part = nodes[start : start + NODES_PER_CALL]
            revision = (await client.apply(ApplyRequest(objects=part))).revision
            bar.advance(loading, len(part))
        running = bar.add_task("running gangs", total=len(gangs), remark="")
        await Replay(
            client, record, pace, lambda count, remark: bar.update(running, advance=count, remark=remark)
        ).run(gangs, revision)


async def _make_room(client: Client, *, replacing: bool) -> None:
    """A replay needs a cluster of its own: other objects would take room and change decisions."""
    if replacing:
        request = DeleteClusterRequest(cluster=client.cluster, allow_missing=True)
        while (await client.delete_cluster(request)).outcome == DeleteOutcome.DELETE_OUTCOME_MARKED:
            request.request_id = ""
    for kind in ("Node", "Pod", "PodGroup"):
        try:
            page = await client.list_objects(ListRequest(kind=kind, page_size=1))
        except NotFoundError:
            return
        if page.objects:
            raise click.UsageError(
                f"the cluster {client.cluster!r} holds objects: name another by --cluster, or use --replace"
            )


def _write(record: Record, folder: Path) -> None:
    from muster.cli.replay_picture import draw

    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record.report(), indent=2) + "\n"
    (folder / "report.json").write_text(text, encoding="utf-8")
    lines = "\n".join(["trace_seconds,gang,pod,node", *record.placements()]) + "\n"
    (folder / "placements.csv").write_text(lines, encoding="utf-8")
    draw(record, folder / "replay.png")


def _show(record: Record, folder: Path | None) -> None:
    figures = record.report()
    rows = [(key.replace("_", " "), _shown(value)) for key, value in figures.items() if key not in _OWN_LINES]
    show(table(("FIGURE", "VALUE"), rows))
    reasons = grouped(record.waiting_reasons.items())
    for reason, count in list(reasons.items())[:REASONS_SHOWN]:
        show(escape(f"{count} waiting: {reason}"))
    for fault in record.faults:
        show(f"[red]{escape(fault)}[/]")
    verdict = "no node over-committed, no half gang" if not record.faults else "[red]faults found[/]"
    show(f"{record.checks} checks of the stored state: {verdict}")
    if folder is not None:
        show(escape(f"report.json, placements.csv and replay.png are in {folder}"))


_OWN_LINES = frozenset({"waiting_reasons", "checks"})


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(part)}" for key, part in value.items())
    return NONE if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
