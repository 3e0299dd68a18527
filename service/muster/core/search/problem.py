"""A unit's missing minimums as a packing problem of small integers: pods that placement cannot tell apart are merged.

Decides what the search sees; whether and where the pods fit is for `packing` and the domain search to say. Amounts
are exact: requests are divided by their common divisor, free amounts are rounded down, and a resource is left out
only where the others already keep it from binding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.framework import Profile
from muster.core.pod_placement import PodPlacer
from muster.core.search.exclusions import exclusions
from muster.core.search.scaling import scaled
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.core.trial import already_holds

MANY = 2**40
"""More pods than a node ever holds."""
PodKind = tuple[int, frozenset[str]]
"""What a leaf's pods are told apart by: signature, and nodes that failed to bind the pod."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchLeaf:
    """A leaf group that still needs pods.

    index: place among the problem's leaves. need: minimum less what holds, above 0. supply: type and how many pods
    of it may be placed, types ascending.
    """

    group: GroupTree
    index: int
    need: int
    supply: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class SearchGroup:
    """An inner group that still needs children; those that hold, or may not be tried, are not among `children`."""

    group: GroupTree
    need: int
    children: tuple[SearchNode, ...]


SearchNode = SearchLeaf | SearchGroup


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """T types of pods, N nodes (all that exist, in the order of their names), R resources.

    demand: [T, R] scaled amounts. hosts: [T, N] nodes that take one pod of the type as things are. per_node: [T]
    most pods of the type on one node whatever its room. free: [N, R] scaled, never negative. slots: [N] the
    snapshot's slot of each node. types: the type of each kind of pod that some node takes.
    exact: False if some pod has filters that read other nodes, or amounts are too large to be scaled exactly: a
    packing may then fail those filters, and no proof is claimed.
    """

    demand: IntArray
    hosts: BoolArray
    per_node: IntArray
    free: IntArray
    slots: Slots
    root: SearchNode
    types: Mapping[PodKind, int]
    exact: bool


def compile_problem(snapshot: Snapshot, unit: Unit, profile: Profile, placer: PodPlacer) -> Problem:
    """The problem of a unit whose minimum does not hold yet, on the snapshot as it is."""
    compiler = _Compiler(snapshot, unit, placer)
    root = compiler.search_node(unit.root)
    order = snapshot.nodes.order
    hosts = np.array(compiler.hosts, dtype=np.bool_).reshape(len(compiler.hosts), len(order))
    shared = exclusions(snapshot, profile, compiler.exclusive, hosts)
    requests = np.zeros((len(hosts), len(snapshot.nodes.rows) + shared.shape[1]), dtype=np.int64)
    for index, signature in enumerate(compiler.signatures):
        row = snapshot.requests(signature.index)
        requests[index, : len(row)] = row
    requests[:, len(snapshot.nodes.rows) :] = shared
    room = np.ones((len(order), requests.shape[1]), dtype=np.int64)
    room[:, : len(snapshot.nodes.rows)] = snapshot.nodes.free[:, order].T
    amounts = scaled(requests, room, hosts, np.array(compiler.most, dtype=np.int64))
    return Problem(
        demand=amounts.demand,
        hosts=hosts,
        per_node=np.array([1 if known else MANY for known in compiler.exclusive], dtype=np.int64),
        free=amounts.free,
        slots=order,
        root=root,
        types=compiler.types,
        exact=amounts.exact and not compiler.reads_other_nodes,
    )


@dataclass(slots=True)
class _Compiler:
    """Gives each kind of pod its type while the tree is walked; columns are one entry per type."""

    snapshot: Snapshot
    unit: Unit
    placer: PodPlacer
    types: dict[PodKind, int] = field(default_factory=dict)
    signatures: list[Signature] = field(default_factory=list)
    hosts: list[BoolArray] = field(default_factory=list)
    exclusive: list[Signature | None] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    leaves: int = 0
    reads_other_nodes: bool = False
    _by_content: dict[tuple[bytes, bytes, int], int] = field(default_factory=dict)
    _hostless: set[PodKind] = field(default_factory=set)

    def search_node(self, group: GroupTree) -> SearchNode:
        if group.is_leaf:
            self.leaves += 1
            index = self.leaves - 1
            return SearchLeaf(group, index, group.minimum - group.satisfied, self._supply(group.pods))
        holding = sum(map(already_holds, group.children))
        open_ = [child for child in group.children if child.admissible and not already_holds(child)]
        return SearchGroup(group, group.minimum - holding, tuple(map(self.search_node, open_)))

    def _supply(self, pods: PendingPods) -> tuple[tuple[int, int], ...]:
        supply: Counter[int] = Counter()
        for (signature, excluded), number in self._kinds(pods).items():
            index = self._type_of(signature, excluded)
            if index is not None:
                supply[index] += number
                self.most[index] += number
        return tuple(sorted(supply.items()))

    def _kinds(self, pods: PendingPods) -> Counter[PodKind]:
        nowhere: frozenset[str] = frozenset()
        if not self.unit.excluded_nodes:
            return Counter({(index, nowhere): number for index, number in Counter(pods.signatures).items()})
        excluded = (self.unit.excluded_nodes.get(pod, nowhere) for pod in pods.ids)
        return Counter(zip(pods.signatures, excluded, strict=True))

    def _type_of(self, index: int, excluded: frozenset[str]) -> int | None:
        kind = (index, excluded)
        if kind in self._hostless:
            return None
        known = self.types.get(kind)
        if known is None:
            known = self._new_type(self.snapshot.signatures[index], excluded)
            if known is None:
                self._hostless.add(kind)
            else:
                self.types[kind] = known
        return known

    def _new_type(self, signature: Signature, excluded: frozenset[str]) -> int | None:
        """The type with such requests and hosts, made if it is new; None if no node takes such a pod."""
        keys = self.placer.keys
        row, takes = keys.admission(signature), keys.takes(signature)
        if excluded:
            takes[self.snapshot.nodes.slots_of(excluded)] = False
        hosts = takes[self.snapshot.nodes.order]
        self.reads_other_nodes |= not self.placer.filters_locally(signature)
        if not hosts.any():
            return None
        shape = signature.shape if row.exclusive else -1
        content = row.requests.tobytes(), hosts.tobytes(), shape
        known = self._by_content.get(content)
        if known is None:
            known = self._by_content[content] = len(self.signatures)
            self.signatures.append(signature)
            self.hosts.append(hosts)
            self.exclusive.append(signature if row.exclusive else None)
            self.most.append(0)
        return known
