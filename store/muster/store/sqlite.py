"""SQLite: an embedded file, with one server at a time.

WAL, so that readers and the writer never wait for each other; synchronous=FULL, so that a commit outlives a power
cut. The owner's lock is `flock` on a file beside the database: the kernel frees it however the process ends.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache, cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    Table,
    create_engine,
    event,
    inspect,
)

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.bulk import Act, Claim, Claimed, Row, Statement, wrapped_errors
from muster.store.checkpoints import Checkpoints

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

APPLICATION_ID = 0x4D535452
BUSY_SECONDS = 5
READERS = 16
# A commit of 10 000 pods stays in memory until it is written once. Checkpoints are made beside the writer, who makes
# what is left of one when several such commits have come together.
WRITER_PRAGMAS = (
    "synchronous=FULL",
    "cache_size=-65536",
    "wal_autocheckpoint=8000",
    "journal_size_limit=67108864",
)
# Powers of two, largest first: any number of rows is in the fewest runs. A statement of 64 rows has about a thousand
# parameters, far below SQLite's limit.
ROWS_A_STATEMENT = (64, 32, 16, 8, 4, 2, 1)
# All of the texts of a busy writer, with those sizes: the driver prepares again what it does not keep.
STATEMENTS_KEPT = 512
READER_PRAGMAS = ("query_only=ON",)


_Statement = tuple[Any, ...]
"""The function that makes a statement's text for a number of rows, and what else that function is given."""


class SqliteBackend:
    """How to reach the file that `url` names, own it, and write to it in bulk."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise ValueError("an embedded store is a file: sqlite:///path")
        self.name = os.path.abspath(url.database)  # noqa: PTH100 - as SQLite sees it, symbolic links included
        self.bulk = SqliteBulk()
        self._url = url
        self._lock: int | None = None
        self._checkpoints = Checkpoints(self.name)

    @cached_property
    def writer(self) -> Engine:
        engine = self._engine("BEGIN IMMEDIATE", WRITER_PRAGMAS, poolclass=NullPool)
        event.listen(engine, "commit", lambda _connection: self._checkpoints.written())
        return engine

    @cached_property
    def readers(self) -> Engine:
        return self._engine("BEGIN", READER_PRAGMAS, pool_size=READERS, max_overflow=0)

    def _engine(self, begin: str, pragmas: Sequence[str], **pool: Any) -> Engine:  # noqa: ANN401
        arguments = {
            "isolation_level": None,
            "check_same_thread": False,
            "timeout": BUSY_SECONDS,
            "cached_statements": STATEMENTS_KEPT,
        }
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
        self._checkpoints.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def prepare(self, connection: Connection) -> None:
        """Set what holds for the file as a whole, past SQLAlchemy, as it cannot be set in a transaction."""
        cursor = connection.connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()
        self._checkpoints.start()

    def mark(self, connection: Connection) -> None:
        """Write into the file whose it is, in the transaction that makes the schema."""
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")


class SqliteBulk:
    """Many rows in few statements, whose texts are made once.

    The driver lets go of the interpreter's lock for every statement that runs, and a busy process makes it wait for the
    lock to come back: sixty-four rows a statement wait once where single ones would sixty-four times.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[object, ...], str] = {}

    def claim(self, connection: Connection, claims: Sequence[Claim]) -> dict[str, Claimed]:
        claimed: dict[str, Claimed] = {}
        with (
            closing(connection.connection.cursor()) as cursor,
            wrapped_errors(connection, "claim", sqlite3.Error),
        ):
            for cluster, token, revision in claims:
                cursor.execute(_COUNT, (cluster, token))
                counted = cursor.fetchone()
                if counted is not None:
                    cursor.execute(_RAISE, (revision, cluster, revision))
                    raised = cursor.fetchone()
                    claimed[cluster] = Claimed(counted[0], None if raised is None else raised[0])
        return claimed

    def run(self, connection: Connection, statements: Sequence[Statement]) -> int:
        concerned = 0
        for one in statements:
            concerned = self._run(connection, _text_of(one), _rows_of(one))
        return concerned

    def _run(self, connection: Connection, statement: _Statement, rows: Sequence[Row]) -> int:
        """How many rows were concerned. Past SQLAlchemy but for its errors: what it does around a run takes as long as the run."""
        if not rows:
            return 0
        concerned = start = 0
        # A cursor that an error leaves open would keep a connection that is closed in its transaction.
        with closing(connection.connection.cursor()) as cursor:
            for size in ROWS_A_STATEMENT:
                end = start + (len(rows) - start) // size * size
                if end > start:
                    text = self._text(statement, size)
                    with wrapped_errors(connection, text, sqlite3.Error):
                        cursor.executemany(text, _in_one(rows[start:end], size))
                    concerned += cursor.rowcount
                    start = end
        return concerned

    def _text(self, statement: _Statement, size: int) -> str:
        known = self._texts.get((*statement, size))
        if known is None:
            make, *about = statement
            known = self._texts[*statement, size] = make(size, *about)
        return known


