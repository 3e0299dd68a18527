"""Answers of simulations as messages: what they tell of use, and what they leave out where there is too much."""

from __future__ import annotations

from muster.core.decision import Assignments, Decision, DecisionCode
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.engine.simulation import SimulationAnswer
from muster.engine.simulation_totals import DomainUse, ResourceUse, Totals
from muster.model.meta import ObjectKey
from muster.rpc.codec.simulation import encode_simulation
from muster.rpc.limits import PAGE_BYTES

CPU = ResourceUse("cpu", 4_000, 1_500, 500, 0.25)


def record(name: str, pods: int) -> DecisionRecord:
    names = tuple(f"{name}-{i:030}" for i in range(pods))
    columns = AssignmentColumns("default", ("n",), names, ("",) * pods, (0,) * pods)
    placed = Assignments(tuple(range(pods)), ("n",), (0,) * pods)
    decision = Decision(ObjectKey("PodGroup", "default", name), DecisionCode.SCHEDULED, assignments=placed)
    return DecisionRecord("", 0, 7, decision, columns)


def answer(*records: DecisionRecord, totals: Totals | None = None) -> SimulationAnswer:
    return SimulationAnswer(records, totals or Totals(), is_partial=False, revision=7)


def test_an_answer_that_fits_is_whole() -> None:
    message = encode_simulation("c", answer(record("a", 10), record("b", 10)))

    assert [len(each.assignments.pods) for each in message.decisions] == [10, 10]
    assert message.revision == 7


def test_the_columns_of_the_largest_decisions_are_left_out_first() -> None:
    message = encode_simulation(
        "c", answer(record("small", 10), record("large", 60_000), record("other", 40_000))
    )

    assert message.ByteSize() <= PAGE_BYTES
    assert [each.assignments_omitted for each in message.decisions] == [False, True, False]


def test_what_is_left_out_leaves_no_empty_part_where_there_was_none() -> None:
    decision = Decision(
        ObjectKey("PodGroup", "default", "g"), DecisionCode.UNSCHEDULABLE, message="x" * PAGE_BYTES
    )
    long = DecisionRecord("", 0, 7, decision)

    [told] = encode_simulation("c", answer(long)).decisions

    assert told.assignments_omitted
    assert not told.HasField("preemption")
    assert not told.HasField("result")


def test_use_is_told_as_quantities_and_shares() -> None:
    domain = DomainUse(("rack", "r1"), 2, (CPU,))

    totals = encode_simulation("c", answer(totals=Totals(resources=(CPU,), domains=(domain,)))).totals

    [cpu] = totals.resources
    assert (cpu.allocatable, cpu.used, cpu.used_before) == ("4", "1500m", "500m")
    assert (cpu.utilization, cpu.fragmentation) == (0.375, 0.25)
    assert [(each.key, each.value, each.nodes) for each in totals.domains] == [("rack", "r1", 2)]


def test_a_resource_that_nobody_offers_has_no_share_in_use() -> None:
    absent = ResourceUse("gpu", 0, 3, 3, 0.0)

    [gpu] = encode_simulation("c", answer(totals=Totals(resources=(absent,)))).totals.resources

    assert gpu.utilization == 0.0
