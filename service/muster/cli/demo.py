"""`muster demo`: a service with the example cluster on it, to look at and to call.

Starts `muster serve` as anybody would, applies the examples file by file, prints each decision as it commits and then
serves on. On a store that has the examples already nothing is changed, also where some of them were deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from muster.cli.decision_views import decision_line
from muster.cli.faults import explained
from muster.cli.idle import until_idle
from muster.cli.object_tables import object_table
from muster.cli.output import show, show_whole
from muster.cli.server_process import ServerStartError, serving
from muster.client.client import Client
from muster.client.errors import MusterError
from muster.client.manifest_documents import SUFFIXES, DocumentError
from muster.client.manifests import ManifestError, read_paths
from muster.client.watches import watch_decisions
from muster.v1.cluster_service_pb2 import ApplyRequest, ListRequest
from muster.v1.decision_pb2 import Assignments
from muster.v1.outcome_pb2 import ApplyOutcome
from muster.v1.scheduler_service_pb2 import WatchDecisionsRequest

EXAMPLES = Path(__file__).resolve().parents[3] / "clients" / "examples"
CREATED, UNCHANGED = ApplyOutcome.APPLY_OUTCOME_CREATED, ApplyOutcome.APPLY_OUTCOME_UNCHANGED
# How long a decision may be on its way to a watcher after the queue is idle.
QUIET_SECONDS = 0.5
HINTS = """
[bold]The service is at {address}.[/] In another terminal:
{activation}  export MUSTER_SERVER={address}
  muster get pods                            [dim]# where everything is[/]
  muster queue                               [dim]# what waits, and why[/]
  muster watch decisions                     [dim]# each decision as it commits, until Ctrl-C[/]
  muster delete pod/trainer-0 pod/trainer-1  [dim]# makes room for the gang sweep[/]
  {python} {example} {address}  [dim]# a client made of the stubs alone[/]
[dim]the log is {log}[/]
Ctrl-C stops the service; what it stored stays."""


@click.command()
@click.option(
    "--store", default="sqlite:///./muster.db", show_default=True, metavar="URL", help="Where all is kept."
)
@click.option(
    "--listen", default="127.0.0.1:50051", show_default=True, metavar="HOST:PORT", help="Port 0 picks one."
)
@click.option(
    "--examples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=EXAMPLES,
    help="Folder of manifests, applied file by file.",
)
@click.option("--once", is_flag=True, help="Stop when the examples are decided, instead of serving on.")
def demo(store: str, listen: str, examples: Path, *, once: bool) -> None:
    """Schedule the example workloads on a service of its own, and serve on until Ctrl-C."""
    files = sorted(path for path in examples.iterdir() if path.suffix in SUFFIXES)
    if not files:
        raise click.UsageError(f"there are no manifests in {examples}")
    try:
        status = asyncio.run(_demo(["--listen", listen, "--store", store], files, once=once))
    except (ServerStartError, MusterError, ManifestError, DocumentError, OSError) as error:
        click.echo(explained(error), err=True)
        raise click.exceptions.Exit(1) from error
    raise click.exceptions.Exit(status)


async def _demo(arguments: Sequence[str], files: Sequence[Path], *, once: bool) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    log = Path(tempfile.mkdtemp(prefix="muster-demo-")) / "muster.log"
    async with serving(arguments, log) as server:
        stopped = asyncio.create_task(stopping.wait())
        showing = asyncio.create_task(_show_examples(server.address, files))
        await asyncio.wait({showing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not showing.done():
            showing.cancel()
            return 0
        showing.result()
        if once:
            stopped.cancel()
            return 0
        show_whole(_hints(server.address, log))
        ended = asyncio.create_task(server.process.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            click.echo("stopping")
            return 0
        raise ServerStartError(f"the service ended with status {ended.result()}; its log is {log}")


async def _show_examples(address: str, files: Sequence[Path]) -> None:
    async with Client(address) as client:
        start = await client.list_objects(ListRequest(kind="PodGroup", page_size=1))
        printing = _Printing(start.revision)
        following = asyncio.create_task(printing.follow(client))
        try:
            for path in files:
                await _apply(client, path)
                await printing.reach((await until_idle(client)).revision)
        finally:
            following.cancel()
        groups = [each async for each in client.list_all(ListRequest(kind="PodGroup"))]
    click.echo()
    show(object_table("PodGroup", groups))


async def _apply(client: Client, path: Path) -> None:
    """Says what is applied first, so that decisions stand below their cause.

    Of a file that is stored already only changes are applied: what somebody deleted since, to make room, stays away.
    """
    objects = read_paths([str(path)]).objects
    show(f"[dim]{escape(path.name)}: {len(objects)} objects[/]")
    tried = await client.apply(ApplyRequest(objects=objects, validate_only=True))
    outcomes = [each.outcome for each in tried.results]
    there = [each for each, outcome in zip(objects, outcomes, strict=True) if outcome != CREATED]
    if all(outcome in {CREATED, UNCHANGED} for outcome in outcomes) and there:
        deleted = len(objects) - len(there)
        show(f"[dim]  as they are stored already{f', {deleted} deleted since' if deleted else ''}[/]")
        return
    await client.apply(ApplyRequest(objects=there or objects))


class _Printing:
    """Prints decisions as they commit, and knows how far it is."""

    def __init__(self, revision: int) -> None:
        self._revision = revision
        self._moved = asyncio.Event()

    async def follow(self, client: Client) -> None:
        async for batch in watch_decisions(client, WatchDecisionsRequest(from_revision=self._revision)):
            for decision in batch.decisions:
                show(decision_line(decision))
                for line in _places(decision.assignments):
                    show(f"  {escape(line)}")
            self._revision = batch.revision
            self._moved.set()

    async def reach(self, revision: int) -> None:
        """Lets what is on its way be printed: until the revision, or until nothing more comes."""
        with contextlib.suppress(TimeoutError):
            while self._revision < revision:
                self._moved.clear()
                await asyncio.wait_for(self._moved.wait(), QUIET_SECONDS)


def _places(assignments: Assignments) -> list[str]:
    """A line a node: its name and the pods that go there."""
    pods: defaultdict[str, list[str]] = defaultdict(list)
    for pod, index in zip(assignments.pods, assignments.node_index, strict=True):
        pods[assignments.nodes[index]].append(pod)
    return [f"{node}: {', '.join(names)}" for node, names in pods.items()]


def _hints(address: str, log: Path) -> str:
    """What may be typed in a terminal that is nowhere near here: with whole paths, and on the PATH what is used."""
    is_environment = sys.prefix != sys.base_prefix
    activate = f"  source {_typed(Path(sys.prefix) / 'bin' / 'activate')}\n"
    return HINTS.format(
        address=address,
        activation=activate if is_environment else "",
        python="python" if is_environment else _typed(Path(sys.executable)),
        example=_typed(EXAMPLES / "schedule_a_gang.py"),
        log=escape(str(log)),
    )


def _typed(path: Path) -> str:
    """A path as it is typed in a shell, as markup."""
    return escape(shlex.quote(str(path)))
