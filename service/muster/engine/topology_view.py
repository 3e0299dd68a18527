"""What a cluster looks like from above: nested topology domains with what is in use, and where one group runs.

Questions for a copy of the cluster (`aside`), so that looking at a cluster never holds up its schedulers. Answers are
bounded: a view of too many nodes leaves them out, one of too many domains ends at the last level that fits, and both
say how much they left out, so that whoever looks can go into a domain. Values of labels are shown as they are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from itertools import chain
from operator import eq

import numpy as np

from muster.core.arrays import Slots
from muster.core.node_table import NodeTable
from muster.engine.aside import Setting
from muster.engine.cluster import Cluster
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import leaf_members, pods_of_unit
from muster.engine.members import Standing
from muster.engine.simulation_totals import label_keys
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import GROUP_KINDS, ObjectKey

MOST_HOSTS = 3_000
MOST_BLOCKS = 600
MOST_LABELS = 50
MOST_LEVELS = 6
MOST_GROUPS = 50
# A label whose values have fewer nodes each is no level that anybody would choose.
FEWEST_HOSTS = 4
# Levels that a cluster has even if no group is constrained by them, the outermost first.
WELL_KNOWN = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")

Use = dict[str, tuple[int, int]]
"""By resource: in use and allocatable, in base units."""
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Host:
    """A node. bound, nominated: pods of the highlighted group."""

    name: str
    cordoned: bool
    use: Use
    bound: int
    nominated: int


@dataclass(frozen=True, slots=True)
class Block:
    """A domain: `value` of the label `key`, None for nodes without it; the whole view has neither.

    hidden: how many blocks, or hosts in a block without blocks, are not listed.
    """

    key: str
    value: str | None
    nodes: int
    cordoned: int
    use: Use
    bound: int
    nominated: int
    blocks: tuple[Block, ...] = ()
    hosts: tuple[Host, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Topology:
    """keys: the levels, the outermost first. path: values of the domain that is shown. labels: what else could be a level."""

    revision: int
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    path: tuple[str, ...]
    resources: tuple[str, ...]
    block: Block


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group with how many pods of its subtree have a node, and how many wait for one."""

    kind: str
    namespace: str
    name: str
    parent: str
    bound: int
    pending: int


@dataclass(frozen=True, slots=True)
class TopologyQuestion:
    """keys: none for those that groups are constrained by. path: values from the outermost key on. group: to highlight."""

    keys: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    group: ObjectKey | None = None

    def __call__(self, cluster: Cluster, _setting: Setting) -> Topology:
        """The view of a copy of the cluster."""
        nodes = cluster.feed.flush().nodes
        labels = _values_by_label(nodes)
        keys = self.keys[:MOST_LEVELS] or _levels(cluster, nodes, labels)
        slots = nodes.order
        for key, value in zip(keys, self.path, strict=False):
            slots = slots[nodes.column(key).mask(partial(eq, value))[slots]]
        inner = keys[len(self.path) :]
        resources = tuple(_resources(nodes))
        view = _View(nodes, resources, _fitting(nodes, slots, inner), *_marks(cluster.state, self.group))
        return Topology(
            revision=cluster.state.revision,
            keys=tuple(keys),
            labels=tuple(sorted(labels)),
            path=self.path[: len(keys)],
            resources=resources,
            block=view.block("", None, slots, lists_hosts=len(slots) <= MOST_HOSTS),
        )


@dataclass(frozen=True, slots=True)
class GroupsQuestion:
    """Groups whose name contains the text, by namespace and name."""

    text: str = ""

    def __call__(self, cluster: Cluster, _setting: Setting) -> tuple[FoundGroup, ...]:
        """At most `MOST_GROUPS` of a copy of the cluster."""
        state = cluster.state
        every = chain.from_iterable(state.objects[kind].values() for kind in sorted(GROUP_KINDS))
        named = (
            each
            for each in every
            if isinstance(each, PodGroup | CompositePodGroup) and self.text in each.name
        )
        first = nsmallest(MOST_GROUPS, named, key=lambda each: (each.namespace, each.name, each.key.kind))
        return tuple(_found(state, each) for each in first)


def _found(state: ClusterState, group: AnyGroup) -> FoundGroup:
    counts = [members.counts for members in leaf_members(state, group.key)]
    return FoundGroup(
        kind=group.key.kind,
        namespace=group.namespace,
        name=group.name,
        parent=group.spec.parent_composite_pod_group_name,
        bound=sum(each[Standing.BOUND] for each in counts),
        pending=sum(each[Standing.PENDING] + each[Standing.GATED] for each in counts),
    )


def natural(text: str | None) -> tuple[bool, list[tuple[int, str]]]:
    """A sort key by which numbers inside names count as numbers; None comes last."""
    parts = _DIGITS.split(text or "")
    return text is None, [
        (int(part), part) if part.isascii() and part.isdigit() else (-1, part) for part in parts
    ]


