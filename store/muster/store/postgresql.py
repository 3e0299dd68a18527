"""PostgreSQL: a server that several processes may share, one of which writes.

The owner's lock is an advisory lock that the writer's own session holds. So it is gone when the process dies, and a
commit can only succeed on the session that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ARRAY,
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    LargeBinary,
    NullPool,
    Table,
    TableValuedAlias,
    Text,
    bindparam,
    cast,
    column,
    create_engine,
    delete,
    func,
    inspect,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.bulk import Row
from muster.store.schema import VERSION_TABLE

if TYPE_CHECKING:
    from sqlalchemy.sql.base import Executable

LOCK_CLASS = 0x4D535452
READERS = 8
CONNECT_SECONDS = 5


class PostgresBackend:
    """How to reach the database that `url` names, own it, and write to it in bulk."""

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.bulk = PostgresBulk()

    @cached_property
    def writer(self) -> Engine:
        engine = create_engine(
            self._url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_SECONDS}
        )
        self.bulk.dialect = engine.dialect
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
                f"database {self._url.database!r} holds tables of another application: {', '.join(sorted(tables)[:5])}"
            )

    def own(self, connection: Connection) -> None:
        """Take the owner's lock. Raises StoreUnavailableError if another server has it."""
        lock = select(func.pg_try_advisory_lock(LOCK_CLASS, func.hashtext(func.current_schema())))
        if not connection.execute(lock).scalar_one():
            raise StoreUnavailableError(f"another server has the database {self._url.database!r} open")

    def disown(self) -> None:
        """Nothing to do: the lock ends with the writer's session."""

    def prepare(self, connection: Connection) -> None:
        """Nothing to do: the server's settings hold."""

    def mark(self, connection: Connection) -> None:
        """Nothing to do: the table of the schema's version tells whose the database is."""


class PostgresBulk:
    """Columns as arrays, unnested by the server: one round trip, whatever the number of rows.

    The arrays are written here as PostgreSQL's text form, which takes a tenth of the time that the driver's
    adaptation of each element does.
    """

    def __init__(self) -> None:
        self.dialect: Any = None
        self._statements: dict[tuple[str, str], str] = {}

    def insert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            names = table.columns.keys()
            given = _given(list(table.columns))
            statement = insert(table).from_select(names, select(*(given.c[name] for name in names)))
            self._run(connection, ("insert", table), statement, _arrays(list(table.columns), rows))

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            names = table.columns.keys()
            given = _given(list(table.columns))
            statement = insert(table).from_select(names, select(*(given.c[name] for name in names)))
            changed = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
            upsert = statement.on_conflict_do_update(
                index_elements=[c.name for c in table.primary_key.columns], set_=changed
            )
            self._run(connection, ("upsert", table), upsert, _arrays(list(table.columns), rows))

    def update(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
    ) -> int:
        if not rows:
            return 0
        needed = [c for c in table.columns if c.primary_key or c.name in columns]
        given = _given(needed)
        statement = (
            update(table).values({name: given.c[name] for name in columns}).where(*_match(table, given))
        )
        return self._run(connection, ("update", table), statement, _arrays(needed, rows))

    def delete(self, connection: Connection, table: Table, keys: Sequence[Row]) -> None:
        if keys:
            key_columns = list(table.primary_key.columns)
            statement = delete(table).where(*_match(table, _given(key_columns)))
            arrays = {
                c.name: _array(c, values)
                for c, values in zip(key_columns, zip(*keys, strict=True), strict=True)
            }
            self._run(connection, ("delete", table), statement, arrays)

    def _run(
        self, connection: Connection, key: tuple[str, Table], statement: Executable, arrays: dict[str, str]
    ) -> int:
        verb, table = key
        text = self._statements.get((verb, table.name))
        if text is None:
            text = str(statement.compile(dialect=self.dialect))  # type: ignore[attr-defined]
            self._statements[verb, table.name] = text
        return connection.exec_driver_sql(text, arrays).rowcount


def _given(columns: Sequence[Column[Any]]) -> TableValuedAlias:
    """The arrays as a table to select from."""
    arrays = (cast(bindparam(c.name, type_=Text()), ARRAY(c.type)) for c in columns)
    table = func.unnest(*arrays).table_valued(*(column(c.name, c.type) for c in columns), name="given")
    return table.render_derived()


def _match(table: Table, given: TableValuedAlias) -> list[ColumnElement[bool]]:
    return [key == given.c[key.name] for key in table.primary_key.columns]


def _arrays(columns: Sequence[Column[Any]], rows: Sequence[Row]) -> dict[str, str]:
    places = {name: place for place, name in enumerate(columns[0].table.columns.keys())}
    return {c.name: _array(c, list(map(itemgetter(places[c.name]), rows))) for c in columns}


def _array(column_of: Column[Any], values: Sequence[Any]) -> str:
    """The text form of an array of the column's type."""
    write: Callable[[Sequence[Any]], str] = _number_array
    if isinstance(column_of.type, Text):
        write = _text_array
    elif isinstance(column_of.type, LargeBinary):
        write = _binary_array
    return write(values)


def _number_array(values: Sequence[int | None]) -> str:
    if None in values:
        return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"
    return "{" + ",".join(map(str, values)) + "}"


def _text_array(values: Sequence[str]) -> str:
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return '{"' + joined + '"}'


def _binary_array(values: Sequence[bytes]) -> str:
    return '{"' + '","'.join("\\\\x" + value.hex() for value in values) + '"}'
