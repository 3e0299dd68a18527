"""The search over domains agrees with trying everything, on tiny clusters whose labels nest, overlap or are missing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.search.packing import Verdict
from muster.model.node import Node
from muster.model.pod import Pod
from tests.core.domain_placements import find, problem_of
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.properties.domain_reference import fits

KEYS = ("zone", "block", "rack")
SMALL, LARGE = "1", "2"


@st.composite
def topologies(draw: st.DrawFn) -> list[Node]:
    """Up to seven nodes; in half of the draws every rack is in one block and every block in one zone."""
    nests = draw(st.booleans())
    nodes: list[Node] = []
    for place in range(draw(st.integers(2, 7))):
        rack = draw(st.integers(0, 3))
        values = (
            [rack // 3, rack // 2, rack]
            if nests
            else [draw(st.integers(0, 1)), draw(st.integers(0, 2)), rack]
        )
        labels = {key: str(value) for key, value in zip(KEYS, values, strict=True)}
        if draw(st.integers(0, 5)) == 0:
            del labels[draw(st.sampled_from(KEYS))]
        offer = {"cpu": str(draw(st.integers(0, 4))), "gpu": str(draw(st.integers(0, 2)))}
        nodes.append(node(f"node-{place}", offer["cpu"], labels=labels, gpu=offer["gpu"]))
    return nodes


keys = st.sampled_from([None, "rack", "rack", "block", "zone"])


@st.composite
def pods_of(draw: st.DrawFn, name: str) -> tuple[Pod, ...]:
    number = draw(st.integers(1, 3))
    return tuple(
        pod(
            f"{name}-{place}",
            cpu=draw(st.sampled_from([SMALL, SMALL, LARGE])),
            host_port=draw(st.sampled_from([0] * 9 + [80])),
            gpu=draw(st.sampled_from("001")),
        )
        for place in range(number)
    )


@st.composite
def plans(draw: st.DrawFn, nodes: list[Node], name: str = "root", depth: int = 0) -> GroupPlan:
    """A tree of up to three levels and few pods; members of some leaves run already."""
    if depth == 2 or (depth and draw(st.booleans())):
        pods = draw(pods_of(name))
        bound = tuple(draw(st.sampled_from(nodes)).name for _ in range(draw(st.integers(0, 6)) == 0))
        least = draw(st.integers(1, len(pods))) + len(bound)
        return pod_group(name, gang(least), pods=pods, same=draw(keys), bound=bound)
    number = draw(st.integers(1, 3 - depth))
    children = [draw(plans(nodes, f"{name}-{place}", depth + 1)) for place in range(number)]
    return composite(name, gang(draw(st.integers(1, number))), *children, same=draw(keys))


@settings(max_examples=300, deadline=None)
@given(topologies().flatmap(lambda nodes: st.tuples(st.just(nodes), plans(nodes))))
def test_the_verdict_is_that_of_trying_everything(drawn: tuple[list[Node], GroupPlan]) -> None:
    nodes, plan = drawn
    cluster = Cluster(*nodes)
    problem = problem_of(cluster, plan)

    found = find(cluster, plan)

    expected = Verdict.FOUND if fits(problem, cluster.snapshot.nodes) else Verdict.IMPOSSIBLE
    assert found.verdict is expected


@settings(max_examples=100, deadline=None)
@given(topologies().flatmap(lambda nodes: st.tuples(st.just(nodes), plans(nodes))), st.integers(0, 60))
def test_a_small_budget_never_makes_a_verdict_wrong(drawn: tuple[list[Node], GroupPlan], steps: int) -> None:
    nodes, plan = drawn
    cluster = Cluster(*nodes)
    problem = problem_of(cluster, plan)

    found = find(cluster, plan, steps)

    if found.verdict is not Verdict.UNKNOWN:
        assert (found.verdict is Verdict.FOUND) == fits(problem, cluster.snapshot.nodes)
