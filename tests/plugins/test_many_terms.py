"""What a filter costs grows with the number of a pod's terms, and not with the square of it or by what nodes have."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from muster.core.deltas import NodePut, SignaturesAdded
from muster.core.label_columns import LabelColumn
from muster.core.node_table import NodeTable
from muster.core.signature import Signature, SignatureTable
from muster.core.snapshot import Snapshot
from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Node, Taint
from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)
from muster.plugins.host_ports import PortsConflicting, ports_of
from muster.plugins.node_affinity import required_nodes
from muster.plugins.pod_terms import Carrying, Term, terms_of
from muster.plugins.taint_toleration import tolerated_nodes
from muster.plugins.topology_spread import SpreadFilter, SpreadScore
from tests.dsl import pod

KEYS = [f"key-{number}" for number in range(32)]


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The label of each column that was asked for."""
    read: list[str] = []
    plain = NodeTable.column

    def column(nodes: NodeTable, key: str) -> LabelColumn:
        read.append(key)
        return plain(nodes, key)

    monkeypatch.setattr(NodeTable, "column", column)
    return read


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_each_spread_constraint_is_looked_at_as_often_as_if_it_were_the_only_one(
    columns_read: list[str], when: str
) -> None:
    alone = _columns_of_spread(1, when, columns_read)
    many = _columns_of_spread(32, when, columns_read)

    assert many == 32 * alone


def test_many_tolerations_are_held_against_many_taints_at_the_cost_of_a_few() -> None:
    nodes = NodeTable()
    for name in ("a", "b", "c", "d"):
        nodes.put(replace(_node(name), taints=tuple(Taint(key, name, "NoSchedule") for key in _names(256))))
    every_key = tuple(Toleration(key, "Exists") for key in reversed(_names(256)))
    few = (Toleration("other", "Exists"), Toleration("", "Exists"))

    tolerated = tolerated_nodes(PodSpec(tolerations=every_key), nodes)
    assert tolerated is not None
    assert tolerated[nodes.present].all()
    assert _seconds(PodSpec(tolerations=every_key), nodes) < 8 * _seconds(PodSpec(tolerations=few), nodes)


def test_a_long_list_of_values_is_held_against_many_nodes_at_the_cost_of_a_short_one() -> None:
    nodes = NodeTable()
    for number in range(1_000):
        nodes.put(_node(f"node-{number}"))

    many, few = _elsewhere(1_000), _elsewhere(1)

    assert _seconds(many, nodes) < 8 * _seconds(few, nodes)


def _columns_of_spread(count: int, when: str, columns_read: list[str]) -> int:
    constraints = tuple(
        TopologySpreadConstraint(1, key, when, LabelSelector({"app": "web"})) for key in KEYS[:count]
    )
    snapshot, signature = Snapshot(), _signature(PodSpec(topology_spread_constraints=constraints))
    snapshot.apply(SignaturesAdded((signature,)))
    for number in range(4):
        snapshot.apply(NodePut(_node(f"node-{number}")))
    columns_read.clear()
    SpreadFilter().mask(signature, snapshot)
    SpreadScore().score(signature, snapshot, snapshot.nodes.order)
    return len(columns_read)


def _signature(spec: PodSpec) -> Signature:
    table = SignatureTable()
    return table[table.intern(replace(pod("p"), spec=spec))]


def _node(name: str) -> Node:
    return Node(name=name, labels={**dict.fromkeys(KEYS, "v"), "host": name}, allocatable={"cpu": "1"})


def _names(count: int) -> list[str]:
    return [f"name-{number}" for number in range(count)]


def _elsewhere(count: int) -> PodSpec:
    term = NodeSelectorTerm((SelectorRequirement("host", "NotIn", tuple(_names(count))),))
    return PodSpec(affinity=Affinity(NodeAffinity((term,))))


def _seconds(spec: PodSpec, nodes: NodeTable) -> float:
    """CPU time of the node filters that read terms, the least of several turns."""
    least = float("inf")
    for _ in range(5):
        started = process_time()
        tolerated_nodes(spec, nodes)
        required_nodes(spec, nodes)
        least = min(least, process_time() - started)
    return least


def test_a_term_is_found_among_the_many_of_a_pod_without_being_compared_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Term] = []
    plain = Term.__eq__

    def equals(term: Term, other: object) -> bool:
        compared.append(term)
        return plain(term, other)

    away = PodAffinity(tuple(PodAffinityTerm(LabelSelector({"a": key}), (), "host") for key in KEYS))
    carrier = _signature(PodSpec(affinity=Affinity(pod_anti_affinity=away)))
    last = replace(terms_of(carrier).anti_affinity[-1])
    monkeypatch.setattr(Term, "__eq__", equals)

    assert Carrying("anti_affinity", last).selects(carrier)
    assert not Carrying("affinity", last).selects(carrier)
    assert len(compared) <= 2


def test_ports_of_two_pods_are_compared_at_a_cost_that_grows_with_their_number() -> None:
    assert _seconds_of_ports(1_024) < 80 * _seconds_of_ports(64)


def _seconds_of_ports(count: int) -> float:
    """CPU time of ten looks at two pods that both hold so many ports and share none, the least of several turns."""
    ours, theirs = (_signature(_holding(first, count)) for first in (1, 20_000))
    conflicting = PortsConflicting(ports_of(ours))
    least = float("inf")
    for _ in range(5):
        started = process_time()
        assert not any(conflicting.selects(theirs) for _ in range(10))
        least = min(least, process_time() - started)
    return least


def _holding(first: int, count: int) -> PodSpec:
    ports = tuple(ContainerPort("", number, 1, "TCP") for number in range(first, first + count))
    return PodSpec(containers=(Container("main", ports=ports),))
