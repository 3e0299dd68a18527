"""Who may open a store: one server at a time, on a database that is Muster's and not newer than this version."""

import contextlib
import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, make_url, text

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.store import open_store
from tests.contract.ledger import Ledger, gang


def _execute(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_what_was_committed_is_there_after_a_restart(store_url: str) -> None:
    store = open_store(store_url)
    made = Ledger(store).committed_add(gang("a", 3))
    store.close()

    store = open_store(store_url)
    loaded = store.load_cluster("main")
    store.close()

    assert loaded.objects == made
    assert loaded.revision == 1


def test_a_second_server_is_refused_at_once_and_let_in_after_the_first(store_url: str) -> None:
    first = open_store(store_url)
    with pytest.raises(StoreUnavailableError, match="another server has"):
        open_store(store_url)
    Ledger(first).committed_add(gang("a", 1))
    first.close()

    open_store(store_url).close()


def test_a_database_with_tables_of_another_application_is_refused_and_left_alone(store_url: str) -> None:
    _execute(store_url, "CREATE TABLE theirs (x INTEGER)")

    with pytest.raises(ForeignStoreError, match="another application"):
        open_store(store_url)

    _execute(store_url, "DROP TABLE theirs")
    open_store(store_url).close()


def test_a_database_of_a_newer_version_is_refused(store_url: str) -> None:
    open_store(store_url).close()
    _execute(store_url, "UPDATE muster_schema_version SET version_num = '9999'")

    with pytest.raises(ForeignStoreError, match="schema version 9999"):
        open_store(store_url)


def test_a_store_that_was_refused_can_be_opened_once_it_is_right(store_url: str) -> None:
    open_store(store_url).close()
    _execute(store_url, "UPDATE muster_schema_version SET version_num = '9' || version_num")
    with pytest.raises(ForeignStoreError):
        open_store(store_url)
    _execute(store_url, "UPDATE muster_schema_version SET version_num = substr(version_num, 2)")

    open_store(store_url).close()


def test_an_sqlite_file_of_another_application_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 42")
        connection.execute("PRAGMA user_version = 1")
    before = path.read_bytes()

    with pytest.raises(ForeignStoreError, match="another application"):
        open_store(f"sqlite:///{path}")

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["theirs.db"]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, this is not a database. " * 100)

    with pytest.raises(ForeignStoreError, match="not an SQLite database"):
        open_store(f"sqlite:///{path}")

    assert path.read_text().startswith("Dear reader")


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="nowhere"):
        open_store(f"sqlite:///{tmp_path}/nowhere/muster.db")


def test_a_server_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        open_store(f"postgresql:///muster?host={tmp_path}")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/database"])
def test_a_url_of_no_store_is_a_wrong_value(url: str) -> None:
    with pytest.raises(ValueError, match="store is"):
        open_store(url)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_both_forms_of_a_postgresql_url_open(postgres_database: str, scheme: str) -> None:
    url = make_url(postgres_database).set(drivername=scheme)

    open_store(url.render_as_string(hide_password=False)).close()


def test_a_commit_is_synced_and_logged_ahead_on_sqlite(sqlite_database: str, tmp_path: Path) -> None:
    store = open_store(sqlite_database)
    with store._database.write() as connection:
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    store.close()

    assert (synchronous, journal) == (2, "wal")


def test_the_postgresql_session_of_the_writer_holds_the_lock(postgres_database: str) -> None:
    store = open_store(postgres_database)
    url = make_url(postgres_database)
    with psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database) as other:
        held = other.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        ).fetchone()
    store.close()

    assert held == (1,)
