"""On PostgreSQL a commit reads the rows that it changes and no others, whatever the planner believes of the table."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from sqlalchemy import TextClause, text

from muster.model.pod import Pod
from muster.store.store import SqlStore, open_store
from tests.contract.ledger import Ledger, gang

MANY, FEW = 1_000, 100
READ = text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'pods'")
ANALYZE = text("ANALYZE pods")
FLUSH = text("SELECT pg_stat_force_next_flush()")


@pytest.fixture
def on_postgresql(postgres_database: str) -> Iterator[SqlStore]:
    opened = open_store(postgres_database)
    yield opened
    opened.close()


def executed(store: SqlStore, statement: TextClause) -> None:
    """On the writer's session."""
    with store._database.write() as connection:
        connection.execute(statement)


def pods_read(store: SqlStore) -> int:
    """How many rows of pods were read so far."""
    executed(store, FLUSH)
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
def test_pods_of_a_cluster_that_statistics_do_not_know_are_written_without_reading_the_rest(
    on_postgresql: SqlStore, act: str
) -> None:
    Ledger(on_postgresql, "known").committed_add(gang("a", MANY))
    executed(on_postgresql, ANALYZE)
    ledger = Ledger(on_postgresql, "new")
    made = ledger.committed_add(gang("a", MANY))
    before = pods_read(on_postgresql)

    ACTS[act](ledger, made[:FEW])

    assert FEW <= pods_read(on_postgresql) - before < 2 * FEW
