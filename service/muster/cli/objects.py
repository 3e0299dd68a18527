"""Commands on objects: apply, get, delete, watch."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta

import click
from google.protobuf.message import Message
from rich.markup import escape

from muster.cli.decision_views import decision_line
from muster.cli.group_tree import hierarchy_view
from muster.cli.hierarchy import GROUPS, read_hierarchy
from muster.cli.kinds import kind_of, kinds_of, metadata_of, ref, ref_of, shown_ref
from muster.cli.object_tables import object_table, pod_state
from muster.cli.output import print_line, print_manifests, print_message, progress, show
from muster.cli.session import JSON, TABLE, YAML, Session, call, client_command
from muster.cli.units import LARGEST_NUMBER, SCHEDULED, Duration, exit_unless
from muster.client.client import Client
from muster.client.manifest_kinds import CLUSTER_SCOPED, KINDS
from muster.client.manifests import Manifests, read_paths
from muster.client.watches import watch_decisions, watch_objects
from muster.v1.cluster_service_pb2 import (
    ApplyRequest,
    ApplyResponse,
    ApplyResult,
    DeleteRequest,
    DeleteTarget,
    Event,
    EventType,
    GetRequest,
    GetResponse,
    ListRequest,
    ListResponse,
    Propagation,
    WatchRequest,
)
from muster.v1.object_pb2 import Object
from muster.v1.outcome_pb2 import ApplyOutcome, DeleteOutcome
from muster.v1.scheduler_service_pb2 import WatchDecisionsRequest

OBJECTS_PER_CALL = 20_000
BYTES_PER_CALL = 48 << 20
LINES_SHOWN = 60
DECISIONS = "decisions"


@click.command()
@client_command
@click.option(
    "-f", "--file", "paths", multiple=True, required=True, metavar="FILE|DIR|-", help="Manifests to apply."
)
@click.option("--dry-run", is_flag=True, help="Check everything, store nothing.")
@click.option("--strict", is_flag=True, help="Refuse manifests with fields that Muster does not read.")
@click.option(
    "--match-version", is_flag=True, help="Refuse objects that changed since their resourceVersion."
)
@click.option(
    "--wait",
    type=Duration(),
    metavar="TIME",
    help="Show what was decided on the units, for this long until they are scheduled, such as 30s; status 1 if one is not.",
)
def apply(
    session: Session,
    paths: Sequence[str],
    *,
    dry_run: bool,
    strict: bool,
    match_version: bool,
    wait: timedelta | None,
) -> None:
    """Store the objects of Kubernetes manifests, all or none."""
    manifests = call(session, lambda _: _read(paths, strict=strict, match_version=match_version))
    if not manifests.objects:
        raise click.UsageError(f"there are no objects in {', '.join(paths)}")
    for dropped in manifests.dropped:
        click.echo(f"note: {dropped}", err=True)
    objects = [_in_namespace(each, session.namespace) for each in manifests.objects]
    requests = [ApplyRequest(objects=part, validate_only=dry_run) for part in _parts(objects)]
    if wait is not None:
        if len(requests) > 1:
            raise click.UsageError("--wait is for objects that fit in one call")
        requests[0].wait.FromTimedelta(wait)
    response = call(session, lambda client: _apply_all(client, requests), manifests.origins)
    if session.output != TABLE:
        print_message(response, session.output)
    else:
        _show_results(objects, response.results, " (dry run)" if dry_run else "")
        for decision in response.decisions:
            show(decision_line(decision))
    exit_unless(all(each.code in SCHEDULED for each in response.decisions))


async def _read(paths: Sequence[str], *, strict: bool, match_version: bool) -> Manifests:
    manifests = read_paths(paths, match_version=match_version)
    if strict:
        manifests.require_nothing_dropped()
    return manifests


def _in_namespace(stored: Object, namespace: str) -> Object:
    """The object, in the namespace of the command if it names none itself."""
    metadata = metadata_of(stored)
    if namespace and not metadata.namespace and KINDS[stored.WhichOneof("kind") or ""] not in CLUSTER_SCOPED:
        metadata.namespace = namespace
    return stored


def _parts(objects: Sequence[Object]) -> Iterator[list[Object]]:
    """Parts that fit in one call each; one part wherever that is possible, for only a part is all or none."""
    part: list[Object] = []
    size = 0
    for stored in objects:
        if len(part) == OBJECTS_PER_CALL or (part and size + stored.ByteSize() > BYTES_PER_CALL):
            yield part
            part, size = [], 0
        part.append(stored)
        size += stored.ByteSize()
    yield part


async def _apply_all(client: Client, requests: Sequence[ApplyRequest]) -> ApplyResponse:
    response = ApplyResponse()
    with progress() as bar:
        applying = bar.add_task("applying", total=sum(len(each.objects) for each in requests), remark="")
        for request in requests:
            answer = await client.apply(request)
            response.revision = answer.revision
            response.results.extend(answer.results)
            response.decisions.extend(answer.decisions)
            bar.advance(applying, len(request.objects))
    return response


def _show_results(objects: Sequence[Object], results: Sequence[ApplyResult], remark: str) -> None:
    """A line an object, or a line a kind and outcome if there are too many."""
    kinds = [KINDS[each.WhichOneof("kind") or ""] for each in objects]
    outcomes = [_word(ApplyOutcome.Name(each.outcome)) for each in results]
    if len(objects) <= LINES_SHOWN:
        for kind, stored, outcome in zip(kinds, objects, outcomes, strict=True):
            metadata = metadata_of(stored)
            click.echo(f"{shown_ref(ref(kind, metadata.name, metadata.namespace))} {outcome}{remark}")
        return
    for (kind, outcome), count in Counter(zip(kinds, outcomes, strict=True)).items():
        click.echo(f"{kind}: {count} {outcome}{remark}")


def _word(name: str) -> str:
    """The last word of an enum value: APPLY_OUTCOME_CREATED is "created"."""
    return name.rpartition("_")[2].lower()


@click.command()
@client_command
@click.argument("kinds", metavar="[KIND]", required=False)
@click.argument("name", required=False)
@click.option("-l", "--selector", metavar="KEY=VALUE,...", help="Objects with these labels.")
@click.option("--group", metavar="KIND/NAME", help="Pods and groups below this group.")
@click.option("--node", "node_name", default="", metavar="NAME", help="Pods on this node.")
@click.option("--unbound", is_flag=True, help="Pods without a node.")
def get(  # noqa: PLR0913 - one a filter
    session: Session,
    kinds: str | None,
    name: str | None,
    *,
    selector: str | None,
    group: str | None,
    node_name: str,
    unbound: bool,
) -> None:
    """Show objects: of a KIND, of several ("nodes,pods"), of all; or the one with a NAME, a group with its tree.

    Without --namespace lists show all namespaces. With -o yaml they are manifests that `muster apply` takes.
    """
    if kinds and "/" in kinds:
        kinds, _, name = kinds.partition("/")
    if name is not None:
        _get_one(session, kind_of(kinds or ""), name)
        return
    request = ListRequest(namespace=session.namespace, node_name=node_name, unbound=unbound)
    if group:
        request.group.CopyFrom(ref_of(group, session.namespace))
    if selector:
        request.label_selector.match_labels.update(_labels(selector))
    listed = call(session, lambda client: _list(client, request, kinds_of(kinds)))
    _show_lists(listed, session.output)


def _labels(selector: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in selector.split(",")]
    if not all(key and equals for key, equals, _ in pairs):
        raise click.BadParameter(f"{selector!r} is not KEY=VALUE,...")
    return {key: value for key, _, value in pairs}


def _get_one(session: Session, kind: str, name: str) -> None:
    named = ref(kind, name, session.namespace)
    if kind in GROUPS and session.output == TABLE:
        show(hierarchy_view(call(session, lambda client: read_hierarchy(client, named))))
        return
    request = GetRequest(ref=named)

    async def read(client: Client) -> GetResponse:
        return await client.get(request)

    response = call(session, read)
    if session.output == JSON:
        print_message(response, JSON)
    else:
        _show_lists({kind: ListResponse(objects=[response.object])}, session.output)


async def _list(client: Client, request: ListRequest, kinds: Sequence[str]) -> dict[str, ListResponse]:
    lists = {}
    for kind in kinds:
        request.kind = kind
        request.page_token = ""
        whole = ListResponse()
        async for page in _pages(client, request):
            whole.objects.extend(page.objects)
            whole.revision = page.revision
        lists[kind] = whole
    return lists


async def _pages(client: Client, request: ListRequest) -> AsyncIterator[ListResponse]:
    while True:
        page = await client.list_objects(request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _show_lists(lists: dict[str, ListResponse], output: str) -> None:
    if output == YAML:
        print_manifests([stored for each in lists.values() for stored in each.objects])
    elif output == JSON:
        whole = ListResponse(revision=max(each.revision for each in lists.values()))
        for each in lists.values():
            whole.objects.extend(each.objects)
        print_message(whole, JSON)
    else:
        _show_tables({kind: list(each.objects) for kind, each in lists.items()})


def _show_tables(lists: dict[str, list[Object]]) -> None:
    filled = {kind: objects for kind, objects in lists.items() if objects}
    for kind, objects in filled.items():
        if len(lists) > 1:
            show(f"[bold]{kind}[/]")
        show(object_table(kind, objects))
        if len(lists) > 1:
            click.echo()
    if not filled:
        click.echo("nothing found", err=True)


@click.command()
@client_command
@click.argument("refs", nargs=-1, required=True, metavar="KIND/NAME...")
@click.option("--force", is_flag=True, help="Remove groups although they have members.")
@click.option("--ignore-missing", is_flag=True, help="Succeed if an object does not exist.")
@click.option(
    "--grace-period",
    type=click.IntRange(0, LARGEST_NUMBER),
    metavar="SECONDS",
    help="For pods, instead of their own.",
)
@click.option(
    "--propagation",
    type=click.Choice(["background", "foreground", "orphan"]),
    default="background",
    show_default=True,
)
@click.option("--dry-run", is_flag=True, help="Check everything, delete nothing.")
def delete(  # noqa: PLR0913 - one an option
    session: Session,
    refs: Sequence[str],
    *,
    force: bool,
    ignore_missing: bool,
    grace_period: int | None,
    propagation: str,
    dry_run: bool,
) -> None:
    """Delete objects, all or none. Groups with members, and pods with a grace period, are marked and go later."""
    request = DeleteRequest(
        refs=[DeleteTarget(ref=ref_of(each, session.namespace)) for each in refs],
        propagation=Propagation.Value(f"PROPAGATION_{propagation.upper()}"),
        allow_missing=ignore_missing,
        force=force,
        validate_only=dry_run,
        grace_period_seconds=grace_period,
    )
    response = call(session, lambda client: client.delete(request))
    if session.output != TABLE:
        print_message(response, session.output)
        return
    for target, outcome in zip(request.refs, response.outcomes, strict=True):
        remark = " (dry run)" if dry_run else ""
        click.echo(f"{shown_ref(target.ref)} {_word(DeleteOutcome.Name(outcome))}{remark}")


@click.command()
@client_command
@click.argument("kinds", metavar="[KIND|decisions]", required=False)
@click.option(
    "--from-revision",
    type=click.IntRange(0, LARGEST_NUMBER),
    help="Changes after this revision, instead of the present state first.",
)
def watch(session: Session, kinds: str | None, from_revision: int | None) -> None:
    """Print changes of objects, or decisions, as they happen, until stopped."""
    if kinds is not None and kinds.lower() == DECISIONS:
        request = WatchDecisionsRequest(from_revision=from_revision)
        call(session, lambda client: _follow_decisions(client, request, session.output))
        return
    wanted = kinds_of(kinds) if kinds else []
    watching = WatchRequest(kinds=wanted, namespace=session.namespace, from_revision=from_revision)
    call(session, lambda client: _follow_objects(client, watching, session.output))


async def _follow_objects(client: Client, request: WatchRequest, output: str) -> None:
    async for changes in watch_objects(client, request):
        if changes.restarted:
            click.echo("note: changes were lost, the present state follows", err=True)
        for event in changes.events:
            _print(event, _event_line(event), output)


async def _follow_decisions(client: Client, request: WatchDecisionsRequest, output: str) -> None:
    async for batch in watch_decisions(client, request):
        if batch.restarted:
            click.echo("note: decisions were lost", err=True)
        for decision in batch.decisions:
            _print(decision, decision_line(decision), output)


def _print(message: Message, line: str, output: str) -> None:
    if output == TABLE:
        show(line)
    else:
        print_line(message)


def _event_line(event: Event) -> str:
    kind = KINDS[event.object.WhichOneof("kind") or ""]
    metadata = metadata_of(event.object)
    word = _word(EventType.Name(event.type)).upper()
    facts = f"revision {metadata.resource_version}"
    if kind == "Pod":
        pod = event.object.pod
        facts = f"{pod_state(pod)}{f' on {pod.spec.node_name}' if pod.spec.node_name else ''}, {facts}"
    named = shown_ref(ref(kind, metadata.name, metadata.namespace))
    return escape(f"{word:<8} {named} {facts}")
