"""A store of each kind, open, and the writes that a test commits to it."""

from collections.abc import Iterator

import pytest

from muster.store.store import SqlStore, open_store
from tests.contract.ledger import Ledger


@pytest.fixture
def store(store_url: str) -> Iterator[SqlStore]:
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def ledger(store: SqlStore) -> Ledger:
    return Ledger(store)
