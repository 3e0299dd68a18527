"""Records in memory: the newest of each unit, as many as there is room for."""

from __future__ import annotations

import pytest

from muster.core.decision import Decision, DecisionCode
from muster.engine import kept_records
from muster.engine.kept_records import KeptRecords
from muster.engine.ports import AssignmentColumns, DecisionRecord, DisruptedPods
from muster.model.meta import ObjectKey


def key(name: str) -> ObjectKey:
    return ObjectKey("PodGroup", "default", name)


def record(name: str, assigned: int = 0, nominated: int = 0, disrupted: int = 0) -> DecisionRecord:
    def columns(count: int) -> AssignmentColumns:
        return AssignmentColumns("default", ("n",), ("p",) * count, ("u",) * count, (0,) * count)

    return DecisionRecord(
        name,
        0,
        0,
        Decision(key(name), DecisionCode.SCHEDULED),
        columns(assigned),
        nominations=columns(nominated),
        disrupted=DisruptedPods(names=("v",) * disrupted),
    )


def kept(records: KeptRecords, *names: str) -> list[str]:
    return [name for name in names if records.get(key(name)) is not None]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_UNITS", 4)
    monkeypatch.setattr(kept_records, "MOST_PODS", 100)
    monkeypatch.setattr(kept_records, "LEAST_UNITS", 2)


def test_the_newest_record_of_a_unit_is_the_one() -> None:
    records, newest = KeptRecords(), record("a", 2)

    for each in (record("a", 1), newest):
        records.add(each)

    assert records.get(key("a")) is newest


def test_the_oldest_go_once_there_are_too_many() -> None:
    records = KeptRecords()

    for name in "abcade":
        records.add(record(name))

    assert kept(records, *"abcde") == ["a", "c", "d", "e"]


@pytest.mark.parametrize("what", ["assigned", "nominated", "disrupted"])
def test_the_oldest_go_once_they_name_too_many_pods(what: str) -> None:
    records = KeptRecords()

    for name in "abcd":
        records.add(record(name, **{what: 40}))

    assert kept(records, *"abcd") == ["c", "d"]


def test_a_few_stay_however_many_pods_they_name() -> None:
    records = KeptRecords()

    for name in "abc":
        records.add(record(name, assigned=1_000))

    assert kept(records, *"abc") == ["b", "c"]


def test_what_goes_gives_its_room_back() -> None:
    records = KeptRecords()

    for _ in range(50):
        records.add(record("a", assigned=90))
        records.pop(key("a"))
    for name in "abc":
        records.add(record(name, assigned=30))

    assert kept(records, *"abc") == ["a", "b", "c"]
