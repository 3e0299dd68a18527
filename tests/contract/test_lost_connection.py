"""A connection to PostgreSQL that is lost, around a COMMIT above all, leaves no doubt about what was written."""

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, make_url, text

from muster.engine.ports import FencedError, StoreUnavailableError
from muster.store.store import SqlStore, open_store
from tests.contract.cutting_proxy import Cut, CuttingProxy
from tests.contract.ledger import Ledger, gang
from tests.postgres_server import PostgresServer


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[CuttingProxy]:
    running = CuttingProxy(postgres_server.socket_directory)
    yield running
    running.close()


@pytest.fixture
def behind_proxy(postgres_database: str, proxy: CuttingProxy) -> Iterator[SqlStore]:
    url = make_url(postgres_database).update_query_dict({"host": str(proxy.directory)})
    store = open_store(url.render_as_string(hide_password=False))
    yield store
    store.close()


def test_a_commit_that_happened_without_an_answer_succeeds(
    behind_proxy: SqlStore, proxy: CuttingProxy
) -> None:
    ledger = Ledger(behind_proxy)
    ledger.committed_add(gang("a", 1))
    proxy.cut_next_commit(Cut.AFTER_COMMIT)

    made = ledger.committed_add(gang("b", 2))

    added = ledger.committed_add(gang("c", 1))
    assert proxy.has_cut
    assert list(ledger.objects().values())[1:] == [*made, *added]


def test_a_commit_that_was_cut_off_before_it_happened_fails(
    behind_proxy: SqlStore, proxy: CuttingProxy
) -> None:
    ledger = Ledger(behind_proxy)
    made = ledger.committed_add(gang("a", 1))
    writes = ledger.writes()
    ledger.add(writes, gang("b", 2))
    proxy.cut_next_commit(Cut.BEFORE_COMMIT)

    with pytest.raises(StoreUnavailableError):
        ledger.commit(writes)

    assert list(ledger.objects().values()) == made
    ledger.commit(writes)
    assert len(ledger.objects()) == 3


@pytest.mark.parametrize("cut", Cut)
def test_an_outcome_that_stays_unknown_is_settled_by_the_next_commit(
    behind_proxy: SqlStore, proxy: CuttingProxy, cut: Cut
) -> None:
    ledger = Ledger(behind_proxy)
    ledger.committed_add(gang("a", 1))
    writes = ledger.writes()
    ledger.add(writes, gang("b", 2))
    proxy.cut_next_commit(cut)
    proxy.is_down = True
    with pytest.raises(StoreUnavailableError):
        ledger.commit(writes)
    proxy.is_down = False

    if cut is Cut.AFTER_COMMIT:
        with pytest.raises(FencedError):
            ledger.commit(writes)
        Ledger(behind_proxy).committed_add(gang("c", 1))
        assert len(ledger.objects()) == 4
    else:
        ledger.commit(writes)
        assert len(ledger.objects()) == 3


def test_a_lost_connection_is_made_again_by_the_next_call(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = open_store(postgres_database)
    ledger = Ledger(store)
    made = ledger.committed_add(gang("a", 1))
    administrator = create_engine(postgres_server.url())
    with administrator.connect() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": make_url(postgres_database).database},
        )
    administrator.dispose()
    writes = ledger.writes()
    ledger.add(writes, gang("b", 1))
    with pytest.raises(StoreUnavailableError):
        ledger.commit(writes)

    ledger.commit(writes)

    with pytest.raises(StoreUnavailableError):
        ledger.objects()
    assert list(ledger.objects().values())[:1] == made
    store.close()
