"""A tree's placement in columns: where each pod is, and where else it might be without leaving its domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.decision import Assignments
from muster.core.domains import CLUSTER, Domain
from muster.core.recursion import Recursion
from muster.core.snapshot import Snapshot
from muster.core.tree import leaves
from muster.core.trial import Ledger, Trial
from muster.model.meta import ObjectKey


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Pods that are equal in all that moving them reads.

    admitted: [slots] which nodes of their domain node filters admit. hosts: these by name.
    """

    signature: int
    requests: IntArray
    admitted: BoolArray
    hosts: Slots


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """N pods in the order of placing. ids: ordinals. kinds: places in `kind_table`. slots: where they are."""

    ids: tuple[int, ...]
    kinds: IntArray
    slots: Slots
    kind_table: tuple[Kind, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def signatures(self) -> list[int]:
        """[N] of each pod."""
        table = [kind.signature for kind in self.kind_table]
        return [table[kind] for kind in self.kinds.tolist()]

    def loads(self, rows: int) -> tuple[Slots, IntArray]:
        """The slots that pods are on, ascending, and [R, n] what they take of each."""
        used, places = np.unique(self.slots, return_inverse=True)
        load = np.zeros((rows, len(used)), dtype=np.int64)
        for index, kind in enumerate(self.kind_table):
            pods = np.bincount(places[self.kinds == index], minlength=len(used))
            load += np.multiply.outer(kind.requests, pods)
        return used, load

    def load(self, rows: int, size: int) -> IntArray:
        """[R, size] what the pods take of each slot."""
        load = np.zeros((rows, size), dtype=np.int64)
        used, loads = self.loads(rows)
        load[:, used] = loads
        return load

    def assignments(self, snapshot: Snapshot) -> Assignments:
        """The same by names, nodes sorted."""
        nodes = snapshot.nodes
        used, places = np.unique(nodes.ranks[self.slots], return_inverse=True)
        names = tuple(nodes.names[slot] for slot in nodes.order[used].tolist())
        return Assignments(self.ids, names, tuple(places.tolist()))


_NONE: frozenset[str] = frozenset()
NOWHERE = Placement((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp), ())


@dataclass(slots=True)
class PodKinds:
    """Tells a unit's pods apart by signature, domain, and nodes that they must not be bound to."""

    recursion: Recursion
    _of_pod: dict[int, tuple[ObjectKey, int]] = field(default_factory=dict)
    _sums: IntArray | None = None
    _known: dict[tuple[int, frozenset[str], str, str, int], Kind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for leaf in leaves(self.recursion.unit.root):
            for pod, signature in zip(leaf.pods.ids, leaf.pods.signatures, strict=True):
                self._of_pod[pod] = leaf.key, signature

    def leaf_of(self, pod: int) -> ObjectKey:
        """The group that the pod belongs to."""
        return self._of_pod[pod][0]

    def least_amounts(self, number: int) -> IntArray:
        """[R] no so many of the unit's pods ask for less, each resource by itself."""
        if self._sums is None:
            snapshot = self.recursion.snapshot
            rows = [snapshot.requests(signature) for _, signature in self._of_pod.values()]
            requests = np.array(rows, dtype=np.int64).reshape(len(rows), len(snapshot.nodes.rows))
            self._sums = np.cumsum(np.sort(requests, axis=0), axis=0)
        least: IntArray = self._sums[number - 1]
        return least

    def kind(self, pod: int, domain: Domain) -> Kind:
        """What the pod is like where its group's domain is this one; the same for pods that are alike."""
        excluded = self.recursion.unit.excluded_nodes.get(pod, _NONE)
        return self._kind(self._of_pod[pod][1], excluded, domain)

    def placement(self, trial: Trial, ledger: Ledger, outer: Domain = CLUSTER) -> Placement:
        """What is assumed in the ledger for the root of the trial, which was placed in the outer domain."""
        domains, batches = dict(_leaf_domains(trial, outer)), ledger.batches()
        if not batches:
            return NOWHERE
        kinds: list[Kind] = []
        place_of: dict[int, int] = {}
        column: list[int] = []
        for pods, _ in batches:
            kind = self.kind(pods[0], domains[self.leaf_of(pods[0])])
            place = place_of.setdefault(id(kind), len(kinds))
            if place == len(kinds):
                kinds.append(kind)
            column += [place] * len(pods)
        ids = tuple(chain.from_iterable(pods for pods, _ in batches))
        slots = np.concatenate([slots for _, slots in batches])
        return Placement(ids, np.array(column, dtype=np.int64), slots, tuple(kinds))

    def _kind(self, index: int, excluded: frozenset[str], domain: Domain) -> Kind:
        first = -1 if domain.slots is None or not len(domain.slots) else int(domain.slots[0])
        key = index, excluded, domain.key, domain.value, first
        known = self._known.get(key)
        if known is None:
            snapshot = self.recursion.snapshot
            row = self.recursion.placer.keys.row(snapshot.signatures[index])
            admitted = row.admitted.copy()
            admitted[snapshot.nodes.slots_of(sorted(excluded))] = False
            order = snapshot.nodes.order
            if domain.slots is not None:
                inside = np.zeros(snapshot.nodes.size, dtype=np.bool_)
                inside[domain.slots] = True
                admitted &= inside
            known = self._known[key] = Kind(index, row.requests, admitted, order[admitted[order]])
        return known


def _leaf_domains(trial: Trial, outer: Domain) -> Iterator[tuple[ObjectKey, Domain]]:
    """The domain of each leaf below that was tried."""
    domain = trial.domain or outer
    if trial.group.is_leaf:
        yield trial.group.key, domain
    for child in trial.children:
        if child is not None:
            yield from _leaf_domains(child, domain)
