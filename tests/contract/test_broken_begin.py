"""A transaction that breaks while it begins is over, on both databases."""

import pytest
from sqlalchemy import Connection, event

from muster.store.store import SqlStore
from tests.contract.ledger import Ledger, gang


def test_the_next_commit_finds_no_transaction_open(store: SqlStore, ledger: Ledger) -> None:
    made = ledger.committed_add(gang("a", 1))
    broken = iter([True])

    def begun(_: Connection) -> None:
        if next(broken, False):
            raise MemoryError

    # After the store's own listener, whose BEGIN the database has taken by then.
    event.listen(store._database._backend.writer, "begin", begun)
    with pytest.raises(MemoryError):
        ledger.committed_add(gang("lost", 1))
    after = Ledger(store)
    added = after.committed_add(gang("b", 1))

    assert list(after.objects().values()) == [*made, *added]
