"""Help by more nodes: the smallest number of nodes like one that exists, and in which domain they must be.

Nodes are alike if they offer the same and admit the same pods of the unit. Of each kind the domains that come closest
are tried first; a further one is told only if it needs fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from muster.core.candidate_outcomes import CLOSEST_DOMAIN
from muster.core.decision import GroupResult
from muster.core.explain.amounts import quantity
from muster.core.explain.dropped_filters import CORDON, without_filter
from muster.core.explain.explanation import (
    DOMAIN_FAILED,
    DOMAIN_RULED_OUT,
    Help,
    HelpCode,
    failed_path,
)
from muster.core.explain.trials import Smallest, Trials, Verdict, groups_below, smallest
from muster.core.messages import number_of
from muster.core.node_table import NodeTable
from muster.core.pod_placement import placer_of
from muster.core.tree import Unit, leaves
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.resources import PODS

HOSTNAME = "kubernetes.io/hostname"
MOST_KINDS = 3
MOST_PLACES = 4
MOST_NODES = 1024
_Place = tuple[str | None, ...]
_TOLD = (CLOSEST_DOMAIN, DOMAIN_FAILED, DOMAIN_RULED_OUT)
_FAR = 10_000


@dataclass(slots=True)
class _Kind:
    """Nodes that are alike. places: by the values of the labels that matter, a slot to copy."""

    nodes: int = 0
    places: dict[_Place, int] = field(default_factory=dict)


def nodes_to_add(trials: Trials, result: GroupResult, *, now_proved: bool) -> Iterator[Help]:
    """For each of the most frequent kinds of nodes that could take the unit's pods, the best place for more."""
    keys = _topology_keys(trials)
    rank = _closeness(result)
    for kind in _kinds(trials, keys):
        places = sorted(kind.places.items(), key=lambda item: _distance(rank, keys, item[0]))
        best: tuple[Smallest, int] | None = None
        for _, slot in places[:MOST_PLACES]:
            most = min(MOST_NODES, trials.unit.pod_count) if best is None else best[0].number - 1
            adding = _Adding(trials, slot)
            if most < 1 or (best is not None and not adding.quick(most)):
                continue
            found = smallest(adding.quick, adding.thorough, most, now_proved=now_proved)
            best = (found, slot) if found is not None else best
        if best is not None:
            yield _help(trials.snapshot.nodes, best[1], keys, best[0])


def _topology_keys(trials: Trials) -> list[str]:
    """Labels by whose values nodes are told apart: those of the groups' constraints, and of what pods demand of others."""
    keys = {group.topology_key for group in groups_below(trials.unit.root) if group.topology_key}
    for leaf in leaves(trials.unit.root):
        for index in set(leaf.pods.signatures):
            spec = trials.snapshot.signatures[index].spec
            keys.update(each.topology_key for each in spec.topology_spread_constraints)
            for terms in (
                (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if spec.affinity else ()
            ):
                keys.update(term.topology_key for term in (terms.required if terms else ()))
    return sorted(keys - {HOSTNAME})


def node_like(nodes: NodeTable, slot: int, name: str, *, unschedulable: bool = False) -> Node:
    """A node as the one on the slot, with a host name of its own."""
    amounts = {
        resource: quantity(resource, int(nodes.allocatable[row, slot]))
        for resource, row in nodes.rows.items()
        if nodes.allocatable[row, slot] or resource == PODS
    }
    labels = nodes.labels[slot]
    if HOSTNAME in labels:
        labels = {**labels, HOSTNAME: name}
    return Node(
        name=name,
        labels=labels,
        taints=nodes.taint_sets[int(nodes.taint_codes[slot])],
        unschedulable=unschedulable,
        capacity=amounts,
        allocatable=amounts,
    )


@dataclass(frozen=True, slots=True)
class _Adding:
    """Trials with so many more nodes like the one on the slot."""

    trials: Trials
    slot: int

    def quick(self, number: int) -> bool:
        with self.trials.with_nodes(self._nodes(number)):
            return self.trials.quick()

    def thorough(self, number: int) -> Verdict:
        with self.trials.with_nodes(self._nodes(number)):
            return self.trials.thorough()

    def _nodes(self, number: int) -> list[Node]:
        nodes = self.trials.snapshot.nodes
        stem = nodes.names[self.slot]
        return [node_like(nodes, self.slot, f"{stem}-added-{place}") for place in range(1, number + 1)]


def _kinds(trials: Trials, keys: list[str]) -> list[_Kind]:
    """Kinds of which an empty node takes a pod of the unit, the most frequent first, then by the first name."""
    nodes = trials.snapshot.nodes
    admits = _takers(trials, trials.unit)
    kinds: dict[bytes, _Kind] = {}
    offers = np.ascontiguousarray(nodes.allocatable.T)
    verdicts = np.ascontiguousarray(admits.T)
    able = admits.any(axis=0) & nodes.present
    for slot in nodes.order.tolist():
        if able[slot]:
            kind = kinds.setdefault(offers[slot].tobytes() + verdicts[slot].tobytes(), _Kind())
            kind.nodes += 1
            labels = nodes.labels[slot]
            kind.places.setdefault(tuple(map(labels.get, keys)), slot)
    return sorted(kinds.values(), key=lambda kind: -kind.nodes)[:MOST_KINDS]


def _takers(trials: Trials, unit: Unit) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """[signatures, slots] whether the node, were it empty and schedulable, takes such a pod."""
    snapshot = trials.snapshot
    placer = placer_of(snapshot, without_filter(trials.profile, CORDON) or trials.profile)
    wanted = sorted({index for leaf in leaves(unit.root) for index in leaf.pods.signatures})
    rows = []
    for index in wanted:
        signature = snapshot.signatures[index]
        row = placer.keys.admission(signature).admitted.copy()
        for resource, amount in signature.requests.items():
            row &= snapshot.nodes.allocatable[snapshot.nodes.row(resource)] >= amount
        rows.append(row)
    return np.array(rows, dtype=np.bool_).reshape(len(rows), snapshot.nodes.size)


def _closeness(result: GroupResult) -> dict[tuple[str, str], int]:
    """Domains on the way to the first failure, by how close they came."""
    rank: dict[tuple[str, str], int] = {}
    for group in failed_path(result):
        told = [reason for reason in group.reasons if reason.code in _TOLD]
        for place, reason in enumerate(told):
            rank.setdefault((reason.details["key"], reason.details["value"]), place)
    return rank


def _distance(rank: Mapping[tuple[str, str], int], keys: list[str], place: _Place) -> tuple[int, str]:
    far = sum(
        rank.get((key, value), _FAR) if value is not None else _FAR
        for key, value in zip(keys, place, strict=True)
    )
    return far, str(place)


def _help(nodes: NodeTable, slot: int, keys: list[str], found: Smallest) -> Help:
    name = nodes.names[slot]
    where = {key: nodes.labels[slot][key] for key in keys if key in nodes.labels[slot]}
    shown = ",".join(f"{key}={value}" for key, value in where.items())
    # The trial's nodes were schedulable, whatever the one that they are like is now.
    number = number_of(found.number, "schedulable node" if nodes.unschedulable[slot] else "node")
    text = f"add {number} like {name}" + (f" with {shown}" if shown else "")
    return Help(
        HelpCode.ADD_NODES,
        text,
        (ObjectKey("Node", "", name),),
        found.number,
        found.number,
        found.proved,
        {"like": name, "domain": shown},
    )
