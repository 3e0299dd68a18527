"""Pods of a preemptor that step aside for a unit that is put back, and what that costs."""

from __future__ import annotations

from muster.core.domains import CLUSTER
from muster.core.preemption.board import Board
from muster.core.preemption.placers import placer_in
from tests.core.preemption_ground import ground_on
from tests.dsl import node, pod
from tests.dsl.preemption import BusyCluster


def test_each_pod_that_looks_for_another_node_costs_of_the_move_budget() -> None:
    cluster = BusyCluster(node("a", "4"), node("b", "3"))
    cluster.low_pod("dear", "a", cpu="4", priority=50)
    cluster.low_pod("cheap", "b", cpu="3")
    unit, _ = cluster.unit(pod("p"))
    ground = ground_on(cluster, unit)
    everybody = ground.victims.everybody()
    placement = placer_in(ground, CLUSTER).most(everybody)
    assert placement is not None
    board = Board(ground, placement, everybody)
    spent = ground.budget.spent

    assert board.put_back(0)

    assert ground.budget.spent > spent
    assert board.placement.slots.tolist() == [ground.snapshot.nodes.slot("b")]
