"""Many rows to PostgreSQL in one message: prepared statements, executed one after the other by one text.

Each answer that is waited for costs the server a round trip and this process a turn at the interpreter's lock, which
together take longer than what a small statement does. So the statements of a commit go together, and their values
stand in the text: a literal where a column's values are all equal, else an array that the statement unnests, or COPY
where many rows are new. The server parses and plans a statement once a session.

A statement finds the rows that it changes one by one, by their primary key. Left to choose, the planner may read a
whole cluster's rows instead: its statistics know nothing of a table that has just grown, nor of a new cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from typing import cast as cast_to

import psycopg
from psycopg import sql
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.exc import DBAPIError

from muster.store.bulk import Act, Claim, Claimed, Row, SqlValue, Statement

COPIED_ROWS = 500
# For the writer's session. A literal is written for `standard_conforming_strings`. The plans of a statement that finds
# rows by their key are given no choice.
SETTINGS = (
    "SET standard_conforming_strings = on",
    "SET jit = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET enable_seqscan = off",
    "SET enable_memoize = off",
)

_PREPARED = "prepared statements"
_TYPES: dict[type[Any], str] = {
    SmallInteger: "smallint",
    Integer: "integer",
    BigInteger: "bigint",
    Text: "text",
    LargeBinary: "bytea",
}
# Names compare as bytes, as their columns do.
_COLLATIONS: dict[type[Any], str] = {Text: ' COLLATE "C"'}
_NUL = "\0"


class PostgresBulk:
    """Statements with a text for each set of columns whose values differ; a session prepares what it meets."""

    def __init__(self) -> None:
        # A name is never used twice: of a script that failed it is not known what it had prepared.
        self._numbers = count(1)

    def claim(self, connection: Connection, claims: Sequence[Claim]) -> dict[str, Claimed]:
        if not claims:
            return {}
        columns = zip(_CLAIM_TYPES, zip(*claims, strict=True), strict=True)
        literals = [_quoted(_array(of, values)) for of, values in columns]
        script = _Script(connection, self._numbers)
        script.execute("claim", lambda: ([f"{of}[]" for of in _CLAIM_TYPES], _CLAIM), literals)
        with script.answered() as cursor:
            return {cluster: Claimed(commits, cluster_id) for cluster, commits, cluster_id in cursor}

    def run(self, connection: Connection, statements: Sequence[Statement]) -> list[int]:
        script = _Script(connection, self._numbers)
        concerned: list[int] = []
        for one in statements:
            if one.act is Act.INSERT and len(one.rows) >= COPIED_ROWS:
                concerned += script.run()
                concerned.append(_copy(connection, one.table, one.rows))
            else:
                script.add(one)
        return concerned + script.run()


class _Script:
    """What goes to the server in one message. Statements without rows are left out, and concern none."""

    def __init__(self, connection: Connection, numbers: Iterator[int]) -> None:
        self._connection = connection
        self._numbers = numbers
        self._prepared: dict[object, str] = connection.info.setdefault(_PREPARED, {})
        self._preparing: list[str] = []
        self._executing: list[str] = []
        self._places: list[bool] = []

    def add(self, statement: Statement) -> None:
        self._places.append(bool(statement.rows))
        if not statement.rows:
            return
        given = _Given(statement)
        key = (statement.act, statement.table.name, statement.columns, given.varying)
        self.execute(key, lambda: (given.types, _MAKERS[statement.act](statement, given)), given.literals)

    def execute(
        self, key: object, make: Callable[[], tuple[Sequence[str], str]], literals: Sequence[str]
    ) -> None:
        """Execute the statement that is known by the key, or else made: the types of its parameters, and its text."""
        name = self._prepared.get(key)
        if name is None:
            name = self._prepared[key] = f"muster_{next(self._numbers)}"
            types, text = make()
            self._preparing.append(f"PREPARE {name} ({', '.join(types)}) AS {text}")
        self._executing.append(f"EXECUTE {name} ({', '.join(literals)})")

    def run(self) -> list[int]:
        """How many rows each statement concerned; the script is empty then."""
        places, self._places = self._places, []
        if not any(places):
            return [0] * len(places)
        with self.answered() as cursor:
            counts = [cursor.rowcount]
            while cursor.nextset():
                counts.append(cursor.rowcount)
        answers = iter(counts)
        return [next(answers) if is_sent else 0 for is_sent in places]

    @contextmanager
    def answered(self) -> Iterator[psycopg.Cursor[Any]]:
        """The cursor, at the first answer of what was executed."""
        preparing, executing = self._preparing, self._executing
        self._preparing, self._executing = [], []
        text = ";\n".join((*preparing, *executing))
        try:
            with _cursor(self._connection, "a script") as cursor:
                cursor.execute(_message(text), prepare=False)
                for _ in preparing:
                    cursor.nextset()
                yield cursor
        except BaseException:
            self._prepared.clear()
            raise


class _Given:
    """The rows of a statement as literals, and as what its text says in their place."""

    def __init__(self, statement: Statement) -> None:
        self.literals: list[str] = []
        self.types: list[str] = []
        self._values: dict[str, str] = {}
        varying: list[str] = []
        arrays: list[str] = []
        for column, values in _columns(statement):
            of = _TYPES[type(column.type)]
            parameter = f"${len(self.literals) + 1}"
            if values.count(values[0]) == len(values):
                self.literals.append(_literal(values[0]))
                self.types.append(of)
                self._values[column.name] = parameter
            else:
                self.literals.append(_quoted(_array(of, values)))
                self.types.append(f"{of}[]")
                self._values[column.name] = f"given.{column.name}"
                varying.append(column.name)
                arrays.append(parameter)
        self.varying = tuple(varying)
        self.source = f"unnest({', '.join(arrays)}) AS given ({', '.join(varying)})" if varying else ""

    def values(self, table: Table) -> str:
        """What stands for the values of all columns."""
        return ", ".join(self._values[column.name] for column in table.columns)

    def changes(self, names: Sequence[str]) -> str:
        return ", ".join(f"{name} = {self._values[name]}" for name in names)

    def found(self, table: Table) -> str:
        """Tables to join: what is given, and `found.ctid` of the rows with these keys."""
        alike = " AND ".join(
            f"kept.{key.name} = {self._values[key.name]}" + _COLLATIONS.get(type(key.type), "")
            for key in table.primary_key.columns
        )
        # OFFSET keeps the planner from turning the order of the join.
        found = f"LATERAL (SELECT kept.ctid FROM {table.name} AS kept WHERE {alike} OFFSET 0) AS found"  # noqa: S608
        return f"{self.source}, {found}" if self.source else found


# The names below are those of our own tables and columns.


def _insert(statement: Statement, given: _Given) -> str:
    table = statement.table
    names = ", ".join(table.columns.keys())
    source = f" FROM {given.source}" if given.source else ""
    return f"INSERT INTO {table.name} ({names}) SELECT {given.values(table)}{source}"


def _upsert(statement: Statement, given: _Given) -> str:
    table = statement.table
    keys = ", ".join(table.primary_key.columns.keys())
    changes = ", ".join(f"{c.name} = excluded.{c.name}" for c in table.columns if not c.primary_key)
    return f"{_insert(statement, given)} ON CONFLICT ({keys}) DO UPDATE SET {changes}"


def _update(statement: Statement, given: _Given) -> str:
    table = statement.table
    changes, found = given.changes(statement.columns), given.found(table)
    return f"UPDATE {table.name} SET {changes} FROM {found} WHERE {table.name}.ctid = found.ctid"  # noqa: S608


def _delete(statement: Statement, given: _Given) -> str:
    table = statement.table
    return f"DELETE FROM {table.name} USING {given.found(table)} WHERE {table.name}.ctid = found.ctid"  # noqa: S608


_MAKERS: dict[Act, Callable[[Statement, _Given], str]] = {
    Act.INSERT: _insert,
    Act.UPSERT: _upsert,
    Act.UPDATE: _update,
    Act.DELETE: _delete,
}

_CLAIM_TYPES = ("text", "bigint", "bigint")
_CLAIM = """
WITH given AS (SELECT * FROM unnest($1, $2, $3) AS given (cluster, token, reached)),
counted AS (
    UPDATE leases SET commits = commits + 1
    FROM given, LATERAL (
        SELECT kept.ctid FROM leases AS kept WHERE kept.cluster = given.cluster COLLATE "C" OFFSET 0
    ) AS found
    WHERE leases.ctid = found.ctid AND leases.token = given.token
    RETURNING leases.cluster, leases.commits
),
raised AS (
    UPDATE clusters SET revision = given.reached
    FROM given, LATERAL (
        SELECT kept.ctid FROM clusters AS kept WHERE kept.name = given.cluster COLLATE "C" OFFSET 0
    ) AS found
    WHERE clusters.ctid = found.ctid AND clusters.revision <= given.reached
    RETURNING clusters.name, clusters.id
)
SELECT counted.cluster, counted.commits, raised.id FROM counted LEFT JOIN raised ON counted.cluster = raised.name
"""
"""Of each claim that holds: the cluster, the count of commits and the cluster's id, all in one statement."""


