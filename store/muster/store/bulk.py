"""Many rows in one statement: the seam between the two databases on the hot path.

A row is a tuple with a value for every column of its table, in the table's order. `sqlite` sends rows to the driver's
executemany, `postgresql` sends columns as arrays; both compile a statement once and keep its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

SqlValue = int | str | bytes | None
Row = tuple[SqlValue, ...]


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
    """`columns` are those that an update sets, whose rows have all of the table's columns all the same."""

    act: Act
    table: Table
    rows: Sequence[Row]
    columns: tuple[str, ...] = ()


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
