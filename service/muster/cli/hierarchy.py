"""A hierarchy as it is now: a group and all below it, read from the API, and counted by group.

What is drawn of it is `group_tree`'s. Broken hierarchies (cycles, chains of any length) are read and counted too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.cli.kinds import ref
from muster.cli.object_tables import pod_state
from muster.client.client import Client
from muster.client.errors import NotFoundError
from muster.v1.cluster_service_pb2 import GetRequest, ListRequest
from muster.v1.composite_pod_group_pb2 import CompositePodGroup
from muster.v1.decision_pb2 import Decision
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.node_pb2 import Node
from muster.v1.pod_group_pb2 import PodGroup
from muster.v1.pod_pb2 import Pod
from muster.v1.scheduler_service_pb2 import ListDecisionsRequest

COMPOSITE = "CompositePodGroup"
GROUPS = ("PodGroup", COMPOSITE)
ENDED = frozenset({"Succeeded", "Failed"})
LEAVING = "Leaving"
# A legal hierarchy has four levels; whoever climbs further reads all groups of the namespace instead.
GETS_UP = 4
NODES_ASKED_FOR = 100

AnyGroup = PodGroup | CompositePodGroup
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Tally:
    """What a group has.

    placed, nodes: its pods on nodes, those of groups below it included. waiting: pods of a leaf that have no node;
    leaving: how many are on their way out. held: of what its minimum counts, pods or groups, so many are on nodes.
    """

    placed: int
    nodes: frozenset[str]
    held: int
    needed: int
    waiting: Sequence[Pod] = ()
    leaving: int = 0

    @property
    def holds(self) -> bool:
        """Whether the minimum is on nodes, whatever the condition says of the past."""
        return self.held >= self.needed


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A group and all below it.

    children: keys of the groups right below each, in order of creation; the top group is below nothing, even in a
    cycle. labels: of the nodes of groups that must keep to a domain. decision: the unit's last one.
    """

    top: Key
    groups: Mapping[Key, AnyGroup]
    children: Mapping[Key, Sequence[Key]]
    tallies: Mapping[Key, Tally]
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    decision: Decision | None = None


async def read_hierarchy(client: Client, top: ObjectRef) -> Hierarchy:
    """Everything below a group. Raises MusterError, NOT_FOUND for a group that does not exist."""
    found = await client.get(GetRequest(ref=top))
    kept = getattr(found.object, found.object.WhichOneof("kind") or "")
    named = ref(top.kind, top.name, kept.metadata.namespace)
    groups: dict[Key, AnyGroup] = {}
    for kind in GROUPS:
        request = ListRequest(kind=kind, namespace=named.namespace, group=named)
        async for listed in client.list_all(request):
            group = listed.pod_group if kind == "PodGroup" else listed.composite_pod_group
            groups[kind, group.metadata.name] = group
    request = ListRequest(kind="Pod", namespace=named.namespace, group=named)
    pods = [listed.pod async for listed in client.list_all(request)]
    key = (top.kind, top.name)
    children = _children(groups, key)
    tallies = _tallies(groups, children, pods, key)
    unit = await _root(client, named, kept.spec.parent_composite_pod_group_name)
    labels = await _labels(client, _pinning_nodes(groups, tallies))
    return Hierarchy(key, groups, children, tallies, labels, await _last_decision(client, unit))


def is_marked(stored: AnyGroup) -> bool:
    """Whether the object is being deleted."""
    return stored.metadata.HasField("deletion_timestamp")


def below(children: Mapping[Key, Sequence[Key]], top: Key) -> Iterator[Key]:
    """The group and all below it, parents first."""
    level: Sequence[Key] = [top]
    while level:
        yield from level
        level = [child for key in level for child in children.get(key, ())]


async def _root(client: Client, named: ObjectRef, parent: str) -> ObjectRef:
    """The topmost group that exists above a group; a cycle ends where it closes."""
    seen = {(named.kind, named.name)}
    known: dict[str, str] = {}
    while parent and (COMPOSITE, parent) not in seen:
        if len(seen) > GETS_UP and not known:
            known = await _parents(client, named.namespace)
        above = known.get(parent) if known else await _parent(client, named.namespace, parent)
        if above is None:
            break
        seen.add((COMPOSITE, parent))
        named, parent = ref(COMPOSITE, parent, named.namespace), above
    return named