def _columns(statement: Statement) -> Iterator[tuple[Column[Any], tuple[SqlValue, ...]]]:
    """The columns that the statement names, each with its values."""
    table = statement.table
    keys = list(table.primary_key.columns)
    columns = keys if statement.act is Act.DELETE else list(table.columns)
    wanted = {*statement.columns, *(key.name for key in keys)} if statement.columns else None
    for column, values in zip(columns, zip(*statement.rows, strict=True), strict=True):
        if wanted is None or column.name in wanted:
            yield column, values


def _copy(connection: Connection, table: Table, rows: Sequence[Row]) -> int:
    names = sql.SQL(", ").join(map(sql.Identifier, table.columns.keys()))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)
    with _cursor(connection, "COPY") as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
    return len(rows)


@contextmanager
def _cursor(connection: Connection, statement: str) -> Iterator[psycopg.Cursor[Any]]:
    """The driver's cursor, past SQLAlchemy; errors are wrapped as if it had run the statement."""
    try:
        with cast_to("psycopg.Cursor[Any]", connection.connection.cursor()) as cursor:
            yield cursor
    except psycopg.Error as error:
        raise DBAPIError.instance(
            statement, None, error, psycopg.Error, dialect=connection.dialect
        ) from error


def _message(text: str) -> bytes:
    """A script as it goes over the wire, where NUL would end it early."""
    if _NUL in text:
        raise psycopg.DataError("PostgreSQL's text cannot hold NUL")
    return text.encode()


def _literal(value: SqlValue) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _array(of: str, values: Sequence[Any]) -> str:
    """The text form of an array of the type, which takes a tenth of the time that the driver's adaptation does."""
    if of == "text":
        return _text_array(values)
    if of == "bytea":
        return '{"' + '","'.join("\\\\x" + value.hex() for value in values) + '"}'
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"


def _text_array(values: Sequence[str]) -> str:
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return '{"' + joined + '"}'
