"""A success is found again by its id, in its cluster and method, for as long as it is kept."""

from dataclasses import replace

import pytest

from muster.engine.ports import HistoryBounds, RequestRecord
from muster.store.store import SqlStore
from tests.contract.ledger import Ledger

RECORD = RequestRecord("Apply", "id-1", b"\x00digest\xff", b"\x00response\xff", 100)


def _keep(ledger: Ledger, *records: RequestRecord) -> None:
    writes = ledger.writes()
    writes.requests.extend(records)
    ledger.add(writes, [])
    ledger.commit(writes)


def test_a_request_is_found_as_it_was_kept(store: SqlStore, ledger: Ledger) -> None:
    _keep(ledger, RECORD, replace(RECORD, request_id="empty", response=b""))

    assert store.find_request("main", "Apply", "id-1") == RECORD
    assert store.find_request("main", "Apply", "empty") == replace(RECORD, request_id="empty", response=b"")


@pytest.mark.parametrize(
    "where", [("other", "Apply", "id-1"), ("main", "Delete", "id-1"), ("main", "Apply", "id-2")]
)
def test_a_request_is_not_found_elsewhere(
    store: SqlStore, ledger: Ledger, where: tuple[str, str, str]
) -> None:
    _keep(ledger, RECORD)

    assert store.find_request(*where) is None


def test_a_request_that_is_forgotten_is_not_found(store: SqlStore, ledger: Ledger) -> None:
    later = replace(RECORD, request_id="id-2", time_us=101)
    _keep(ledger, RECORD, later)

    ledger.compact(HistoryBounds(requests_before_us=101))

    assert store.find_request("main", "Apply", "id-1") is None
    assert store.find_request("main", "Apply", "id-2") == later


def test_an_id_that_is_used_again_answers_as_the_last_time(store: SqlStore, ledger: Ledger) -> None:
    _keep(ledger, RECORD)

    _keep(ledger, replace(RECORD, response=b"second"), replace(RECORD, response=b"third"))

    assert store.find_request("main", "Apply", "id-1") == replace(RECORD, response=b"third")