async def _parent(client: Client, namespace: str, name: str) -> str | None:
    """The parent of a composite, "" of a root; None if it does not exist."""
    try:
        found = await client.get(GetRequest(ref=ref(COMPOSITE, name, namespace)))
    except NotFoundError:
        return None
    return found.object.composite_pod_group.spec.parent_composite_pod_group_name


async def _parents(client: Client, namespace: str) -> dict[str, str]:
    """The parents of all composites of a namespace."""
    request = ListRequest(kind=COMPOSITE, namespace=namespace)
    groups = [listed.composite_pod_group async for listed in client.list_all(request)]
    return {group.metadata.name: group.spec.parent_composite_pod_group_name for group in groups}


def _children(groups: Mapping[Key, AnyGroup], top: Key) -> dict[Key, list[Key]]:
    found: defaultdict[Key, list[Key]] = defaultdict(list)
    in_order = sorted(
        groups, key=lambda key: (groups[key].metadata.creation_timestamp.ToNanoseconds(), key[1])
    )
    for key in in_order:
        parent = groups[key].spec.parent_composite_pod_group_name
        if parent and key != top:
            found[COMPOSITE, parent].append(key)
    return dict(found)


def _tallies(
    groups: Mapping[Key, AnyGroup], children: Mapping[Key, Sequence[Key]], pods: Iterable[Pod], top: Key
) -> dict[Key, Tally]:
    """Bottom-up, each group from those right below it."""
    members: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        members[pod.spec.scheduling_group.pod_group_name].append(pod)
    found: dict[Key, Tally] = {}
    for key in reversed(list(below(children, top))):
        group = groups[key]
        if isinstance(group, PodGroup):
            found[key] = _leaf_tally(group, members[key[1]])
        else:
            found[key] = _composite_tally(group, [found[child] for child in children.get(key, ())])
    return found


def _leaf_tally(group: PodGroup, members: Sequence[Pod]) -> Tally:
    states = [(pod, pod_state(pod)) for pod in members]
    live = [pod for pod, state in states if state not in ENDED and state != LEAVING]
    placed = [pod for pod in live if pod.spec.node_name]
    policy = group.spec.scheduling_policy
    return Tally(
        placed=len(placed),
        nodes=frozenset(pod.spec.node_name for pod in placed),
        held=len(placed),
        needed=policy.gang.min_count if policy.HasField("gang") else 1,
        waiting=[pod for pod in live if not pod.spec.node_name],
        leaving=sum(state == LEAVING for _, state in states),
    )


def _composite_tally(group: CompositePodGroup, parts: Sequence[Tally]) -> Tally:
    policy = group.spec.scheduling_policy
    return Tally(
        placed=sum(part.placed for part in parts),
        nodes=frozenset[str]().union(*(part.nodes for part in parts)),
        held=sum(part.holds for part in parts),
        needed=policy.gang.min_group_count if policy.HasField("gang") else 1,
    )


def _pinning_nodes(groups: Mapping[Key, AnyGroup], tallies: Mapping[Key, Tally]) -> list[str]:
    """The nodes of groups that must keep to one domain."""
    constrained = (
        tally for key, tally in tallies.items() if groups[key].spec.scheduling_constraints.topology
    )
    return sorted(frozenset[str]().union(*(tally.nodes for tally in constrained)))


async def _labels(client: Client, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """The labels of nodes by name; those that are gone have none."""
    wanted = set(names)
    return {
        node.metadata.name: dict(node.metadata.labels)
        for node in await _nodes(client, names)
        if node.metadata.name in wanted
    }


async def _nodes(client: Client, names: Sequence[str]) -> list[Node]:
    """These nodes that exist, or all where asking for each takes longer."""
    if len(names) > NODES_ASKED_FOR:
        request = ListRequest(kind="Node")
        return [listed.node async for listed in client.list_all(request)]
    answers = await asyncio.gather(
        *(client.get(GetRequest(ref=ref("Node", name))) for name in names), return_exceptions=True
    )
    return [each.object.node for each in answers if not isinstance(each, BaseException)]


async def _last_decision(client: Client, unit: ObjectRef) -> Decision | None:
    listed = await client.list_decisions(ListDecisionsRequest(unit=unit, page_size=1))
    return listed.decisions[0] if listed.decisions else None
