"""Small clusters and pods that meet every special case: equal nodes, nothing left, zero requests, huge amounts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from muster.model.meta import SelectorRequirement
from muster.model.node import Node, Taint
from muster.model.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PreferredSchedulingTerm,
    Resources,
    Toleration,
)
from tests.dsl.nodes import HOSTNAME

GPU = "example.com/gpu"
TAINTS = (
    Taint("dedicated", "x", "NoSchedule"),
    Taint("flaky", "", "PreferNoSchedule"),
    Taint("old", "", "PreferNoSchedule"),
    Taint("dying", "", "NoExecute"),
)

_TAINT_SETS = ((), (), (), (TAINTS[1],), (TAINTS[1], TAINTS[2]), (TAINTS[0],), (TAINTS[3], TAINTS[2]))


def one_in(draw: st.DrawFn, number: int) -> bool:
    """True for about one draw in so many."""
    return draw(st.integers(1, number)) == number


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    offer = {
        "cpu": draw(st.sampled_from(["8", "8", "4", "2500m", "16", "8", "0"])),
        "memory": draw(st.sampled_from(["8Gi", "8Gi", "3Gi", "16Gi", "8Gi", "0"])),
        "pods": draw(st.sampled_from(["110", "110", "20", "5", "2", "0"])),
    }
    if one_in(draw, 2):
        offer[GPU] = str(draw(st.integers(0, 3)))
    return Node(
        name=name,
        labels={HOSTNAME: name}
        | ({"zone": draw(st.sampled_from(["a", "b", ""]))} if not one_in(draw, 5) else {}),
        taints=draw(st.sampled_from(_TAINT_SETS)),
        unschedulable=one_in(draw, 12),
        allocatable=offer,
    )


clusters = st.integers(1, 7).flatmap(
    lambda number: st.tuples(*(nodes(f"node-{(place * 5) % 7}") for place in range(number)))
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    requests = {
        "cpu": draw(st.sampled_from(["0", "300m", "1", "2"])),
        "memory": draw(st.sampled_from(["0", "200Mi", "1Gi"])),
    }
    if one_in(draw, 5):
        requests[GPU] = str(draw(st.integers(0, 2)))
    has_port = one_in(draw, 6)
    spec = PodSpec(
        containers=(
            Container(
                resources=Resources(requests=requests),
                ports=(ContainerPort(host_port=80),) if has_port else (),
            ),
        ),
        node_selector={"zone": "a"} if one_in(draw, 6) else {},
        tolerations=tuple(
            Toleration(key=taint.key, operator="Exists")
            for taint in draw(st.lists(st.sampled_from(TAINTS), max_size=3, unique=True))
        ),
        affinity=draw(st.sampled_from([None, _PREFERS_ZONES])),
    )
    return Pod(name="pod", namespace="default", spec=spec)


_PREFERS_ZONES = Affinity(
    node_affinity=NodeAffinity(
        preferred=tuple(
            PreferredSchedulingTerm(
                weight, NodeSelectorTerm(match_expressions=(SelectorRequirement("zone", "In", values),))
            )
            for weight, values in ((3, ("a",)), (4, ("", "b")))
        )
    )
)

CURVES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0, 0), (100, 100)),
    ((0, 100), (50, 0), (100, 80)),
    ((20, 70), (70, 100), (90, 10)),
)


def scored(strategy: str | tuple[tuple[int, int], ...], weights: tuple[int, int, int, int]) -> dict[str, Any]:
    """The profile that `reference.Settings` of the same strategy and weights describe."""
    fit, balanced, taints, affinity = weights
    args: dict[str, Any] = {
        "strategy": {"least": "LeastAllocated", "most": "MostAllocated"}.get(str(strategy))
    }
    if not isinstance(strategy, str):
        points = [{"utilization": at, "score": value // 10} for at, value in strategy]
        args = {"strategy": "RequestedToCapacityRatio", "shape": points}
    return {
        "name": "drawn",
        "scores": [
            {"name": "NodeResourcesFit", "weight": fit, "args": args},
            {"name": "NodeResourcesBalancedAllocation", "weight": balanced},
            {"name": "TaintToleration", "weight": taints},
            {"name": "NodeAffinity", "weight": affinity},
        ],
    }


def shrunk(node: Node) -> Node:
    """The node with less on offer."""
    return replace(node, allocatable=node.allocatable | {"cpu": "500m", "memory": "100Mi"})
