"""Connections and transactions: one writer, and readers that it never waits for.

Decides what an error of the database means: whether the transaction is undone, its outcome unknown, or the
connection lost. What is in a transaction is left to the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from sqlalchemy import URL, Connection, Engine, exc, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, ProgrammingError

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store import schema
from muster.store.bulk import Bulk
from muster.store.sqlite import SqliteBackend

OUR_MISTAKES = (DataError, IntegrityError, ProgrammingError)
NOT_A_DATABASE = "file is not a database"


class Backend(Protocol):
    """What differs between the two databases, beside `Bulk`."""

    @property
    def name(self) -> str:
        """What to call the store in a message, without a password."""
        ...

    @property
    def bulk(self) -> Bulk: ...

    @property
    def writer(self) -> Engine: ...

    @property
    def readers(self) -> Engine: ...

    def refuse_foreign(self, connection: Connection) -> None: ...

    def own(self, connection: Connection) -> None: ...

    def own_again(self, connection: Connection) -> None: ...

    def disown(self) -> None: ...

    def prepare(self, connection: Connection) -> None: ...

    def mark(self, connection: Connection) -> None: ...

    def committed(self) -> None:
        """A transaction of the writer has just become durable."""
        ...


class OutcomeUnknownError(StoreUnavailableError):
    """The commit was sent and no answer came: it may or may not have happened."""


def backend_for(url: str) -> Backend:
    """The backend of a database URL. Raises ValueError for any but SQLite and PostgreSQL."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteBackend(parsed)
    from muster.store.postgresql import PostgresBackend  # noqa: PLC0415 - an embedded store needs no driver

    return PostgresBackend(parsed)


def parsed_url(url: str) -> URL:
    """A database URL in its parts. Raises ValueError for any but SQLite and PostgreSQL, without what it held."""
    try:
        parsed: URL = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError("a store is sqlite:///path or postgresql://..., and this is no URL") from None
    name = parsed.get_backend_name()
    if name not in {"sqlite", "postgresql"}:
        raise ValueError(f"a store is sqlite:///path or postgresql://..., not {name}")
    return parsed


class Database:
    """One open database. `write` is for one thread at a time; `read` for any."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._writer: Connection | None = None
        self._writing = threading.Lock()
        self.bulk = backend.bulk

    def open(self) -> None:
        """Connect, own, migrate. Raises ForeignStoreError, StoreUnavailableError; then nothing stays open."""
        try:
            with self._writing, _translated(self._backend.name):
                connection = self._backend.writer.connect()
                self._writer = connection
                with connection.begin():
                    self._backend.refuse_foreign(connection)
                with connection.begin():
                    self._backend.own(connection)
                self._backend.prepare(connection)
                with connection.begin():
                    schema.migrate(connection)
                    self._backend.mark(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._drop_writer()
        self._backend.writer.dispose()
        self._backend.readers.dispose()
        self._backend.disown()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is durable when the block has ended, undone when it raises.

        Raises OutcomeUnknownError if the connection failed while committing, StoreUnavailableError if it, the disk
        or the server failed before.
        """
        with self._writing, _translated(self._backend.name):
            connection = self._connected()
            try:
                transaction = connection.begin()
            except BaseException:
                # It may have begun all the same, which only a connection that is closed forgets.
                self._drop_writer()
                raise
            try:
                yield connection
            except BaseException as error:
                self._undo(connection, error)
                raise
            try:
                transaction.commit()
            except DBAPIError as error:
                # The database may go on with the transaction, of which SQLAlchemy knows no more.
                self._drop_writer()
                raise OutcomeUnknownError(_summary(error)) from error
            self._backend.committed()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot of the database, whatever is committed meanwhile."""
        with (
            _translated(self._backend.name),
            self._backend.readers.connect() as connection,
            connection.begin(),
        ):
            yield connection

    def _connected(self) -> Connection:
        if self._writer is None:
            self._writer = self._backend.writer.connect()
            try:
                with self._writer.begin():
                    self._backend.own_again(self._writer)
            except BaseException:
                self._drop_writer()
                raise
        return self._writer

    def _undo(self, connection: Connection, error: BaseException) -> None:
        """Roll back. What is left of a session in which the database refused something is not relied on."""
        is_healthy = isinstance(error, IntegrityError) or not isinstance(error, DBAPIError)
        try:
            connection.rollback()
        except DBAPIError:
            is_healthy = False
        if connection.invalidated or not is_healthy:
            self._drop_writer()

    def _drop_writer(self) -> None:
        if self._writer is not None:
            with suppress(DBAPIError):
                self._writer.close()
            self._writer = None


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Give the database's failures the names of the ports; a mistake in a statement keeps its own."""
    try:
        yield
    except OUR_MISTAKES:
        raise
    except DBAPIError as error:
        if NOT_A_DATABASE in str(error.orig):
            raise ForeignStoreError(f"{name} is not an SQLite database") from error
        raise StoreUnavailableError(f"{name}: {_summary(error)}") from error
    except (exc.TimeoutError, OSError) as error:
        raise StoreUnavailableError(f"{name}: {error}") from error


def _summary(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
