"""A transaction that breaks while it begins or ends is over, on both databases."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from muster.engine.ports import OldHistory, StoreUnavailableError
from muster.store.bulk import Act, Statement
from muster.store.store import SqlStore
from muster.store.tables import requests
from tests.contract.ledger import Ledger, gang


def breaks_once(store: SqlStore, when: str, error: Exception) -> None:
    """The next transaction breaks when it has begun, or before the database hears of its commit."""
    errors = iter([error])

    def broken(_: Connection) -> None:
        for each in errors:
            raise each

    event.listen(store._database._backend.writer, when, broken)


def test_the_next_commit_finds_no_transaction_that_broke_as_it_began(store: SqlStore, ledger: Ledger) -> None:
    made = ledger.committed_add(gang("a", 1))
    breaks_once(store, "begin", MemoryError())

    with pytest.raises(MemoryError):
        ledger.committed_add(gang("lost", 1))
    after = Ledger(store)
    added = after.committed_add(gang("b", 1))

    assert list(after.objects().values()) == [*made, *added]


def test_commits_go_on_behind_a_statement_that_was_refused_however_many_clusters_there_are(
    store: SqlStore,
) -> None:
    ledgers = [Ledger(store, f"cluster-{number}") for number in range(12)]
    made = [ledger.committed_add(gang("a", 1)) for ledger in ledgers]

    with pytest.raises((DBAPIError, StoreUnavailableError)), store._database.write() as connection:
        connection.exec_driver_sql("SELECT nonsense FROM nowhere")

    for ledger, before in zip(ledgers, made, strict=True):
        added = ledger.committed_add(gang("b", 1))
        assert list(ledger.objects().values()) == [*before, *added]


@pytest.mark.parametrize("act", ["forget", "commit"])
def test_the_next_commit_finds_no_transaction_whose_commit_failed(
    store: SqlStore, ledger: Ledger, act: str
) -> None:
    made = ledger.committed_add(gang("a", 1))
    acts: dict[str, Callable[[], object]] = {
        "forget": lambda: store.forget_old("main", ledger.token, OldHistory()),
        "commit": lambda: ledger.committed_add(gang("lost", 1)),
    }
    breaks_once(store, "commit", OperationalError("COMMIT", {}, Exception("disk I/O error")))

    with pytest.raises(StoreUnavailableError):
        acts[act]()
    after = Ledger(store)
    added = after.committed_add(gang("b", 1))

    assert list(after.objects().values()) == [*made, *added]


def test_a_connection_that_is_given_up_takes_its_transaction_along_though_an_error_is_kept(
    store: SqlStore, ledger: Ledger
) -> None:
    made = ledger.committed_add(gang("a", 1))
    database = store._database
    row = (1, "Apply", None, b"", b"", 0)
    # What is kept of the error keeps the frames that it went through, and all that they hold, until the test ends.
    with pytest.raises(IntegrityError) as _kept, database.write() as connection:
        database.bulk.run(connection, [Statement.of_rows(Act.INSERT, requests, [row])])
    breaks_once(store, "commit", OperationalError("COMMIT", {}, Exception("disk I/O error")))

    with pytest.raises(StoreUnavailableError):
        ledger.committed_add(gang("lost", 1))
    after = Ledger(store)
    added = after.committed_add(gang("b", 1))

    assert list(after.objects().values()) == [*made, *added]