@dataclass(frozen=True, slots=True)
class _View:
    """What blocks are made of: the keys of the levels that are shown, and pods of the highlighted group by node."""

    nodes: NodeTable
    resources: tuple[str, ...]
    keys: Sequence[str]
    bound: Mapping[str, int]
    nominated: Mapping[str, int]

    def block(self, key: str, value: str | None, slots: Slots, depth: int = 0, *, lists_hosts: bool) -> Block:
        """The block of these slots, with those of `keys[depth:]` in it, or its hosts where none is left and they are asked for."""
        nodes = self.nodes
        names = [nodes.names[slot] for slot in slots.tolist()]
        blocks: list[Block] = []
        hosts: list[Host] = []
        hidden = 0
        if depth < len(self.keys):
            below = _split(nodes, self.keys[depth], slots)
            hidden = max(0, len(below) - MOST_BLOCKS)
            blocks = [
                self.block(self.keys[depth], inner, inside, depth + 1, lists_hosts=lists_hosts)
                for inner, inside in below[:MOST_BLOCKS]
            ]
        elif lists_hosts:
            hosts = sorted(self._hosts(slots), key=lambda host: natural(host.name))
        else:
            hidden = len(names)
        return Block(
            key=key,
            value=value,
            nodes=len(names),
            cordoned=int(np.count_nonzero(nodes.unschedulable[slots])),
            use=self._use(slots),
            bound=sum(self.bound.get(name, 0) for name in names) if self.bound else 0,
            nominated=sum(self.nominated.get(name, 0) for name in names) if self.nominated else 0,
            blocks=tuple(blocks),
            hosts=tuple(hosts),
            hidden=hidden,
        )

    def _use(self, slots: Slots) -> Use:
        use = {}
        for resource in self.resources:
            row = self.nodes.rows[resource]
            offered = sum(self.nodes.allocatable[row, slots].tolist())
            use[resource] = (offered - sum(self.nodes.free[row, slots].tolist()), offered)
        return use

    def _hosts(self, slots: Slots) -> Iterator[Host]:
        nodes = self.nodes
        rows = {resource: nodes.rows[resource] for resource in self.resources}
        offers = {resource: nodes.allocatable[row, slots].tolist() for resource, row in rows.items()}
        free = {resource: nodes.free[row, slots].tolist() for resource, row in rows.items()}
        cordoned = nodes.unschedulable[slots].tolist()
        for index, slot in enumerate(slots.tolist()):
            name = nodes.names[slot]
            use = {
                resource: (offers[resource][index] - free[resource][index], offers[resource][index])
                for resource in self.resources
                if offers[resource][index] or free[resource][index]
            }
            yield Host(name, cordoned[index], use, self.bound.get(name, 0), self.nominated.get(name, 0))


def _split(nodes: NodeTable, key: str, slots: Slots) -> list[tuple[str | None, Slots]]:
    """The nodes by their value of the label, values in natural order, nodes without the label last."""
    column = nodes.column(key)
    codes = column.codes[slots]
    found = [
        (column.values[code] if code >= 0 else None, slots[codes == code])
        for code in np.unique(codes).tolist()
    ]
    return sorted(found, key=lambda each: natural(each[0]))


def _fitting(nodes: NodeTable, slots: Slots, keys: Sequence[str]) -> Sequence[str]:
    """As many of the levels as have few enough domains to be shown; the first one always is."""
    for depth in range(len(keys), 1, -1) if len(slots) else ():
        codes = np.stack([nodes.column(key).codes[slots] for key in keys[:depth]])
        if np.unique(codes, axis=1).shape[1] <= MOST_BLOCKS:
            return keys[:depth]
    return keys[:1]


def _marks(state: ClusterState, group: ObjectKey | None) -> tuple[Counter[str], Counter[str]]:
    """Pods of the group by the node that they are bound to, or nominated for."""
    bound: Counter[str] = Counter()
    nominated: Counter[str] = Counter()
    for pod in pods_of_unit(state, group) if group is not None else ():
        if pod.node_name and not pod.is_terminal:
            bound[pod.node_name] += 1
        elif pod.status.nominated_node_name:
            nominated[pod.status.nominated_node_name] += 1
    return bound, nominated


def _resources(nodes: NodeTable) -> Iterator[str]:
    """Resources that any node offers, in the order in which they became known."""
    for resource, row in nodes.rows.items():
        if bool(nodes.allocatable[row].any()):
            yield resource


def _values_by_label(nodes: NodeTable) -> dict[str, int]:
    """Label keys by which nodes fall into more than one and less than every domain, with their number of values."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for slot in nodes.order.tolist():
        for key, value in nodes.labels[slot].items():
            values[key].add(value)
    counts = {key: len(found) for key, found in values.items() if 1 < len(found) < len(nodes)}
    return dict(sorted(counts.items(), key=lambda each: (each[1], each[0]))[:MOST_LABELS])


def _levels(cluster: Cluster, nodes: NodeTable, labels: Mapping[str, int]) -> tuple[str, ...]:
    """The labels that groups are constrained by and nodes have, and the well-known ones: few values before many.

    Where there are none: labels that nest, each value inside one value of the label before.
    """
    used = {key for key in label_keys(cluster) if bool((nodes.column(key).codes >= 0).any())}
    single = {key for key in used if key not in labels}
    used = {key for key in used if key in labels} or single
    used.update(key for key in WELL_KNOWN if key in labels)
    if not used:
        return tuple(_nesting(nodes, labels))[:MOST_LEVELS]
    return tuple(sorted(used, key=lambda key: (labels.get(key, 0), key))[:MOST_LEVELS])


def _nesting(nodes: NodeTable, labels: Mapping[str, int]) -> Iterator[str]:
    """Of the labels, few values before many, those that lie inside the one before and gather some nodes."""
    outer = None
    for key in labels:
        codes = nodes.column(key).codes[nodes.order]
        if labels[key] * FEWEST_HOSTS > len(nodes):
            return
        if outer is None or len(np.unique(np.stack((outer, codes)), axis=1).T) == len(np.unique(codes)):
            outer = codes
            yield key
