"""A hierarchy as it is now: which groups hold, where their pods run, and what the last decision says of the rest.

Read from objects and one decision record; a domain is the label of the nodes on which a group's pods run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.markup import escape

from muster.cli.decision_views import decision_line, domain_remarks, outcome_words, search_line
from muster.cli.kinds import ref, shown_ref
from muster.cli.object_tables import STYLES, judgement, pod_state
from muster.cli.tree_drawing import Branch, drawn, held_of, number_of, short_domain, short_ref
from muster.client.client import Client
from muster.client.errors import NotFoundError
from muster.v1.cluster_service_pb2 import GetRequest, ListRequest
from muster.v1.composite_pod_group_pb2 import CompositePodGroup
from muster.v1.decision_pb2 import Decision, GroupResult
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.pod_group_pb2 import PodGroup
from muster.v1.pod_pb2 import Pod
from muster.v1.scheduler_service_pb2 import ListDecisionsRequest

GROUPS = ("PodGroup", "CompositePodGroup")
PENDING = "Pending"
ENDED = frozenset({"Succeeded", "Failed", "Leaving"})

AnyGroup = PodGroup | CompositePodGroup


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A group and all below it. `labels` are those of nodes that tell a domain; `decision` is the unit's last one."""

    top: ObjectRef
    groups: Mapping[tuple[str, str], AnyGroup]
    pods: Sequence[Pod]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    decision: Decision | None = None


async def read_hierarchy(client: Client, top: ObjectRef) -> Hierarchy:
    """Everything below a group. Raises MusterError, NOT_FOUND for a group that does not exist."""
    found = await client.get(GetRequest(ref=top))
    kept = getattr(found.object, found.object.WhichOneof("kind") or "")
    namespace = kept.metadata.namespace
    named = ref(top.kind, top.name, namespace)
    groups: dict[tuple[str, str], AnyGroup] = {}
    for kind in GROUPS:
        async for listed in client.list_all(ListRequest(kind=kind, namespace=namespace, group=named)):
            group = listed.pod_group if kind == "PodGroup" else listed.composite_pod_group
            groups[kind, group.metadata.name] = group
    request = ListRequest(kind="Pod", namespace=namespace, group=named)
    pods = [listed.pod async for listed in client.list_all(request)]
    known = Hierarchy(named, groups, pods)
    unit = await _root(client, named, kept.spec.parent_composite_pod_group_name)
    return Hierarchy(named, groups, pods, await _labels(client, known), await _last_decision(client, unit))


def hierarchy_view(hierarchy: Hierarchy) -> RenderableType:
    """The tree, and the last decision below it."""
    results = dict(_results(hierarchy.decision.result)) if hierarchy.decision is not None else {}
    key = (hierarchy.top.kind, hierarchy.top.name)
    parts: list[RenderableType] = [
        escape(_headline(hierarchy.groups[key])),
        drawn(_branch(hierarchy, results, key, "")),
    ]
    if hierarchy.decision is not None:
        parts.append(f"decision {escape(hierarchy.decision.id)}: {_outcome(hierarchy.decision)}")
        parts += search_line(hierarchy.decision.search)
    return Group(*parts)


async def _root(client: Client, named: ObjectRef, parent: str) -> ObjectRef:
    """The topmost group that exists above a group; a cycle ends where it closes."""
    seen = {(named.kind, named.name)}
    while parent and ("CompositePodGroup", parent) not in seen:
        seen.add(("CompositePodGroup", parent))
        above = ref("CompositePodGroup", parent, named.namespace)
        try:
            found = await client.get(GetRequest(ref=above))
        except NotFoundError:
            break
        named = above
        parent = found.object.composite_pod_group.spec.parent_composite_pod_group_name
    return named


async def _labels(client: Client, known: Hierarchy) -> dict[str, Mapping[str, str]]:
    """The labels of one node of each constrained group that has pods on nodes."""
    constrained = [key for key, group in known.groups.items() if group.spec.scheduling_constraints.topology]
    names = sorted({node for key in constrained if (node := _a_node(known, key))})
    answers = await asyncio.gather(
        *(client.get(GetRequest(ref=ref("Node", name))) for name in names), return_exceptions=True
    )
    return {
        name: dict(answer.object.node.metadata.labels)
        for name, answer in zip(names, answers, strict=True)
        if not isinstance(answer, BaseException)
    }


async def _last_decision(client: Client, unit: ObjectRef) -> Decision | None:
    listed = await client.list_decisions(ListDecisionsRequest(unit=unit, page_size=1))
    return listed.decisions[0] if listed.decisions else None


def _results(result: GroupResult) -> Iterator[tuple[tuple[str, str], GroupResult]]:
    yield (result.ref.kind, result.ref.name), result
    for child in result.children:
        yield from _results(child)


