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
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    create_engine,
    event,
    inspect,
)

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.bulk import wrapped_errors
from muster.store.checkpoints import Checkpoints
from muster.store.sqlite_bulk import STATEMENTS_KEPT, SqliteBulk

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
        self._checkpoints = Checkpoints(self.name)

    @cached_property
    def writer(self) -> Engine:
        return self._engine("BEGIN IMMEDIATE", WRITER_PRAGMAS, poolclass=NullPool)

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
            # Past SQLAlchemy, whose work around so small a statement takes several times as long.
            with (
                closing(connection.connection.cursor()) as cursor,
                wrapped_errors(connection, begin, sqlite3.Error),
            ):
                cursor.execute(begin)

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

    def committed(self) -> None:
        """There is something to copy from the log."""
        self._checkpoints.written()

    def mark(self, connection: Connection) -> None:
        """Write into the file whose it is, in the transaction that makes the schema."""
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
