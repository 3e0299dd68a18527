"""PostgreSQL: a server that several processes may share, one of which writes.

The owner's lock is an advisory lock that the writer's own session holds. So it is gone when the process dies, and a
commit can only succeed on the session that has it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, func, inspect, select

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.postgresql_bulk import SETTINGS, PostgresBulk
from muster.store.schema import VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

# A database may hold several stores, each in a schema of its own.
LOCK = (0x4D535452, func.hashtext(func.current_schema()))
END_OF_SESSION_SECONDS = 3
READERS = 8
CONNECT_SECONDS = 5


class PostgresBackend:
    """How to reach the database that `url` names, own it, and write to it in bulk."""

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = f"PostgreSQL database {(url.database or url.username)!r}"
        self.bulk = PostgresBulk()

    @cached_property
    def writer(self) -> Engine:
        arguments = {
            "connect_timeout": CONNECT_SECONDS,
            "client_encoding": "utf8",
            # What the driver prepares by itself it gives up at a rollback, and all that the session has with it.
            "prepare_threshold": None,
        }
        engine = create_engine(self._url, poolclass=NullPool, connect_args=arguments)
        event.listen(engine, "connect", _set_up)
        return engine

    @cached_property
    def readers(self) -> Engine:
        return create_engine(
            self._url,
            pool_size=READERS,
            max_overflow=READERS,
            isolation_level="REPEATABLE READ",
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )

    def refuse_foreign(self, connection: Connection) -> None:
        """Raise ForeignStoreError if the schema holds another application's tables. Changes nothing in it."""
        tables = inspect(connection).get_table_names()
        if tables and VERSION_TABLE not in tables:
            raise ForeignStoreError(
                f"{self.name} holds tables of another application: {', '.join(sorted(tables)[:5])}"
            )

    def own(self, connection: Connection) -> None:
        """Take the owner's lock. Raises StoreUnavailableError if another server has it."""
        if not connection.execute(select(func.pg_try_advisory_lock(*LOCK))).scalar_one():
            raise StoreUnavailableError(f"another server has {self.name} open")

    def own_again(self, connection: Connection) -> None:
        """Take the lock that the lost session of this process had, which the server may take a moment to end."""
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{END_OF_SESSION_SECONDS}s'")
        connection.execute(select(func.pg_advisory_lock(*LOCK)))

    def disown(self) -> None:
        """Nothing to do: the lock ends with the writer's session."""

    def prepare(self, connection: Connection) -> None:
        """Nothing to do: the server's settings hold."""

    def committed(self) -> None:
        """Nothing to do: the server makes its checkpoints."""

    def mark(self, connection: Connection) -> None:
        """Nothing to do: the table of the schema's version tells whose the database is."""


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    """Set what holds for the writer's session."""
    connection.cursor().execute("; ".join(SETTINGS))
    connection.commit()
