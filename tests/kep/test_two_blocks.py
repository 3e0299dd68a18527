"""The example of KEP-6012: a root that wants one block over two groups of five pods that each want one rack.

Racks are named by their block and say how many pods of one cpu they hold.
"""

from muster.core.decision import SearchEnd, Status
from muster.model.node import Node
from muster.plugins.profile import make_profile
from tests.dsl import Cluster, block, composite, gang, pod, pod_group, rack

UNSCHEDULABLE, SUCCESS = Status.UNSCHEDULABLE, Status.SUCCESS

BLOCK_A = block("block-A", rack("rack-A1", free=5), rack("rack-A2", free=5))
BLOCK_B = block("block-B", rack("rack-B1", free=5), rack("rack-B2", free=5))
CPG_ROOT = composite(
    "CPG-root",
    gang(2),
    pod_group("PG-1", gang(5), pods=5, same="rack"),
    pod_group("PG-2", gang(5), pods=5, same="rack"),
    same="block",
)


def partly_used(*blocks: list[Node]) -> Cluster:
    """Two pods run in rack-A1, so that it has room for three."""
    cluster = Cluster(*blocks)
    cluster.runs(pod(), "node-rack-A1", "node-rack-A1")
    return cluster


def test_cpg_root_is_locked_into_block_b_since_block_a_has_only_one_rack_that_is_big_enough() -> None:
    cluster = partly_used(BLOCK_A, BLOCK_B)

    result = cluster.schedule(CPG_ROOT)

    assert result.tried("CPG-root") == {"block-A": UNSCHEDULABLE, "block-B": SUCCESS}
    assert result.placed == {"CPG-root": "block-B", "PG-1": "rack-B1", "PG-2": "rack-B2"}
    assert result.group("CPG-root").satisfied == 2


def test_racks_are_looked_for_inside_the_block_and_a_sibling_sees_what_its_elder_took() -> None:
    cluster = partly_used(BLOCK_A, BLOCK_B)

    result = cluster.schedule(CPG_ROOT)

    assert result.tried("PG-1") == {"rack-B1": SUCCESS, "rack-B2": SUCCESS}
    assert result.tried("PG-2") == {"rack-B1": UNSCHEDULABLE, "rack-B2": SUCCESS}


def test_without_block_b_one_group_of_the_two_is_not_enough_and_nothing_is_bound() -> None:
    cluster = partly_used(BLOCK_A)

    result = cluster.schedule(CPG_ROOT)

    assert result.code == "UNSCHEDULABLE"
    assert result.tried("CPG-root") == {"block-A": UNSCHEDULABLE}
    assert result.decision.search.end is SearchEnd.EXHAUSTED
    assert result.on == {}


# PG-1 needs three pods and has five: it gets most of them where PG-2, which needs all of its five, has its only rack.
TIGHT_BLOCK_A = block("block-A", rack("rack-A1", free=4), rack("rack-A2", free=5))
TIGHT_ROOT = composite(
    "CPG-root",
    gang(2),
    pod_group("PG-1", gang(3), pods=5, same="rack"),
    pod_group("PG-2", gang(5), pods=5, same="rack"),
    same="block",
)


def test_greedy_alone_gives_pg_1_the_rack_that_scores_best_and_has_none_left_for_pg_2() -> None:
    cluster = Cluster(TIGHT_BLOCK_A, profile=make_profile({"name": "greedy", "greedyOnly": True}))

    result = cluster.schedule(TIGHT_ROOT)

    assert result.code == "UNSCHEDULABLE"
    assert result.group("PG-1").domain_value == "rack-A2"
    assert result.group("PG-2").status is UNSCHEDULABLE
    assert result.decision.search.end is SearchEnd.NOT_NEEDED


def test_the_search_moves_pg_1_to_the_rack_that_pg_2_cannot_use() -> None:
    cluster = Cluster(TIGHT_BLOCK_A)

    result = cluster.schedule(TIGHT_ROOT)

    assert result.decision.search.end is SearchEnd.FOUND
    assert result.placed == {"CPG-root": "block-A", "PG-1": "rack-A1", "PG-2": "rack-A2"}


def test_what_the_search_left_is_filled_inside_the_racks_that_it_chose() -> None:
    cluster = Cluster(TIGHT_BLOCK_A)

    result = cluster.schedule(TIGHT_ROOT)

    assert [result.group(name).satisfied for name in ("PG-1", "PG-2")] == [4, 5]
    assert set(result.nodes) == {"node-rack-A1", "node-rack-A2"}
