"""What capacity rules out: trees too large for a domain, for the domains inside it, or for the cluster."""

from __future__ import annotations

import pytest

from muster.core import decide as door
from muster.core import lockstep
from muster.core.decision import SearchEnd, Status
from muster.core.lockstep import NoRehearsal
from tests.dsl import Cluster, basic, block, composite, gang, node, pod, pod_group, rack
from tests.dsl.cluster import Result

UNSCHEDULABLE, UNRESOLVABLE = Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.fixture(params=["in lock-step", "one by one"], autouse=True)
def rehearsed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to try domains ask the same bound."""
    monkeypatch.setattr(lockstep, "_FEW_DOMAINS", 0)
    if request.param == "one by one":
        monkeypatch.setattr(door, "Lockstep", lambda *_: NoRehearsal())


def judged(result: Result) -> tuple[dict[str, Status], int, SearchEnd, int]:
    """Statuses of the root's domains, how many were tried, and what the search came to."""
    root, search = result.group("root"), result.decision.search
    return result.tried("root"), root.tried, search.end, search.steps


def test_groups_that_fit_one_by_one_and_not_together_are_not_tried() -> None:
    cluster = Cluster(block("A", rack("A1", free=5)), block("B", rack("B1", free=3), rack("B2", free=2)))
    groups = [pod_group(f"pg-{i}", gang(3), pods=3) for i in range(2)]

    result = cluster.schedule(composite("root", gang(2), *groups, same="block"))

    assert judged(result) == ({"A": UNRESOLVABLE, "B": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_where_running_pods_are_in_the_way_removing_them_could_help() -> None:
    cluster = Cluster(block("A", rack("A1", free=6)), block("B", rack("B1", free=5)))
    cluster.runs(pod(), "node-A1")
    groups = [pod_group(f"pg-{i}", gang(3), pods=3) for i in range(2)]

    result = cluster.schedule(composite("root", gang(2), *groups, same="block"))

    assert judged(result) == ({"A": UNSCHEDULABLE, "B": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_amounts_of_different_pods_add_up() -> None:
    # Four cpu hold the wide pod, or all four narrow ones.
    cluster = Cluster(block("A", rack("A1", free=4)))
    wide = pod_group("wide", gang(1), pods=(pod("w", cpu="3"),))
    narrow = pod_group("narrow", gang(2), pods=(pod("n-0"), pod("n-1")))

    result = cluster.schedule(composite("root", gang(2), wide, narrow, same="block"))

    assert judged(result) == ({"A": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_a_larger_pod_takes_the_place_of_a_smaller_one() -> None:
    # There are ten cpu and eight are asked for, but a node holds one of these pods only.
    cluster = Cluster(block("A", [node("a", "5"), node("b", "5")]))
    large = pod_group("large", gang(1), pods=(pod("l", cpu="4"),))
    small = pod_group("small", gang(2), pods=(pod("s-0", cpu="3"), pod("s-1", cpu="3")))
    cluster.runs(pod(cpu="1"), "a", "b")

    result = cluster.schedule(composite("root", gang(2), large, small, same="block"))

    assert judged(result) == ({"A": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_only_the_cheapest_children_that_the_minimum_needs_count() -> None:
    cluster = Cluster(block("A", rack("A1", free=5)))
    groups = [pod_group(f"pg-{pods}", gang(pods), pods=pods) for pods in (4, 3, 2)]

    result = cluster.schedule(composite("root", gang(2), *groups, same="block"))

    assert sorted(result.on) == ["pg-2-0", "pg-2-1", "pg-3-0", "pg-3-1", "pg-3-2"]


def test_a_block_whose_racks_hold_fewer_groups_than_are_needed_is_not_tried() -> None:
    cluster = Cluster(block("A", *(rack(f"A{i}", free=3) for i in range(4))))
    groups = [pod_group(f"pg-{i}", gang(2), pods=2, same="rack") for i in range(5)]

    result = cluster.schedule(composite("root", gang(5), *groups, same="block"))

    assert judged(result) == ({"A": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_a_group_that_finds_no_rack_is_one_of_those_that_cannot_hold() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    inner = composite("inner", basic(), pod_group("pg-0", gang(5), pods=5, same="rack"))
    root = composite("root", gang(2), inner, pod_group("pg-1", gang(1), pods=1), same="block")

    result = cluster.schedule(root)

    assert judged(result) == ({"A": UNRESOLVABLE}, 0, SearchEnd.EXHAUSTED, 0)


def test_children_that_hold_by_running_pods_take_nothing_more() -> None:
    cluster = Cluster(block("A", rack("A1", free=4), rack("A2", free=4)))
    cluster.runs(pod(), "node-A1", "node-A2")
    held = [
        pod_group(f"held-{name}", gang(1), pods=4, bound=(f"node-{name}",), admissible=False)
        for name in ("A1", "A2")
    ]

    result = cluster.schedule(
        composite("root", gang(3), *held, pod_group("new", gang(6), pods=6), same="block")
    )

    assert result.code == "SCHEDULED"
    assert len(result.on) == 6


def test_a_tree_over_the_whole_cluster_is_proved_hopeless_without_a_search() -> None:
    cluster = Cluster(*(rack(f"r{i}", free=3) for i in range(4)))
    cluster.runs(pod(), "node-r0")
    groups = [pod_group(f"pg-{i}", gang(3), pods=3, same="rack") for i in range(4)]

    result = cluster.schedule(composite("root", gang(4), *groups))

    assert result.code == "UNSCHEDULABLE"
    assert (result.decision.search.end, result.decision.search.steps) == (SearchEnd.EXHAUSTED, 0)
