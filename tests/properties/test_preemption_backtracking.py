"""What preemption asks of small cases agrees with trying everything in the plainest way, whatever was asked before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.domains import CLUSTER
from muster.core.pod_placement import placer_of
from muster.core.preemption.oracle import Oracle, oracle_of
from muster.core.preemption.placers import placer_in
from muster.core.search.backtracking import backtracking_of
from muster.core.search.domain_search import DomainPacking, chosen_domains
from muster.core.search.packing import Verdict
from muster.core.search.problem import compile_problem
from muster.core.tree import Unit
from muster.model.node import Node
from tests.core.domain_placements import check, problem_of
from tests.core.preemption_ground import ground_on
from tests.dsl import Cluster, composite, gang, node, pod, pod_group
from tests.dsl.groups import GroupPlan
from tests.dsl.preemption import BusyCluster
from tests.properties.domain_reference import fits

KEYS = ("block", "rack")
ENOUGH = 10_000


@st.composite
def nodes_of(draw: st.DrawFn) -> list[Node]:
    """Two to five nodes in racks and blocks that need not nest; a label may be missing."""
    nodes = []
    for place in range(draw(st.integers(2, 5))):
        labels = {key: str(draw(st.integers(0, 1))) for key in KEYS if draw(st.integers(0, 5))}
        gpus = str(draw(st.integers(0, 2)))
        nodes.append(node(f"node-{place}", str(draw(st.integers(1, 5))), labels=labels, gpu=gpus))
    return nodes


@st.composite
def trees(draw: st.DrawFn, name: str = "root", depth: int = 0) -> GroupPlan:
    """A tree in which every group needs all that it has."""
    same = draw(st.sampled_from([None, *KEYS]))
    if depth == 2 or draw(st.booleans()):
        shapes = [
            (draw(st.sampled_from("112")), draw(st.sampled_from("001")))
            for _ in range(draw(st.integers(1, 3)))
        ]
        pods = tuple(pod(f"{name}-{place}", cpu=cpu, gpu=gpu) for place, (cpu, gpu) in enumerate(shapes))
        return pod_group(name, gang(len(pods)), pods=pods, same=same)
    children = [draw(trees(f"{name}-{place}", depth + 1)) for place in range(draw(st.integers(1, 2)))]
    return composite(name, gang(len(children)), *children, same=same)


@settings(max_examples=300, deadline=None)
@given(nodes_of(), trees())
def test_backtracking_finds_a_placement_exactly_if_there_is_one(nodes: list[Node], plan: GroupPlan) -> None:
    cluster = Cluster(*nodes)
    table = cluster.snapshot.nodes
    problem = problem_of(cluster, plan)
    useful = np.flatnonzero(problem.hosts.any(axis=0)).tolist()
    backtracking = backtracking_of(problem, table, useful, problem.demand.tolist())
    if backtracking is None:
        # Pods that no node takes are in no problem, and then not all that there are are enough.
        assert not fits(problem, table)
        return

    packing, tried = backtracking.place(problem.free[useful].tolist(), ENOUGH)

    assert packing.verdict is (Verdict.FOUND if fits(problem, table) else Verdict.IMPOSSIBLE)
    assert tried < ENOUGH
    if packing.verdict is Verdict.FOUND:
        check(problem, table, DomainPacking(packing, chosen_domains(problem, table, packing)))


def oracle_on(cluster: BusyCluster, unit: Unit) -> Oracle | None:
    """The oracle for all pods of the unit; None if greedy placement finds no room with everybody gone."""
    ground = ground_on(cluster, unit)
    whole = placer_in(ground, CLUSTER).most(ground.victims.everybody())
    return None if whole is None else oracle_of(ground, whole)


def fits_without(oracle: Oracle, evicted: tuple[bool, ...]) -> bool:
    """Whether the wanted pods fit with these units gone, by trying everything."""
    ground = oracle.ground
    mark = ground.snapshot.mark()
    ground.remove(np.array(evicted, dtype=np.bool_))
    placer = placer_of(ground.snapshot, ground.recursion.profile)
    problem = compile_problem(ground.snapshot, oracle.wanted, ground.recursion.profile, placer)
    answer = fits(problem, ground.snapshot.nodes)
    ground.snapshot.rollback(mark)
    return answer


@settings(max_examples=150, deadline=None)
@given(nodes_of(), trees(), st.data())
def test_an_answer_does_not_depend_on_what_was_asked_before(
    nodes: list[Node], plan: GroupPlan, data: st.DataObject
) -> None:
    cluster = BusyCluster(nodes)
    for each in nodes:
        for number in range(int(each.allocatable["cpu"])):
            gpu = "1" if number < int(each.allocatable.get("example.com/gpu", "0")) else "0"
            cluster.low_pod(f"low-{each.name}-{number}", each.name, gpu=gpu)
    unit, _ = cluster.unit(plan)
    oracle = oracle_on(cluster, unit)
    if oracle is None:
        return
    units = len(oracle.ground.victims)
    asked = data.draw(st.lists(st.tuples(*[st.booleans()] * units), min_size=1, max_size=8))

    for evicted in asked:
        mask = np.array(evicted, dtype=np.bool_)
        expected = fits_without(oracle, evicted)
        assert oracle.fits(mask) == expected
        placement = oracle.place(mask)
        assert (placement is not None) == expected
        if placement is not None:
            room = cluster.snapshot.nodes.free + oracle.ground.usage.freed(mask)
            assert (placement.load(*room.shape) <= room).all()


@settings(max_examples=100, deadline=None)
@given(nodes_of(), trees(), st.data())
def test_a_packing_with_pods_moved_keeps_to_its_domains_and_to_the_room(
    nodes: list[Node], plan: GroupPlan, data: st.DataObject
) -> None:
    cluster = BusyCluster(nodes)
    unit, _ = cluster.unit(plan)
    oracle = oracle_on(cluster, unit)
    if oracle is None:
        return
    nobody = oracle.ground.victims.nobody()
    oracle.ask(nobody)
    room = oracle._room.left(nobody)
    cuts = data.draw(st.lists(st.integers(0, 3), min_size=room.size, max_size=room.size))
    left = np.maximum(room - np.array(cuts, dtype=np.int64).reshape(room.shape), 0)

    moved = oracle._answers.adjusted(left)

    if moved is not None:
        problem = replace(oracle._problem, demand=oracle._room.demand, free=oracle._room.of_problem(left))
        check(problem, cluster.snapshot.nodes, moved)
