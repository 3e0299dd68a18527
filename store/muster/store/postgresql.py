"""PostgreSQL: a server that several processes may share, one of which writes.

The owner's lock is an advisory lock that the writer's own session holds. So it is gone when the process dies, and a
commit can only succeed on the session that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from typing import cast as cast_to

import psycopg
from psycopg import sql
from sqlalchemy import (
    ARRAY,
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    LargeBinary,
    NullPool,
    Select,
    Table,
    TableValuedAlias,
    Text,
    bindparam,
    cast,
    column,
    create_engine,
    delete,
    event,
    func,
    inspect,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from muster.engine.ports import ForeignStoreError, StoreUnavailableError
from muster.store.bulk import Claim, Claimed, Row, SqlValue
from muster.store.schema import VERSION_TABLE
from muster.store.tables import clusters, leases

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.sql.base import Executable

# A database may hold several stores, each in a schema of its own.
LOCK = (0x4D535452, func.hashtext(func.current_schema()))
END_OF_SESSION_SECONDS = 3
READERS = 8
CONNECT_SECONDS = 5
COPIED_ROWS = 500
# The writer finds rows by their primary key and by nothing else. The statistics of a table that has just grown make
# the planner read all of it instead, so it is left no other way.
WRITER_SETTINGS = "SET jit = off; SET enable_hashjoin = off; SET enable_mergejoin = off"


class PostgresBackend:
    """How to reach the database that `url` names, own it, and write to it in bulk."""

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = f"PostgreSQL database {(url.database or url.username)!r}"
        self.bulk = PostgresBulk()

    @cached_property
    def writer(self) -> Engine:
        engine = create_engine(
            self._url, poolclass=NullPool, connect_args={"connect_timeout": CONNECT_SECONDS}
        )
        event.listen(engine, "connect", _plan_by_keys)
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

    def mark(self, connection: Connection) -> None:
        """Nothing to do: the table of the schema's version tells whose the database is."""


class PostgresBulk:
    """Columns to the server: arrays that it unnests, or COPY where many rows are new.

    A column whose values are all equal goes as that value. The arrays are written here as PostgreSQL's text form,
    which takes a tenth of the time that the driver's adaptation of each element does.
    """

    def __init__(self) -> None:
        self.dialect: Any = None
        self._statements: dict[Hashable, str] = {}

    def claim(self, connection: Connection, claims: Sequence[Claim]) -> dict[str, Claimed]:
        if not claims:
            return {}
        columns = zip(_CLAIM_TYPES.items(), zip(*claims, strict=True), strict=True)
        given = {name: _array(of, values) for (name, of), values in columns}
        with _cursor(connection, "claim") as cursor:
            cursor.execute(self._text("claim", _claimed), given)
            return {cluster: Claimed(commits, cluster_id) for cluster, commits, cluster_id in cursor}

    def insert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if len(rows) >= COPIED_ROWS:
            self._copy(connection, table, rows)
        elif rows:
            given = _Given(list(table.columns), rows)
            self._run(connection, ("insert", table.name), given, lambda: given.inserted(table))

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        if not rows:
            return
        given = _Given(list(table.columns), rows)

        def upsert() -> Insert:
            statement = given.inserted(table)
            changed = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
            keys = [key.name for key in table.primary_key.columns]
            return statement.on_conflict_do_update(index_elements=keys, set_=changed)

        self._run(connection, ("upsert", table.name), given, upsert)

    def update(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
    ) -> int:
        if not rows:
            return 0
        given = _Given(list(table.columns), rows, frozenset({*columns, *table.primary_key.columns.keys()}))
        return self._run(
            connection,
            ("update", table.name),
            given,
            lambda: update(table).values({n: given.value(n) for n in columns}).where(*given.matches(table)),
        )

    def delete(self, connection: Connection, table: Table, keys: Sequence[Row]) -> None:
        if keys:
            given = _Given(list(table.primary_key.columns), keys)
            self._run(
                connection, ("delete", table.name), given, lambda: delete(table).where(*given.matches(table))
            )

    def _run(
        self, connection: Connection, key: Hashable, given: _Given, build: Callable[[], Executable]
    ) -> int:
        text = self._text((key, given.varying), build)
        with _cursor(connection, text) as cursor:
            return cursor.execute(text, given.parameters).rowcount

    def _text(self, key: Hashable, build: Callable[[], Executable]) -> str:
        text = self._statements.get(key)
        if text is None:
            text = self._statements[key] = str(build().compile(dialect=self.dialect))  # type: ignore[attr-defined]
        return text

    def _copy(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """COPY, which SQLAlchemy does not know."""
        names = sql.SQL(", ").join(map(sql.Identifier, table.columns.keys()))
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)
        with _cursor(connection, "COPY") as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)


