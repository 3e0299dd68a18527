"""The nodes of a cluster offer a bounded number of resources between them, each of which is a row over all nodes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from muster.engine.api import ApplyCall
from muster.engine.applying import ApplyPlan
from muster.engine.errors import InvalidArgumentError
from muster.engine.offered_resources import MOST_RESOURCES_A_CLUSTER
from muster.engine.slices import finished
from muster.model.node import Node
from muster.validation.violations import TOO_MANY
from tests.engine.tree_cluster import TreeCluster
from tests.fakes.ids import FakeIds

NODES = MOST_RESOURCES_A_CLUSTER // 128


def offering(name: str, first: int, count: int = 128) -> Node:
    return Node(name=name, capacity={f"x/{number}": "1" for number in range(first, first + count)})


FULL = [offering(f"node-{place}", place * 128) for place in range(NODES)]


def refused(trees: TreeCluster, nodes: Iterable[Node]) -> list[tuple[str, str]]:
    """Path and reason of each fault of a call with these nodes; they are there afterwards if there is none."""
    sent = list(nodes)
    call = ApplyCall("default", sent, [f"objects[{place}].node." for place in range(len(sent))])
    try:
        finished(ApplyPlan(trees.cluster, call, trees.now_us, FakeIds()).admit({}))
    except InvalidArgumentError as error:
        return [(fault.field, fault.reason) for fault in error.violations]
    trees.apply(*sent)
    return []


def test_the_call_that_would_make_too_many_is_refused_at_the_nodes_that_bring_new_ones() -> None:
    trees = TreeCluster()

    assert not refused(trees, FULL)
    assert not refused(trees, [offering("same", 0)])
    assert refused(trees, [offering("same", 5), offering("new", 900, 200)]) == [
        ("objects[1].node.status", TOO_MANY)
    ]


def test_names_within_one_call_count_together() -> None:
    assert len(refused(TreeCluster(), [*FULL, offering("new", 5_000, 1)])) == NODES + 1


@pytest.mark.parametrize("is_gone", [True, False])
def test_names_that_no_node_offers_any_more_make_place_for_others(*, is_gone: bool) -> None:
    trees = TreeCluster(*FULL)
    if is_gone:
        trees.delete(FULL[0])
    else:
        trees.apply(offering("node-0", 128))

    assert not refused(trees, [offering("new", 5_000)])
    assert refused(trees, [offering("another", 6_000, 1)])