def _in_one(rows: Sequence[Row], size: int) -> list[Row]:
    """The values of `size` rows after one another, for each statement."""
    if size == 1:
        return list(rows)
    values = list(chain.from_iterable(rows))
    step = size * len(rows[0])
    return [tuple(values[start : start + step]) for start in range(0, len(values), step)]


def _text_of(statement: Statement) -> _Statement:
    table = statement.table
    if statement.act is Act.UPDATE:
        return (_update, table, *_parts(table, statement.columns)[0])
    return (_MAKERS[statement.act], table)


def _rows_of(statement: Statement) -> Sequence[Row]:
    if statement.act is not Act.UPDATE:
        return statement.rows
    _, parts_of = _parts(statement.table, statement.columns)
    return list(map(parts_of, statement.rows))


# The names below are those of our own tables and columns.

_COUNT = "UPDATE leases SET commits = commits + 1 WHERE cluster = ? AND token = ? RETURNING commits"
_RAISE = "UPDATE clusters SET revision = ? WHERE name = ? AND revision <= ? RETURNING id"


def _insert(size: int, table: Table) -> str:
    names = [column.name for column in table.columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {_values(size, len(names))}"  # noqa: S608


def _upsert(size: int, table: Table) -> str:
    keys = _keys(table)
    changed = ", ".join(f"{c.name} = excluded.{c.name}" for c in table.columns if not c.primary_key)
    return f"{_insert(size, table)} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"


def _update(size: int, table: Table, *columns: str) -> str:
    """`columns` are those of a row of values: the keys first. SQLite calls them column1, column2 and so on."""
    keys = len(_keys(table))
    sources = [f"{name} = new.column{place}" for place, name in enumerate(columns, start=1)]
    matches = " AND ".join(f"{table.name}.{source}" for source in sources[:keys])
    new = f"(VALUES {_values(size, len(columns))}) AS new"
    return f"UPDATE {table.name} SET {', '.join(sources[keys:])} FROM {new} WHERE {matches}"  # noqa: S608


def _delete(size: int, table: Table) -> str:
    """With OR, since SQLite reads a whole table for IN with rows of values."""
    one = " AND ".join(f"{name} = ?" for name in _keys(table))
    return f"DELETE FROM {table.name} WHERE {' OR '.join([f'({one})'] * size)}"  # noqa: S608


_MAKERS = {Act.INSERT: _insert, Act.UPSERT: _upsert, Act.DELETE: _delete}


def _values(size: int, width: int) -> str:
    return ", ".join([f"({', '.join('?' * width)})"] * size)


@cache
def _parts(table: Table, columns: tuple[str, ...]) -> tuple[tuple[str, ...], itemgetter[Any]]:
    """The keys and these columns: their names, and what takes them out of a row."""
    wanted, names = (*_keys(table), *columns), table.columns.keys()
    return wanted, itemgetter(*map(names.index, wanted))


def _keys(table: Table) -> list[str]:
    return [key.name for key in table.primary_key.columns]
