"""Many rows in one statement: the seam between the two databases on the hot path.

A statement has its rows in columns: that a column has the same value in all of them is seen at a glance then, and both
databases are sent such a value once. Both compile a statement once and keep its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

SqlValue = int | str | bytes | None
Row = tuple[SqlValue, ...]
"""A value for every column of a table, in the table's order."""
Column = Sequence[Any]
"""A value for every row."""
Block = Sequence[Column]
"""Rows in columns; at least one."""


class Act(Enum):
    """What a statement does with its rows."""

    INSERT = auto()
    """Add rows whose keys are new."""
    UPSERT = auto()
    """Add rows, or replace all but the primary key of those that are there."""
    UPDATE = auto()
    """Set some columns of the rows with these primary keys."""
    DELETE = auto()
    """Remove the rows with these primary keys that are there; a row is a key, in the key's order."""


class Statement(NamedTuple):
    """An act on rows, which are those of all blocks.

    A block has all columns of the table in its order, or a deletion's keys. changed: the columns that an update sets.
    """

    act: Act
    table: Table
    blocks: Sequence[Block]
    changed: tuple[str, ...] = ()

    @classmethod
    def of_rows(cls, act: Act, table: Table, rows: Sequence[Row]) -> Statement:
        return cls(act, table, [list(zip(*rows, strict=True))] if rows else [])

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return sum(len(block[0]) for block in self.blocks)

    def joined(self) -> Block:
        """All rows in one block; there must be some."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        return [list(chain.from_iterable(parts)) for parts in zip(*self.blocks, strict=True)]

    def parts(self, rows: int) -> Sequence[Statement]:
        """The same in statements of one block, in which each block with at least so many rows stays alone."""
        if len(self.blocks) <= 1:
            return [self] if self.blocks else []
        small = [block for block in self.blocks if len(block[0]) < rows]
        blocks = [block for block in self.blocks if len(block[0]) >= rows]
        if small:
            blocks.append(self._replace(blocks=small).joined())
        return [self._replace(blocks=[block]) for block in blocks]

    def given(self, block: Block) -> dict[str, Column]:
        """The columns that the act is about, by name: an update's are its keys and those that it sets."""
        keys = key_names(self.table)
        if self.act is Act.DELETE:
            return dict(zip(keys, block, strict=True))
        given = dict(zip(column_names(self.table), block, strict=True))
        if self.changed:
            return {name: given[name] for name in (*keys, *self.changed)}
        return given


@cache
def column_names(table: Table) -> tuple[str, ...]:
    """The names of a table's columns, for which SQLAlchemy takes longer than a small statement."""
    return tuple(table.columns.keys())


@cache
def key_names(table: Table) -> tuple[str, ...]:
    """The names of a table's primary key."""
    return tuple(table.primary_key.columns.keys())


class Claim(NamedTuple):
    """That a commit is of the cluster's owner, which has this token, and brings the cluster to a revision."""

    cluster: str
    token: int
    revision: int


class Claimed(NamedTuple):
    """What came of a claim: which commit of the owner's this is, and the cluster's id.

    The id is None, and no revision raised, where there is no such cluster or it is beyond the revision.
    """

    commits: int
    cluster_id: int | None


class Bulk(Protocol):
    """Statements over many rows, which do nothing when there are none."""

    def claim(self, connection: Connection, claims: Sequence[Claim]) -> dict[str, Claimed]:
        """Count a commit of each cluster's owner and raise the cluster's revision; a cluster of another owner is left out.

        It comes first in a transaction: the owner's rows stay locked until the outcome is settled. No cluster is
        named twice.
        """
        ...

    def run(self, connection: Connection, statements: Sequence[Statement]) -> int:
        """Execute them in this order; how many rows the last one concerned."""
        ...


@contextmanager
def wrapped_errors(connection: Connection, statement: str, of_driver: type[Exception]) -> Iterator[None]:
    """The driver's errors as SQLAlchemy's, for what is executed past it."""
    try:
        yield
    except of_driver as error:
        raise DBAPIError.instance(statement, None, error, of_driver, dialect=connection.dialect) from error
