"""The command that asks what would be: `muster simulate`, and how its answer is shown.

A few units are shown as trees, many as a table with one line each; then what is in use, by resource and by domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

import click
from rich.markup import escape

from muster.cli.decision_views import code_name, decision_line, outcome_words, result_tree, search_line
from muster.cli.kinds import ref_of, shown_ref
from muster.cli.output import print_message, show, table
from muster.cli.session import TABLE, Session, call, client_command
from muster.cli.tree_drawing import number_of
from muster.cli.units import Duration, exit_unless
from muster.client.manifests import Manifests, read_paths
from muster.v1.decision_pb2 import Decision, DisruptionUnit
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.scheduler_service_pb2 import (
    InlineBase,
    Overlay,
    SimulateRequest,
    SimulateResponse,
)
from muster.v1.simulation_pb2 import DomainUse, ResourceUse

TREES_SHOWN = 3
UNITS_SHOWN = 40
DOMAINS_SHOWN = 12
VICTIMS_SHOWN = 12
_BYTES = frozenset({"memory", "ephemeral-storage", "storage"})
_GIBI = 1 << 30
_SETTLED = frozenset({"SCHEDULED", "UNCHANGED"})


@click.command()
@client_command
@click.option("-f", "--file", "paths", multiple=True, metavar="FILE|DIR|-", help="Manifests that are put.")
@click.option("--inline", is_flag=True, help="Start from nothing but the manifests, instead of the cluster.")
@click.option("--remove", "removed", multiple=True, metavar="KIND/NAME", help="Objects that are taken away.")
@click.option("--drain", "drained", multiple=True, metavar="NODE", help="Nodes that are emptied.")
@click.option("--unit", "units", multiple=True, metavar="KIND/NAME", help="Units to decide, in this order.")
@click.option(
    "--queue", "whole_queue", is_flag=True, help="Decide the whole queue, as without units in the manifests."
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
    whole_queue: bool,
    without_preemption: bool,
    time_limit: timedelta | None,
) -> None:
    """Show what would be decided if objects were added or taken away. Stores nothing.

    Decides the units of the manifests, or those named by --unit; else the whole queue. Exit status 1 if a unit would not
    be scheduled.
    """
    if units and whole_queue:
        raise click.UsageError("--unit and --queue exclude each other")
    manifests = call(session, lambda _: _read(paths))
    named = [ref_of(each, session.namespace) for each in units]
    if not named and not whole_queue:
        named = list(roots(manifests.objects))
    request = SimulateRequest(
        overlay=Overlay(removed=[ref_of(each, session.namespace) for each in removed], drained_nodes=drained),
        units=named,
        whole_queue=not named,
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
        _show(response)
    exit_unless(not response.totals.unscheduled_units and not response.partial)


async def _read(paths: Sequence[str]) -> Manifests:
    return read_paths(paths)


def roots(objects: Iterable[Object]) -> Iterator[ObjectRef]:
    """The units among objects: groups without a parent, pods without a group and a node; in their order."""
    for item in objects:
        kind = item.WhichOneof("kind")
        if (
            kind == "composite_pod_group"
            and not item.composite_pod_group.spec.parent_composite_pod_group_name
        ):
            metadata = item.composite_pod_group.metadata
            yield ObjectRef(kind="CompositePodGroup", namespace=metadata.namespace, name=metadata.name)
        elif kind == "pod_group" and not item.pod_group.spec.parent_composite_pod_group_name:
            metadata = item.pod_group.metadata
            yield ObjectRef(kind="PodGroup", namespace=metadata.namespace, name=metadata.name)
        elif (
            kind == "pod"
            and not item.pod.spec.scheduling_group.pod_group_name
            and not item.pod.spec.node_name
        ):
            metadata = item.pod.metadata
            yield ObjectRef(kind="Pod", namespace=metadata.namespace, name=metadata.name)


def _show(response: SimulateResponse) -> None:
    if len(response.decisions) <= TREES_SHOWN:
        _show_trees(response.decisions)
    else:
        _show_units(response.decisions)
    _show_victims(response.decisions)
    _show_use(response)
    show(_sums(response))
    if response.partial:
        show("[yellow]partial: not every unit was decided[/]")


def _show_trees(decisions: Iterable[Decision]) -> None:
    for decision in decisions:
        show(decision_line(decision))
        for line in search_line(decision.search):
            show(line)
        if decision.HasField("result"):
            show(result_tree(decision.result))


def _show_units(decisions: Sequence[Decision]) -> None:
    """Those that would not be scheduled first: they are what one looks for."""
    ordered = sorted(decisions, key=lambda decision: code_name(decision) in _SETTLED)
    rows = [
        (
            escape(shown_ref(decision.unit)),
            outcome_words(decision),
            str(_placed(decision)),
            escape(_where(decision)),
        )
        for decision in ordered[:UNITS_SHOWN]
    ]
    show(table(("UNIT", "OUTCOME", "PODS", "WHERE OR WHY"), rows))
    if len(ordered) > UNITS_SHOWN:
        show(f"and {len(ordered) - UNITS_SHOWN} more units; -o json has all")


def _placed(decision: Decision) -> int:
    return len(decision.assignments.pods) or len(decision.preemption.nominations.pods)


def _where(decision: Decision) -> str:
    columns = decision.assignments if decision.assignments.pods else decision.preemption.nominations
    if not columns.pods:
        return decision.message
    counts = Counter(columns.nodes[place] for place in columns.node_index)
    return f"{number_of(len(counts), 'node')}, most on {counts.most_common(1)[0][0]}"


def _show_victims(decisions: Iterable[Decision]) -> None:
    victims = [(decision, each) for decision in decisions for each in decision.preemption.victims]
    if not victims:
        return
    rows = [_victim(decision, unit) for decision, unit in victims[:VICTIMS_SHOWN]]
    show(table(("EVICTED", "PRIORITY", "PODS", "OVER BUDGET", "FOR"), rows))
    if len(victims) > VICTIMS_SHOWN:
        show(f"and {len(victims) - VICTIMS_SHOWN} more; -o json has all")


def _victim(decision: Decision, unit: DisruptionUnit) -> tuple[str, ...]:
    over = "yes" if unit.violates_budget else "no"
    pods = str(len(unit.pods))
    return (escape(shown_ref(unit.ref)), str(unit.priority), pods, over, escape(shown_ref(decision.unit)))


def _show_use(response: SimulateResponse) -> None:
    totals = response.totals
    if totals.resources:
        show(
            table(
                ("RESOURCE", "BEFORE", "AFTER", "OF", "SHARE", "IN PIECES"),
                map(_resource_row, totals.resources),
            )
        )
    if totals.domains:
        names = [use.resource for use in totals.resources]
        fullest = sorted(totals.domains, key=lambda domain: (domain.key, -_fullest(domain), domain.value))
        rows = [_domain_row(domain, names) for domain in fullest[:DOMAINS_SHOWN]]
        show(table(("DOMAIN", "NODES", *(escape(name.upper()) for name in names)), rows))
        if len(fullest) > DOMAINS_SHOWN:
            show(f"and {len(fullest) - DOMAINS_SHOWN} more domains; -o json has all")


def _resource_row(use: ResourceUse) -> tuple[str, ...]:
    amounts = (_amount(use.resource, text) for text in (use.used_before, use.used, use.allocatable))
    return (escape(use.resource), *amounts, f"{use.utilization:.1%}", f"{use.fragmentation:.1%}")


def _domain_row(domain: DomainUse, names: Sequence[str]) -> tuple[str, ...]:
    shares = {use.resource: f"{use.utilization:.0%}" for use in domain.resources}
    return (
        escape(f"{domain.key}={domain.value}"),
        str(domain.nodes),
        *(shares.get(name, "-") for name in names),
    )


def _fullest(domain: DomainUse) -> float:
    return max((use.utilization for use in domain.resources), default=0.0)


def _amount(resource: str, text: str) -> str:
    """Bytes in Gi, all else as it is."""
    return f"{int(text) / _GIBI:.1f}Gi" if resource in _BYTES and text.isdecimal() else text


def _sums(response: SimulateResponse) -> str:
    totals = response.totals
    return (
        f"{number_of(totals.units, 'unit')}: {totals.scheduled_units} scheduled, {totals.preempting_units} after "
        f"preemption, {totals.unscheduled_units} not; {number_of(totals.placed_pods, 'pod')} placed, "
        f"{totals.pending_pods} pending, {totals.victim_pods} evicted"
    )
