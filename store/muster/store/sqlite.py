"""SQLite: an embedded file, with one server at a time.

WAL, so that readers and the writer never wait for each other; synchronous=FULL, so that a commit outlives a power
cut. The owner's lock is `flock` on a file beside the database: the kernel frees it however the process ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Delete,
    Engine,
    NullPool,
    Table,
    Update,
    bindparam,
    create_engine,
    delete,
    event,
    inspect,
    update,
)
from sqlalchemy.dialects.sqlite import Insert, insert

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.bulk import Row

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.sql.base import Executable

APPLICATION_ID = 0x4D535452
BUSY_SECONDS = 5
READERS = 16
# A commit of 10 000 pods stays in memory until it is written once, and a checkpoint comes after several of them.
WRITER_PRAGMAS = (
    "synchronous=FULL",
    "cache_size=-65536",
    "wal_autocheckpoint=8000",
    "journal_size_limit=67108864",
)
# To start and end a statement costs about as much as a row does.
ROWS_A_STATEMENT = 20
KEY = "key_"
READER_PRAGMAS = ("query_only=ON",)


class SqliteBackend:
    """How to reach the file that `url` names, own it, and write to it in bulk."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("an embedded store is a file: sqlite:///path")
        self.name = os.path.abspath(url.database)  # noqa: PTH100 - as SQLite sees it, symbolic links included
        self.bulk = SqliteBulk()
        self._url = url
        self._lock: int | None = None

    @cached_property
    def writer(self) -> Engine:
        engine = self._engine("BEGIN IMMEDIATE", WRITER_PRAGMAS, poolclass=NullPool)
        self.bulk.dialect = engine.dialect
        return engine

    @cached_property
    def readers(self) -> Engine:
        return self._engine("BEGIN", READER_PRAGMAS, pool_size=READERS, max_overflow=0)

    def _engine(self, begin: str, pragmas: Sequence[str], **pool: Any) -> Engine:  # noqa: ANN401
        arguments = {"isolation_level": None, "check_same_thread": False, "timeout": BUSY_SECONDS}
        engine = create_engine(self._url, connect_args=arguments, **pool)

        @event.listens_for(engine, "connect")
        def configure(connection: DBAPIConnection, _record: object) -> None:
            cursor = connection.cursor()
            for pragma in pragmas:
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            connection.exec_driver_sql(begin)

        return engine

    def refuse_foreign(self, connection: Connection) -> None:
        """Raise ForeignStoreError if the file is another application's. Changes nothing in it."""
        application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if application == APPLICATION_ID or (application == 0 and not inspect(connection).get_table_names()):
            return
        raise ForeignStoreError(f"{self.name} is an SQLite database of another application")

    def own(self, connection: Connection) -> None:
        """Take the owner's lock. Raises StoreUnavailableError if another server has it."""
        lock = os.open(f"{self.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise StoreUnavailableError(f"another server has {self.name} open") from error
        self._lock = lock

    def own_again(self, connection: Connection) -> None:
        """Nothing to do: the lock is the process's, not the connection's."""

    def disown(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def prepare(self, connection: Connection) -> None:
        """Set what holds for the file as a whole, past SQLAlchemy, as it cannot be set in a transaction."""
        cursor = connection.connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()

    def mark(self, connection: Connection) -> None:
        """Write into the file whose it is, in the transaction that makes the schema."""
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")


class SqliteBulk:
    """Rows to the driver's executemany, by statements compiled once."""

    def __init__(self) -> None:
        self.dialect: Any = None
        self._statements: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}

    def _compiled(
        self, verb: str, table: Table, build: Callable[[Table], Executable]
    ) -> tuple[str, tuple[str, ...]]:
        """The text of a statement and the names of its parameters in order; built and compiled the first time."""
        known = self._statements.get((verb, table.name))
        if known is None:
            compiled = build(table).compile(dialect=self.dialect)  # type: ignore[attr-defined]
            known = self._statements[verb, table.name] = (str(compiled), tuple(compiled.positiontup or ()))
        return known

    def insert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if not rows:
            return
        one, _ = self._compiled("insert", table, insert)
        whole = len(rows) // ROWS_A_STATEMENT * ROWS_A_STATEMENT
        if whole:
            head, values, row = one.partition("VALUES ")
            many = head + values + ", ".join([row] * ROWS_A_STATEMENT)
            connection.exec_driver_sql(many, _in_one(rows[:whole]))
        if rows[whole:]:
            connection.exec_driver_sql(one, list(rows[whole:]))

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            text, _ = self._compiled("upsert", table, _upsert)
            connection.exec_driver_sql(text, list(rows))

    def update(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
    ) -> int:
        if not rows:
            return 0
        text, order = self._compiled("update", table, partial(_update, columns))
        names = table.columns.keys()
        in_order = itemgetter(*(names.index(name.removeprefix(KEY)) for name in order))
        return connection.exec_driver_sql(text, list(map(in_order, rows))).rowcount

    def delete(self, connection: Connection, table: Table, keys: Sequence[Row]) -> None:
        if keys:
            text, _ = self._compiled("delete", table, _delete)
            connection.exec_driver_sql(text, list(keys))


def _in_one(rows: Sequence[Row]) -> list[Row]:
    """The values of ROWS_A_STATEMENT rows after one another, for each statement."""
    values = list(chain.from_iterable(rows))
    step = ROWS_A_STATEMENT * len(rows[0])
    return [tuple(values[start : start + step]) for start in range(0, len(values), step)]


def _upsert(table: Table) -> Insert:
    statement = insert(table)
    changed = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    keys = [key.name for key in table.primary_key.columns]
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def _update(columns: Sequence[str], table: Table) -> Update:
    return update(table).where(*_keys_match(table)).values({name: bindparam(name) for name in columns})


def _delete(table: Table) -> Delete:
    return delete(table).where(*_keys_match(table))


def _keys_match(table: Table) -> list[ColumnElement[bool]]:
    return [column == bindparam(KEY + column.name) for column in table.primary_key.columns]