def _plan_by_keys(connection: DBAPIConnection, _record: object) -> None:
    """Set how the writer's session plans."""
    connection.cursor().execute(WRITER_SETTINGS)
    connection.commit()


@contextmanager
def _cursor(connection: Connection, statement: str) -> Iterator[psycopg.Cursor[Any]]:
    """The driver's cursor, past SQLAlchemy, for one statement; errors are wrapped as if it had run it."""
    try:
        with cast_to("psycopg.Cursor[Any]", connection.connection.cursor()) as cursor:
            yield cursor
    except psycopg.Error as error:
        raise DBAPIError.instance(
            statement, None, error, psycopg.Error, dialect=connection.dialect
        ) from error


_CLAIM_TYPES = {
    "cluster": leases.c.cluster.type,
    "token": leases.c.token.type,
    "reached": clusters.c.revision.type,
}


def _claimed() -> Select[Any]:
    """Of each claim that holds: the cluster, the count of commits and the cluster's id, all in one statement."""
    arrays = (cast(bindparam(name, type_=Text()), ARRAY(of)) for name, of in _CLAIM_TYPES.items())
    columns = (column(name, of) for name, of in _CLAIM_TYPES.items())
    given = func.unnest(*arrays).table_valued(*columns, name="given").render_derived()
    counted = (
        update(leases)
        .where(leases.c.cluster == given.c.cluster, leases.c.token == given.c.token)
        .values(commits=leases.c.commits + literal_column("1"))
        .returning(leases.c.cluster, leases.c.commits)
        .cte("counted")
    )
    raised = (
        update(clusters)
        .where(clusters.c.name == given.c.cluster, clusters.c.revision <= given.c.reached)
        .values(revision=given.c.reached)
        .returning(clusters.c.name, clusters.c.id)
        .cte("raised")
    )
    return select(counted.c.cluster, counted.c.commits, raised.c.id).join_from(
        counted, raised, counted.c.cluster == raised.c.name, isouter=True
    )


class _Given:
    """Rows as the parameters of a statement, and as what the statement says in their place."""

    def __init__(
        self, columns: Sequence[Column[Any]], rows: Sequence[Row], needed: frozenset[str] | None = None
    ) -> None:
        self._types = {c.name: c.type for c in columns if needed is None or c.name in needed}
        self.parameters: dict[str, SqlValue] = {}
        varying: list[str] = []
        for c, values in zip(columns, zip(*rows, strict=True), strict=True):
            if c.name not in self._types:
                continue
            if values.count(values[0]) == len(values):
                self.parameters[c.name] = values[0]
            else:
                self.parameters[c.name] = _array(c.type, values)
                varying.append(c.name)
        self.varying = tuple(varying)

    @cached_property
    def _table(self) -> TableValuedAlias:
        arrays = (cast(bindparam(name, type_=Text()), ARRAY(self._types[name])) for name in self.varying)
        columns = (column(name, self._types[name]) for name in self.varying)
        return func.unnest(*arrays).table_valued(*columns, name="given").render_derived()

    def value(self, name: str) -> ColumnElement[Any]:
        """What stands for a column's value: a column of the unnested arrays, or the one parameter."""
        return self._table.c[name] if name in self.varying else bindparam(name, type_=self._types[name])

    def inserted(self, table: Table) -> Insert:
        names = table.columns.keys()
        values = select(*(self.value(name).label(name) for name in names))
        return insert(table).from_select(names, values)

    def matches(self, table: Table) -> list[ColumnElement[bool]]:
        return [key == self.value(key.name) for key in table.primary_key.columns]


def _array(of: TypeEngine[Any], values: Sequence[Any]) -> str:
    """The text form of an array of the type."""
    if isinstance(of, Text):
        return _text_array(values)
    if isinstance(of, LargeBinary):
        return '{"' + '","'.join("\\\\x" + value.hex() for value in values) + '"}'
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def _text_array(values: Sequence[str]) -> str:
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return '{"' + joined + '"}'
