"""Many rows to SQLite in few statements, past SQLAlchemy, whose work around a statement takes as long as the statement.

What binding a value costs is most of what a narrow row does. So a value that all rows of a column share is bound once a
statement, and the rows hold the columns that differ. The driver lets go of the interpreter's lock for every statement
that runs, and a busy process makes it wait for the lock to come back: so a statement has room for many rows, and takes
as many of them as there are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, Table

from muster.store.bulk import Act, Claim, Claimed, Column, Row, Statement, key_names, wrapped_errors

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPICursor

ROWS_A_STATEMENT = (256, 64, 16, 4, 1)
"""For how many rows a statement may have room, most first."""
MOST_VALUES = 1_100
"""Of the rows of one statement: as many as 64 whole pods have."""
ROWS_A_BLOCK = 64
"""A block of so many rows is worth a statement of its own, for the values that its rows share."""
MOST_KEYS = 64
"""Rows that one statement deletes: each of them is a loop of its own."""
STATEMENTS_KEPT = 512
"""All of the texts of a busy writer: the driver prepares again what it does not keep."""


class SqliteBulk:
    """Runs claims and statements, on the connection's own cursor."""

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
        # A cursor that an error leaves open would keep a connection that is closed in its transaction.
        with (
            closing(connection.connection.cursor()) as cursor,
            wrapped_errors(connection, "a statement", sqlite3.Error),
        ):
            for one in statements:
                concerned = sum(self._run(cursor, part) for part in one.parts(ROWS_A_BLOCK))
        return concerned

    def _run(self, cursor: DBAPICursor, statement: Statement) -> int:
        """How many rows were concerned, of the one block."""
        concerned = 0
        for text, values in _executions(statement):
            cursor.executemany(text, values)
            concerned += cursor.rowcount
        return concerned


class _Shape(NamedTuple):
    """What the text of a statement depends on, beside the number of rows: which columns have one value for all rows.

    columns: those that the statement names. varying: those of them whose values differ from row to row.
    """

    act: Act
    table: Table
    columns: tuple[str, ...]
    varying: tuple[str, ...]


def _executions(statement: Statement) -> Iterator[tuple[str, list[Row]]]:
    """The texts that take all rows, each with the values of every time that it is to run."""
    (block,) = statement.blocks
    given = statement.given(block)
    varying = {name: column for name, column in given.items() if not _is_one_value(column)}
    if not varying:
        # A single row, say: some column is in the rows all the same.
        name, column = next(reversed(given.items()))
        varying[name] = column
    shape = _Shape(statement.act, statement.table, tuple(given), tuple(varying))
    shared = [column[0] for name, column in given.items() if name not in varying]
    values = _row_by_row(list(varying.values()))
    width = len(varying)
    sizes = [size for size in ROWS_A_STATEMENT if size <= _most_rows(statement.act, width)]
    most, step = sizes[0], sizes[0] * width
    full, left = divmod(statement.row_count, most)
    if full:
        starts = range(0, full * step, step)
        yield _text(shape, most), [(most, *shared, *values[at : at + step]) for at in starts]
    if left:
        size = min(size for size in sizes if size >= left)
        rest = values[full * step :] + values[-width:] * (size - left)
        yield _text(shape, size), [(left, *shared, *rest)]


def _is_one_value(column: Column) -> bool:
    first = column[0]
    return bool(first == column[-1]) and column.count(first) == len(column)


def _row_by_row(columns: Sequence[Column]) -> list[Any]:
    return list(columns[0]) if len(columns) == 1 else list(chain.from_iterable(zip(*columns, strict=True)))


def _most_rows(act: Act, width: int) -> int:
    most = MOST_VALUES // width
    return min(most, MOST_KEYS) if act is Act.DELETE else most


# The names below are those of our own tables and columns. The first parameter is how many rows there are, then come the
# shared values, then the rows, as many as there is room for.

_COUNT = "UPDATE leases SET commits = commits + 1 WHERE cluster = ? AND token = ? RETURNING commits"
_RAISE = "UPDATE clusters SET revision = ? WHERE name = ? AND revision <= ? RETURNING id"


@lru_cache(maxsize=STATEMENTS_KEPT)
def _text(shape: _Shape, size: int) -> str:
    return _MAKERS[shape.act](shape, size)


def _insert(shape: _Shape, size: int) -> str:
    names = ", ".join(shape.columns)
    return f"INSERT INTO {shape.table.name} ({names}) {_selected(shape, size, shape.columns)}"


def _upsert(shape: _Shape, size: int) -> str:
    changes = ", ".join(f"{c.name} = excluded.{c.name}" for c in shape.table.columns if not c.primary_key)
    return f"{_insert(shape, size)} ON CONFLICT ({', '.join(key_names(shape.table))}) DO UPDATE SET {changes}"


def _update(shape: _Shape, size: int) -> str:
    """A shared part of the key is given in each row: the planner might go through all rows of the table that have it."""
    name, keys, shared = shape.table.name, key_names(shape.table), _shared(shape)
    given = [column for column in shape.columns if column in keys or column not in shared]
    changes = ", ".join(
        f"{column} = {f'given.{column}' if column in given else shared[column]}"
        for column in shape.columns
        if column not in keys
    )
    matches = " AND ".join(f"{name}.{key} = given.{key}" for key in keys)
    return f"UPDATE {name} SET {changes} FROM ({_selected(shape, size, given)}) AS given WHERE {matches}"  # noqa: S608


def _delete(shape: _Shape, size: int) -> str:
    """With OR, since SQLite reads a whole table for IN with rows of values. Room that is left over repeats a row."""
    shared = _shared(shape)
    rows = (shared | dict(zip(shape.varying, row, strict=True)) for row in _places(shape, size))
    conditions = (" AND ".join(f"{key} = {row[key]}" for key in shape.columns) for row in rows)
    return f"DELETE FROM {shape.table.name} WHERE ?1 AND ({' OR '.join(conditions)})"  # noqa: S608


_MAKERS = {Act.INSERT: _insert, Act.UPSERT: _upsert, Act.UPDATE: _update, Act.DELETE: _delete}


def _selected(shape: _Shape, size: int, columns: Sequence[str]) -> str:
    """These columns of as many rows as there are. SQLite calls those of a row of values column1, column2 and so on."""
    rows = ", ".join(f"({', '.join(row)})" for row in _places(shape, size))
    sources = _shared(shape) | {name: f"column{place}" for place, name in enumerate(shape.varying, start=1)}
    wanted = ", ".join(f"{sources[name]} AS {name}" for name in columns)
    return f"SELECT {wanted} FROM (VALUES {rows}) LIMIT ?1"  # noqa: S608


def _shared(shape: _Shape) -> dict[str, str]:
    """The parameter of each value that the rows share."""
    names = [name for name in shape.columns if name not in shape.varying]
    return {name: f"?{place}" for place, name in enumerate(names, start=2)}


def _places(shape: _Shape, size: int) -> list[list[str]]:
    """The parameters of each row."""
    first, width = 2 + len(shape.columns) - len(shape.varying), len(shape.varying)
    return [[f"?{first + row * width + place}" for place in range(width)] for row in range(size)]