def _outcome(decision: Decision) -> str:
    """What the last decision came to; why nothing was placed stands in the tree already."""
    return decision_line(decision) if decision.assignments.pods else outcome_words(decision)


def _headline(group: AnyGroup) -> str:
    spec = group.spec
    words = [f"{shown_ref(ref(type(group).__name__, group.metadata.name, group.metadata.namespace))}:"]
    if spec.parent_composite_pod_group_name:
        words.append(f"below cpg/{spec.parent_composite_pod_group_name},")
    if spec.HasField("workload_ref"):
        words.append(f"template {spec.workload_ref.template_name} of {spec.workload_ref.workload_name},")
    return " ".join([*words, f"priority {spec.priority}"])


def _branch(
    hierarchy: Hierarchy, results: Mapping[tuple[str, str], GroupResult], key: tuple[str, str], above: str
) -> Branch:
    """The line of a group and those below it; `above` is the message that was said last on the way down."""
    group = hierarchy.groups[key]
    status, reason, message = judgement(group)
    says = status == "False" and not _repeats(hierarchy, message, above)
    said = message if says else above
    children = [_branch(hierarchy, results, child, said) for child in _children(hierarchy, key)]
    result = results.get(key)
    counts, pods, remarks = _counts(hierarchy, key)
    return Branch(
        name=short_ref(ref(*key)),
        state=reason or PENDING,
        style=STYLES.get(status, "dim"),
        counts=counts,
        pods=pods,
        domain=_domain(hierarchy, key),
        remarks=(*remarks, *(domain_remarks(result) if result is not None else ())),
        notes=(message,) if says else (),
        children=children,
    )


def _repeats(hierarchy: Hierarchy, message: str, above: str) -> bool:
    """Whether a message is empty, part of what was said above, or only names a group of the tree with its own."""
    named = (
        f"{kind} {group.metadata.namespace}/{name}: " for (kind, name), group in hierarchy.groups.items()
    )
    return message in above or message.startswith(tuple(named))


def _counts(hierarchy: Hierarchy, key: tuple[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """What holds of what is needed, the pods on nodes, and what is left over."""
    group = hierarchy.groups[key]
    members = _members(hierarchy, key)
    placed = [pod for pod in members if pod.spec.node_name]
    if isinstance(group, PodGroup):
        left = len(members) - len(placed)
        counts = held_of(len(placed), _needed(group), "pod")
        return counts, "", (f"{left} pending",) if left else ()
    held = sum(_holds(hierarchy, child) for child in _children(hierarchy, key))
    return held_of(held, _needed(group), "group"), number_of(len(placed), "pod"), ()


def _holds(hierarchy: Hierarchy, key: tuple[str, str]) -> bool:
    """Whether a group's minimum is on nodes, whatever its condition says of the past."""
    group = hierarchy.groups[key]
    if isinstance(group, PodGroup):
        held = sum(bool(pod.spec.node_name) for pod in _members(hierarchy, key))
    else:
        held = sum(_holds(hierarchy, child) for child in _children(hierarchy, key))
    return held >= _needed(group)


def _needed(group: AnyGroup) -> int:
    if isinstance(group, PodGroup):
        policy = group.spec.scheduling_policy
        return policy.gang.min_count if policy.HasField("gang") else 1
    groups = group.spec.scheduling_policy
    return groups.gang.min_group_count if groups.HasField("gang") else 1


def _children(hierarchy: Hierarchy, key: tuple[str, str]) -> list[tuple[str, str]]:
    """Keys of the groups right below, in order of creation; the top group is below nothing, even in a cycle."""
    if key[0] == "PodGroup":
        return []
    below = [
        (group.metadata.creation_timestamp.ToNanoseconds(), child[1], child)
        for child, group in hierarchy.groups.items()
        if group.spec.parent_composite_pod_group_name == key[1]
        and child != (hierarchy.top.kind, hierarchy.top.name)
    ]
    return [child for *_, child in sorted(below)]


def _members(hierarchy: Hierarchy, key: tuple[str, str]) -> list[Pod]:
    """Pods of the subtree that run or wait, in their order."""
    if key[0] == "PodGroup":
        return [
            pod
            for pod in hierarchy.pods
            if pod.spec.scheduling_group.pod_group_name == key[1] and pod_state(pod) not in ENDED
        ]
    return [pod for child in _children(hierarchy, key) for pod in _members(hierarchy, child)]


def _a_node(hierarchy: Hierarchy, key: tuple[str, str]) -> str:
    return next((pod.spec.node_name for pod in _members(hierarchy, key) if pod.spec.node_name), "")


def _domain(hierarchy: Hierarchy, key: tuple[str, str]) -> str:
    topology = hierarchy.groups[key].spec.scheduling_constraints.topology
    labels = hierarchy.labels.get(_a_node(hierarchy, key), {})
    if not topology or topology[0].key not in labels:
        return ""
    return short_domain(topology[0].key, labels[topology[0].key])
