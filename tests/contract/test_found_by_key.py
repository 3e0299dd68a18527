"""On PostgreSQL a commit reads the rows that it changes and no others, though the planner knows nothing of the table."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text

from muster.model.pod import Pod
from muster.store.store import SqlStore, open_store
from tests.contract.ledger import Ledger, gang

MANY, FEW = 1_000, 20
READ = text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'pods'")
FLUSH = text("SELECT pg_stat_force_next_flush()")


@pytest.fixture
def on_postgresql(postgres_database: str) -> Iterator[SqlStore]:
    opened = open_store(postgres_database)
    yield opened
    opened.close()


def pods_read(store: SqlStore) -> int:
    """How many rows of pods were read so far."""
    with store._database.write() as connection:
        connection.execute(FLUSH)
    with store._database.read() as connection:
        read: int = connection.execute(READ).scalar_one()
    return read


ACTS: dict[str, Callable[[Ledger, list[Pod]], object]] = {
    "change": lambda ledger, some: ledger.committed_change(
        [replace(pod, node_name=f"node-{place}") for place, pod in enumerate(some)]
    ),
    "remove": Ledger.committed_remove,
}


@pytest.mark.parametrize("act", ACTS)
def test_a_few_pods_are_written_without_reading_the_rest(on_postgresql: SqlStore, act: str) -> None:
    ledger = Ledger(on_postgresql)
    made = ledger.committed_add(gang("a", MANY))
    before = pods_read(on_postgresql)

    ACTS[act](ledger, made[:FEW])

    assert FEW <= pods_read(on_postgresql) - before < 3 * FEW
