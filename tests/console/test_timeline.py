"""Timelines from what an observer heard, and from a record where nobody can listen any more."""

from __future__ import annotations

from itertools import count

import pytest

from muster.console import timeline
from muster.console.timeline import timeline_of
from muster.core.decision import Decision, DecisionCode
from muster.core.observer import RecordingObserver
from muster.engine.ports import DecisionRecord
from muster.engine.rerun import Rerun
from muster.model.meta import ObjectKey
from muster.v1.decision_pb2 import GroupResult, GroupStatus
from muster.v1.meta_pb2 import ObjectRef

ROOT = ObjectKey("PodGroup", "default", "root")


def heard() -> RecordingObserver:
    """Each event is ten nanoseconds after the one before."""
    return RecordingObserver(count(1_000, 10).__next__)


def rerun_of(observer: RecordingObserver, differences: tuple[str, ...] = ()) -> Rerun:
    again = DecisionRecord("1", 1, 0, Decision(ROOT, DecisionCode.SCHEDULED))
    return Rerun(again=again, events=tuple(observer.events), differences=differences)


def recorded(name: str, tried: int, *children: GroupResult) -> GroupResult:
    return GroupResult(
        ref=ObjectRef(kind="PodGroup", namespace="default", name=name),
        status=GroupStatus.GROUP_STATUS_UNSCHEDULABLE,
        candidates_tried=tried,
        children=children,
    )


def test_sections_nest_and_last_as_long_as_they_were_open() -> None:
    observer = heard()
    observer.enter("cycle", "root")
    observer.enter("group", "root")
    observer.candidate({"domain": "A", "status": "SUCCESS", "pruned": 0})
    observer.leave({"status": "SUCCESS"})
    observer.leave({"status": "SCHEDULED"})

    told = timeline_of(rerun_of(observer), GroupResult())

    assert (told.timed, told.equal, told.length) == (True, True, 40)
    assert [(span.depth, span.section, span.start, span.length) for span in told.spans] == [
        (0, "cycle", 0, 40),
        (1, "group", 10, 20),
    ]
    assert [(each.domain, each.pruned) for each in told.spans[1].candidates] == [("A", False)]


def test_a_cycle_that_was_gone_through_twice_is_two_beside_each_other() -> None:
    observer = heard()
    for _ in range(2):
        observer.enter("cycle", "root")
        observer.leave({})

    told = timeline_of(rerun_of(observer), GroupResult())

    assert [(span.depth, span.start) for span in told.spans] == [(0, 0), (0, 20)]


def test_what_was_not_told_to_its_end_lasts_as_long_as_it_was_told() -> None:
    observer = heard()
    observer.enter("cycle", "root")
    observer.enter("group", "root")
    observer.candidate({"domain": "A", "status": "SUCCESS", "pruned": 0})

    told = timeline_of(rerun_of(observer), GroupResult())

    assert [(span.start, span.length) for span in told.spans] == [(0, 20), (10, 10)]


def test_a_decision_that_comes_out_otherwise_is_told() -> None:
    observer = heard()
    observer.enter("cycle", "root")
    observer.leave({})

    assert not timeline_of(rerun_of(observer, ("code",)), GroupResult()).equal


def test_without_a_rerun_groups_stand_in_order_by_the_domains_looked_at() -> None:
    result = recorded("root", 2, recorded("one", 3), recorded("two", 0))

    told = timeline_of(Rerun(not_possible="too old"), result)

    assert (told.timed, told.reason, told.length) == (False, "too old", 6)
    assert [(span.name, span.depth, span.start, span.length) for span in told.spans] == [
        ("PodGroup default/root", 0, 0, 6),
        ("PodGroup default/one", 1, 2, 3),
        ("PodGroup default/two", 1, 5, 1),
    ]


def test_a_decision_without_a_result_has_an_empty_timeline() -> None:
    told = timeline_of(Rerun(not_possible="too old"), GroupResult())

    assert (told.spans, told.length) == ([], 0)


def test_what_is_too_much_to_be_shown_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_SPANS", 2)
    result = recorded("root", 1, *(recorded(f"g{i}", 1) for i in range(4)))

    told = timeline_of(Rerun(not_possible="too old"), result)

    assert (len(told.spans), told.hidden, told.length) == (2, 3, 5)
