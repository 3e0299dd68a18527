"""Decision records come back whole, and lists of them by unit, code, time and revision."""

from dataclasses import replace

import pytest

from muster.core.decision import (
    Assignments,
    BudgetBreach,
    Decision,
    DecisionCode,
    Fate,
    GroupResult,
    Preemption,
    PreemptionEnd,
    Reason,
    Search,
    SearchEnd,
    Status,
    UnitFate,
)
from muster.engine.ports import AssignmentColumns, DecisionRecord, DisruptedPods, HistoryBounds
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_DISRUPTION_BUDGET, POD_GROUP, ObjectKey
from muster.store.store import SqlStore
from tests.contract.ledger import Ledger
from tests.contract.samples import AWKWARD

UNIT = ObjectKey(COMPOSITE_POD_GROUP, "default", "root")
LEAF = ObjectKey(POD_GROUP, "default", "leaf")
REASON = Reason("Insufficient", AWKWARD, 3, {"resource": "cpu"})
RESULT = GroupResult(
    UNIT,
    Status.UNSCHEDULABLE,
    *(5, 4, 3, 2, 1),
    domain_key="rack",
    domain_value="r1",
    tried=7,
    pruned=8,
    reasons=(REASON,),
    children=(GroupResult(LEAF, Status.SUCCESS, pod_reasons={0: (REASON,), 12: ()}),),
)
RECORD = DecisionRecord(
    id="decision-1",
    revision=1,
    snapshot_revision=0,
    decision=Decision(
        UNIT,
        DecisionCode.SCHEDULED,
        RESULT,
        Assignments((1 << 20, (1 << 20) + 1, 9 << 40), ("n2", "n1"), (0, 1, 0)),
        Search(SearchEnd.BUDGET_SPENT, 99),
        AWKWARD,
    ),
    assignments=AssignmentColumns(
        "default", ("n2", "n1"), ("pod-a", "pod-b", "other"), ("u1", "u2", "u3"), (0, 1, 0)
    ),
    trace_id="0af7651916cd43dd8448eb211c80319c",
    profile="default-scheduler",
    create_us=10,
    duration_us=20,
)
PREEMPTING = DecisionRecord(
    id="preempting",
    revision=1,
    snapshot_revision=1,
    decision=Decision(
        UNIT,
        DecisionCode.WAITING_FOR_PREEMPTION,
        RESULT,
        preemption=Preemption(
            PreemptionEnd.NOMINATED,
            Assignments((1 << 20, 2 << 20), ("n1", "n2"), (1, 0)),
            (UnitFate(LEAF, -7, Fate.EVICTED, True, (3 << 20, 4 << 20), AWKWARD),),
            (UnitFate(ObjectKey(POD, "default", "p"), 8, Fate.NOT_IN_THE_WAY, False, (5 << 20,), ""),),
            (6 << 20,),
            2,
            (BudgetBreach(ObjectKey(POD_DISRUPTION_BUDGET, "default", "b"), 2, 1),),
            9,
        ),
    ),
    nominations=AssignmentColumns("default", ("n1", "n2"), ("pod-a", "pod-b"), ("u1", "u2"), (1, 0)),
    disrupted=DisruptedPods((3 << 20,), ("default",), (AWKWARD,), ("u3",), ("n1",), (30,)),
)
UNHELPED = DecisionRecord(
    "unhelped",
    1,
    1,
    Decision(UNIT, DecisionCode.UNSCHEDULABLE, RESULT, preemption=Preemption(PreemptionEnd.NO_FIT)),
)
BARE = DecisionRecord("bare", 1, 1, Decision(LEAF, DecisionCode.PENDING))


def _keep(ledger: Ledger, *records: DecisionRecord) -> None:
    for record in records:
        writes = ledger.writes()
        ledger.add(writes, [])
        writes.decisions.append(record)
        ledger.commit(writes)


def _nth(number: int) -> DecisionRecord:
    """The n-th of a series: units and codes alternate, at times of ten times n."""
    unit = (UNIT, LEAF)[number % 2]
    code = (DecisionCode.SCHEDULED, DecisionCode.UNSCHEDULABLE, DecisionCode.INVALID)[number % 3]
    return DecisionRecord(f"id-{number}", number, number - 1, Decision(unit, code), create_us=10 * number)


@pytest.mark.parametrize(
    "record",
    [RECORD, PREEMPTING, UNHELPED, BARE],
    ids=["everything set", "nominations", "no fit", "nothing set"],
)
def test_a_record_comes_back_equal(store: SqlStore, ledger: Ledger, record: DecisionRecord) -> None:
    _keep(ledger, record)

    assert store.get_decision("main", record.id) == record
    assert store.list_decisions("main") == [record]


def test_names_and_ordinals_may_name_the_nodes_differently(store: SqlStore, ledger: Ledger) -> None:
    core = Assignments((5, 3), ("n9",), (0, 0))
    record = replace(RECORD, decision=replace(RECORD.decision, assignments=core))

    _keep(ledger, record)

    assert store.get_decision("main", record.id) == record


def test_a_record_of_another_cluster_or_id_is_not_found(store: SqlStore, ledger: Ledger) -> None:
    _keep(ledger, RECORD)

    assert store.get_decision("other", RECORD.id) is None
    assert store.get_decision("main", "decision-2") is None


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({}, [6, 5, 4, 3, 2, 1]),
        ({"limit": 2}, [6, 5]),
        ({"unit": LEAF}, [5, 3, 1]),
        ({"unit": LEAF._replace(kind=COMPOSITE_POD_GROUP)}, []),
        ({"codes": ["UNSCHEDULABLE", "INVALID"]}, [5, 4, 2, 1]),
        ({"from_us": 20, "to_us": 40}, [3, 2]),
        ({"before_revision": 3}, [2, 1]),
        ({"after_revision": 3}, [4, 5, 6]),
        ({"after_revision": 1, "before_revision": 6, "limit": 3}, [2, 3, 4]),
        ({"after_revision": 0, "unit": UNIT, "codes": ["INVALID"]}, [2]),
    ],
    ids=str,
)
def test_a_list_has_what_was_asked_for(
    store: SqlStore, ledger: Ledger, wanted: dict[str, object], numbers: list[int]
) -> None:
    _keep(ledger, *map(_nth, range(1, 7)))

    listed = store.list_decisions("main", **wanted)  # type: ignore[arg-type]

    assert listed == [_nth(number) for number in numbers]


def test_old_decisions_are_forgotten_with_their_assignments(store: SqlStore, ledger: Ledger) -> None:
    later = replace(RECORD, id="decision-2", revision=2, create_us=RECORD.create_us + 1)
    _keep(ledger, RECORD, later)

    ledger.compact(HistoryBounds(decisions_before_us=later.create_us))

    assert store.list_decisions("main") == [later]


def test_only_the_newest_decisions_are_kept_where_there_are_more(store: SqlStore, ledger: Ledger) -> None:
    _keep(ledger, *map(_nth, range(1, 7)))

    ledger.compact(HistoryBounds(most_decisions=2))

    assert store.list_decisions("main") == [_nth(6), _nth(5)]
