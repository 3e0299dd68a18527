import pytest

from muster.core.decision import Decision, DecisionCode, GroupResult, Reason, Search, SearchEnd, Status
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.model.meta import ObjectKey
from muster.rpc.codec import encode_decision, encode_reasons
from muster.v1 import decision_pb2 as pb

ROOT = ObjectKey("CompositePodGroup", "default", "root")
LEAF = ObjectKey("PodGroup", "default", "workers")
CPU = Reason("InsufficientCpu", "3 nodes: too little cpu", 3, {"resource": "cpu"})
TAINT = Reason("Taint", "1 node: tainted", 1)


def _record(**fields: object) -> DecisionRecord:
    decision = Decision(unit=ROOT, **{"code": DecisionCode.SCHEDULED, **fields})  # type: ignore[arg-type]
    return DecisionRecord(
        id="d-1",
        revision=7,
        snapshot_revision=6,
        decision=decision,
        assignments=AssignmentColumns("default", ("n-1", "n-2"), ("p-0", "p-1"), ("u-0", "u-1"), (1, 0)),
        trace_id="t",
        profile="default-scheduler",
        create_us=1_500_000,
        duration_us=2_500,
    )


def test_a_record_is_encoded_with_all_that_it_has() -> None:
    message = encode_decision("east", _record(message="2 of 2 pods", search=Search(SearchEnd.FOUND, 40)))

    assert (message.id, message.cluster, message.revision, message.snapshot_revision) == ("d-1", "east", 7, 6)
    assert (message.unit.kind, message.unit.namespace, message.unit.name) == tuple(ROOT)
    assert (message.code, message.message) == (pb.DECISION_CODE_SCHEDULED, "2 of 2 pods")
    assert (message.search.end, message.search.nodes_spent) == (pb.SEARCH_END_FOUND, 40)
    assert (message.trace_id, message.profile) == ("t", "default-scheduler")
    assert (message.create_time.seconds, message.create_time.nanos) == (1, 500_000_000)
    assert message.duration.nanos == 2_500_000
    assert not message.HasField("result")


def test_assignments_stay_in_columns() -> None:
    columns = encode_decision("east", _record()).assignments

    assert columns.namespace == "default"
    assert [columns.nodes[index] for index in columns.node_index] == ["n-2", "n-1"]
    assert list(zip(columns.pods, columns.uids, strict=True)) == [("p-0", "u-0"), ("p-1", "u-1")]


def test_results_are_encoded_with_all_below_them() -> None:
    leaf = GroupResult(
        LEAF, Status.UNSCHEDULABLE, 5, 1, 2, 3, 4, reasons=(CPU,), pod_reasons={1: (CPU,), 0: (TAINT,)}
    )
    root = GroupResult(
        ROOT, Status.WAIT, domain_key="rack", domain_value="r-1", tried=8, pruned=9, children=(leaf,)
    )

    message = encode_decision("east", _record(result=root)).result

    (child,) = message.children
    assert (message.status, message.domain_key, message.domain_value) == (pb.GROUP_STATUS_WAIT, "rack", "r-1")
    assert (message.candidates_tried, message.candidates_pruned) == (8, 9)
    assert (child.ref.name, child.status) == ("workers", pb.GROUP_STATUS_UNSCHEDULABLE)
    assert (child.required_count, child.satisfied_count, child.remaining_count) == (5, 1, 2)
    assert (child.unschedulable_count, child.unresolvable_count) == (3, 4)
    assert [reason.code for reason in child.reasons] == ["InsufficientCpu", "Taint"]


def test_a_reason_is_given_once_with_its_facts() -> None:
    (message,) = encode_reasons([CPU, CPU])

    assert (message.code, message.message, message.node_count) == (CPU.code, CPU.message, 3)
    assert dict(message.details) == {"resource": "cpu"}


@pytest.mark.parametrize("code", DecisionCode, ids=lambda each: each.value)
def test_every_code_has_a_value_on_the_wire(code: DecisionCode) -> None:
    message = encode_decision("east", _record(code=code))

    assert pb.DecisionCode.Name(message.code) == f"DECISION_CODE_{code.value}"


@pytest.mark.parametrize("end", SearchEnd, ids=lambda each: each.value)
def test_every_end_of_a_search_has_a_value_on_the_wire(end: SearchEnd) -> None:
    message = encode_decision("east", _record(search=Search(end)))

    assert pb.SearchEnd.Name(message.search.end) == f"SEARCH_END_{end.value}"
