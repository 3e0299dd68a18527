"""What is remembered of a small case: packings that are made to fit, and rooms for which none was found."""

from __future__ import annotations

import numpy as np

from muster.core.arrays import IntArray
from muster.core.preemption.answers import Answers
from muster.core.preemption.usage import usage_of
from muster.core.preemption.victims import victims_of
from muster.core.preemption.wanted_room import wanted_room
from muster.core.preemption_units import DisruptionUnits
from muster.core.search.domain_search import DomainPacking, chosen_domains
from muster.core.search.packing import UNKNOWN, Packing, Verdict
from tests.core.domain_placements import problem_of
from tests.dsl import Cluster, gang, node, pod_group

RACKS = (
    node("a", "2", labels={"rack": "x"}),
    node("b", "2", labels={"rack": "x"}),
    node("c", "2", labels={"rack": "y"}),
)
PACKED_ON_A = Packing(Verdict.FOUND, ((0, 0, 0, 2),))


def _knowing_a_packing_on_a() -> Answers:
    """Two pods of one cpu, in one rack, both on node a."""
    cluster = Cluster(*RACKS)
    problem = problem_of(cluster, pod_group("g", gang(2), pods=2, same="rack"))
    usage = usage_of(cluster.snapshot, victims_of(cluster.snapshot, DisruptionUnits()))
    room = wanted_room(problem, np.array([[1]]), np.array([[2, 2, 2]]), usage, np.array([2]))
    answers = Answers(problem, room)
    domains = chosen_domains(problem, cluster.snapshot.nodes, PACKED_ON_A)
    answers.keep(room.full, DomainPacking(PACKED_ON_A, domains))
    return answers


def _cpus(a: int, b: int, c: int) -> IntArray:
    return np.array([[a], [b], [c]], dtype=np.int64)


def test_a_packing_is_an_answer_wherever_there_is_as_much_room() -> None:
    answers = _knowing_a_packing_on_a()

    fitting = answers.fitting(_cpus(2, 0, 0))

    assert fitting is not None
    assert fitting.packing == PACKED_ON_A
    assert answers.fitting(_cpus(1, 2, 2)) is None


def test_a_pod_moves_to_another_node_of_its_domain() -> None:
    moved = _knowing_a_packing_on_a().adjusted(_cpus(1, 1, 2))

    assert moved is not None
    assert moved.packing.placed == ((0, 0, 0, 1), (0, 0, 1, 1))


def test_no_pod_moves_out_of_its_domain() -> None:
    assert _knowing_a_packing_on_a().adjusted(_cpus(1, 0, 2)) is None


def test_where_nothing_was_found_nothing_is_for_less_room() -> None:
    answers = _knowing_a_packing_on_a()
    answers.keep(_cpus(1, 0, 1), DomainPacking(UNKNOWN, {}))

    assert answers.is_short(_cpus(1, 0, 0))
    assert not answers.is_short(_cpus(1, 1, 0))
