"""Lists that cost time or memory when pods are scheduled may be longer than anybody needs, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.model.meta import LabelSelector, SelectorRequirement
from muster.model.node import Taint
from muster.model.objects import ClusterObject
from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Resources,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from muster.validation.objects import validate
from tests.validation.examples import BUDGET, NODE, POD, faults, with_spec

NAMES = [f"k{number}" for number in range(10_001)]
EXISTING = NodeSelectorTerm((SelectorRequirement("a", "Exists"),))
TERM = PodAffinityTerm(LabelSelector({"a": "b"}), (), "zone")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution[0]"


def _spread(count: int) -> ClusterObject:
    constraints = (
        TopologySpreadConstraint(1, name, "DoNotSchedule", LabelSelector()) for name in NAMES[:count]
    )
    return with_spec(topology_spread_constraints=tuple(constraints))


def _node_terms(count: int) -> ClusterObject:
    preferred = PreferredSchedulingTerm(1, EXISTING)
    terms = NodeAffinity((EXISTING,) * (count // 2), (preferred,) * (count - count // 2))
    return with_spec(affinity=Affinity(terms))


def _requirements(count: int) -> ClusterObject:
    requirement = SelectorRequirement("a", "Exists")
    half = NodeSelectorTerm((requirement,) * (count // 2))
    other = NodeSelectorTerm((requirement,) * (count - count // 2))
    return with_spec(affinity=Affinity(NodeAffinity((half, other))))


def _node_values(count: int) -> ClusterObject:
    term = NodeSelectorTerm((SelectorRequirement("a", "In", tuple(NAMES[:count])),))
    return with_spec(affinity=Affinity(NodeAffinity((term,))))


def _pod_terms(count: int) -> ClusterObject:
    weighted = (WeightedPodAffinityTerm(1, TERM),)
    quarter, rest = count // 4, count - 3 * (count // 4)
    towards = PodAffinity((TERM,) * quarter, weighted * quarter)
    away = PodAffinity((TERM,) * quarter, weighted * rest)
    return with_spec(affinity=Affinity(pod_affinity=towards, pod_anti_affinity=away))


def _near(**fields: object) -> ClusterObject:
    term = replace(TERM, **fields)  # type: ignore[arg-type]
    return with_spec(affinity=Affinity(pod_affinity=PodAffinity((term,))))


def _ports(count: int) -> ClusterObject:
    ports = [ContainerPort("", 0, 1, "TCP")] * count
    main = Container("main", ports=tuple(ports[: count // 2]))
    other = Container("other", ports=tuple(ports[count // 2 :]))
    return with_spec(containers=(main,), init_containers=(other,))


def _containers(count: int) -> ClusterObject:
    made = [Container(name) for name in NAMES[:count]]
    return with_spec(containers=tuple(made[: count // 2]), init_containers=tuple(made[count // 2 :]))


def _asking(count: int) -> ClusterObject:
    amounts = dict.fromkeys((f"a/{name}" for name in NAMES[: count - 1]), "1")
    container = Container("main", Resources(requests=amounts))
    return with_spec(containers=(container,), overhead={"a/overhead": "1"})


def _offering(count: int) -> ClusterObject:
    amounts = dict.fromkeys((f"a/{name}" for name in NAMES[: count - 1]), "1")
    return replace(NODE, capacity=amounts, allocatable={"cpu": "1"})


LONGEST: dict[str, tuple[Callable[[int], ClusterObject], str, int]] = {
    "containers": (_containers, "spec.containers", 256),
    "ports": (_ports, "spec.containers", 1_024),
    "resources of a pod": (_asking, "spec.containers", 256),
    "resources of a node": (_offering, "status", 256),
    "node selector": (
        lambda count: with_spec(node_selector=dict.fromkeys(NAMES[:count], "v")),
        "spec.nodeSelector",
        256,
    ),
    "node affinity terms": (_node_terms, "spec.affinity.nodeAffinity", 64),
    "node requirements": (_requirements, "spec.affinity.nodeAffinity", 256),
    "node values": (_node_values, "spec.affinity.nodeAffinity", 10_000),
    "pod terms": (_pod_terms, "spec.affinity", 64),
    "namespaces": (
        lambda count: _near(namespaces=tuple(NAMES[:count])),
        f"spec.affinity.podAffinity.{REQUIRED}.namespaces",
        256,
    ),
    "keys to match": (
        lambda count: _near(match_label_keys=tuple(NAMES[:count])),
        f"spec.affinity.podAffinity.{REQUIRED}.matchLabelKeys",
        64,
    ),
    "keys to mismatch": (
        lambda count: _near(mismatch_label_keys=tuple(NAMES[:count])),
        f"spec.affinity.podAffinity.{REQUIRED}.mismatchLabelKeys",
        64,
    ),
    "tolerations": (
        lambda count: with_spec(tolerations=(Toleration("a", "Exists"),) * count),
        "spec.tolerations",
        256,
    ),
    "spread": (_spread, "spec.topologySpreadConstraints", 32),
    "gates": (lambda count: replace(POD, gates=tuple(NAMES[:count])), "spec.schedulingGates", 64),
    "taints": (
        lambda count: replace(NODE, taints=tuple(Taint(name, "", "NoSchedule") for name in NAMES[:count])),
        "spec.taints",
        256,
    ),
    "a budget's labels": (
        lambda count: replace(BUDGET, selector=LabelSelector(dict.fromkeys(NAMES[:count], "v"))),
        "spec.selector",
        1_000,
    ),
    "a budget's values": (
        lambda count: replace(
            BUDGET,
            selector=LabelSelector(
                match_expressions=(SelectorRequirement("a", "In", tuple(NAMES[: count - 1])),)
            ),
        ),
        "spec.selector",
        1_000,
    ),
}
each_list = pytest.mark.parametrize(("made", "path", "most"), LONGEST.values(), ids=LONGEST)


@each_list
def test_a_list_of_the_longest_that_is_taken_is_right(
    made: Callable[[int], ClusterObject], path: str, most: int
) -> None:
    assert faults(made(most)) == []


@each_list
def test_a_list_that_is_one_longer_is_refused_with_both_numbers(
    made: Callable[[int], ClusterObject], path: str, most: int
) -> None:
    [fault] = validate(made(most + 1))

    assert (fault.field, fault.reason) == (path, "TOO_MANY")
    assert f"must have at most {most} " in fault.description
    assert fault.description.endswith(f"not {most + 1}")
