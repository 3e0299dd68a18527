"""Sums over a simulation: what became of its units, what is in use by resource and by topology domain, what is in pieces.

Fragmentation of a resource is the share of its free amount that is of no use: for a pod that asks for the resource, what
is free on nodes that cannot take the pod is lost. The mean over the pods of the cluster counts, by shape of request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from muster.core.arrays import IntArray
from muster.core.decision import DecisionCode
from muster.core.snapshot import Snapshot
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import leaf_members, unbound_pods
from muster.engine.members import Standing
from muster.engine.ports import DecisionRecord
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.meta import GROUP_KINDS, POD, ObjectKey
from muster.model.pod import Pod

MOST_DOMAINS = 1_000
MOST_SHAPES = 64
_HIGH_BITS = 31

Floats = npt.NDArray[np.float64]
Domain = tuple[str, str]
"""Label key and value."""


@dataclass(frozen=True, slots=True)
class Use:
    """Amounts in use in base units: of the cluster by resource, of domains by key and value."""

    cluster: dict[str, int]
    domains: dict[Domain, dict[str, int]]


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One resource on some nodes, in base units; `fragmentation` from 0 to 1."""

    resource: str
    allocatable: int
    used: int
    used_before: int
    fragmentation: float


@dataclass(frozen=True, slots=True)
class DomainUse:
    domain: Domain
    nodes: int
    resources: tuple[ResourceUse, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """Units by outcome, pods, and use. Units with nothing pending count as scheduled."""

    units: int = 0
    scheduled_units: int = 0
    preempting_units: int = 0
    placed_pods: int = 0
    pending_pods: int = 0
    victim_pods: int = 0
    budget_violations: int = 0
    resources: tuple[ResourceUse, ...] = ()
    domains: tuple[DomainUse, ...] = ()

    @property
    def unscheduled_units(self) -> int:
        return self.units - self.scheduled_units - self.preempting_units


def use_of(snapshot: Snapshot, keys: Iterable[str] = ()) -> Use:
    """What is in use now, in the cluster and in the domains of these label keys."""
    amounts = _amounts(snapshot)
    cluster = {name: _exact_sum(amounts.used[row]) for name, row in snapshot.nodes.rows.items()}
    domains: dict[Domain, dict[str, int]] = {}
    for key in keys:
        for value, slots in _domains(snapshot, key):
            domains[key, value] = {
                name: _exact_sum(amounts.used[row, slots]) for name, row in snapshot.nodes.rows.items()
            }
    return Use(cluster, domains)


def totals_of(cluster: Cluster, before: Use, records: Sequence[DecisionRecord]) -> Totals:
    """The sums on the cluster as it is once these decisions are committed to it."""
    decisions = [record.decision for record in records]
    codes = Counter(decision.code for decision in decisions)
    nominated = sum(len(record.nominations.pods) for record in records)
    preemptions = [each.preemption for each in decisions if each.preemption is not None]
    pending = sum(unbound_pods(cluster.state, each.unit)[0] for each in decisions)
    snapshot = cluster.feed.flush()
    lost = _lost(snapshot, _requests(cluster, [each.unit for each in decisions]))
    amounts = _amounts(snapshot)
    everywhere = np.flatnonzero(snapshot.nodes.present)
    return Totals(
        units=len(records),
        scheduled_units=codes[DecisionCode.SCHEDULED] + codes[DecisionCode.UNCHANGED],
        preempting_units=codes[DecisionCode.WAITING_FOR_PREEMPTION],
        placed_pods=sum(len(record.assignments.pods) for record in records) + nominated,
        pending_pods=max(0, pending - nominated),
        victim_pods=sum(len(victim.pods) for each in preemptions for victim in each.victims),
        budget_violations=sum(each.pods_over_budget for each in preemptions),
        resources=_resources(snapshot, amounts, lost, everywhere, before.cluster),
        domains=tuple(_domain_uses(cluster, snapshot, amounts, lost, before)),
    )


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Per resource row and slot, 0 where there is no node; `free` is not negative, and 0 on nodes that take nothing."""

    allocatable: IntArray
    used: IntArray
    free: IntArray


def _amounts(snapshot: Snapshot) -> _Amounts:
    nodes = snapshot.nodes
    allocatable = np.where(nodes.present, nodes.allocatable, 0)
    used = np.where(nodes.present, nodes.allocatable - nodes.free, 0)
    free = np.where(nodes.present & ~nodes.unschedulable, np.maximum(nodes.free, 0), 0)
    return _Amounts(allocatable, used, free)


def _requests(cluster: Cluster, units: Iterable[ObjectKey]) -> Counter[tuple[int, ...]]:
    """How many pods ask for what, by rows of resources: those that run, and those of the units that still wait."""
    snapshot = cluster.feed.flush()
    by_signature: Counter[int] = Counter()
    for signature, counts in snapshot.pods.counts.items():
        by_signature[signature] += sum(counts.values())
    for unit in units:
        by_signature.update(cluster.feed.signature_of(pod) for pod in _waiting(cluster, unit))
    snapshot = cluster.feed.flush()
    shapes: Counter[tuple[int, ...]] = Counter()
    for signature, number in by_signature.items():
        shapes[tuple(snapshot.requests(signature).tolist())] += number
    return shapes


def _waiting(cluster: Cluster, unit: ObjectKey) -> Iterable[Pod]:
    state = cluster.state
    if unit.kind == POD:
        pod = state.pod(unit.namespace, unit.name)
        return [pod] if pod is not None and not pod.node_name else []
    return [pod for members in leaf_members(state, unit) for pod in members.of(Standing.PENDING)]


def _lost(snapshot: Snapshot, shapes: Counter[tuple[int, ...]]) -> Floats:
    """Per resource row and slot, how much of what is free is of no use, as the mean over the pods that ask for it."""
    free = _amounts(snapshot).free
    lost: Floats = np.zeros(free.shape)
    weights: Floats = np.zeros(len(free))
    for shape, number in sorted(shapes.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHAPES]:
        requests = np.array(shape, dtype=np.int64)
        asked = np.flatnonzero(requests)
        too_small = (free[asked] < requests[asked, None]).any(axis=0)
        lost[asked] += number * np.where(too_small, free[asked], 0)
        weights[asked] += number
    mean: Floats = lost / np.maximum(weights, 1)[:, None]
    return mean


def _resources(
    snapshot: Snapshot, amounts: _Amounts, lost: Floats, slots: npt.NDArray[np.intp], before: dict[str, int]
) -> tuple[ResourceUse, ...]:
    """Resources that the slots offer or that are in use there, by name."""
    found = []
    for name, row in sorted(snapshot.nodes.rows.items()):
        allocatable, used = _exact_sum(amounts.allocatable[row, slots]), _exact_sum(amounts.used[row, slots])
        if not allocatable and not used:
            continue
        free = float(amounts.free[row, slots].astype(np.float64).sum())
        share = float(lost[row, slots].sum()) / free if free else 0.0
        found.append(ResourceUse(name, allocatable, used, before.get(name, 0), min(1.0, share)))
    return tuple(found)


def _domain_uses(
    cluster: Cluster, snapshot: Snapshot, amounts: _Amounts, lost: Floats, before: Use
) -> Iterable[DomainUse]:
    left = MOST_DOMAINS
    for key in label_keys(cluster):
        for value, slots in _domains(snapshot, key)[:left]:
            left -= 1
            used_before = before.domains.get((key, value), {})
            uses = _resources(snapshot, amounts, lost, slots, used_before)
            yield DomainUse((key, value), len(slots), uses)


def label_keys(cluster: Cluster, further: Iterable[object] = ()) -> list[str]:
    """The labels that groups of the cluster, or among these objects, are constrained by, in order."""
    groups = chain(*(cluster.state.objects[kind].values() for kind in GROUP_KINDS), further)
    keys = {each.spec.topology_key for each in groups if isinstance(each, PodGroup | CompositePodGroup)}
    return sorted(key for key in keys if key is not None)


def _domains(snapshot: Snapshot, key: str) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """The values of a label with the slots of their nodes, by value."""
    column, present = snapshot.nodes.column(key), snapshot.nodes.present
    codes = np.where(present, column.codes, -1)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(column.values) + 1))
    found = [
        (value, order[starts[code] : starts[code + 1]])
        for code, value in enumerate(column.values)
        if starts[code] < starts[code + 1]
    ]
    return sorted(found, key=lambda domain: domain[0])


def _exact_sum(amounts: IntArray) -> int:
    """The sum, also where it does not fit into 64 bits."""
    high, low = amounts >> _HIGH_BITS, amounts & ((1 << _HIGH_BITS) - 1)
    return (int(high.sum()) << _HIGH_BITS) + int(low.sum())
