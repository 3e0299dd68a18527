"""A real store on SQLite whose database fails in ways that databases do: locked, full, broken half way, answers lost.

Each fault strikes one transaction of the writer, or the next reading, and is over then. The errors are SQLite's own or,
where it cannot be made to fail just so, SQLAlchemy's for the same.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from muster.store.bulk import Statement
from muster.store.sqlite_bulk import SqliteBulk
from muster.store.store import SqlStore

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPICursor

MOST_PAGES = 10**9


class Fault(Enum):
    """What goes wrong next."""

    LOCKED = auto()
    """Somebody else holds the database when a transaction begins."""
    FULL = auto()
    """There is no room for another page."""
    HALF_WAY = auto()
    """The disk fails after some statements."""
    UNFORESEEN = auto()
    """An error that no port names, in the midst of a transaction."""
    COMMIT_LOST = auto()
    """The transaction is undone while it is committed."""
    ANSWER_LOST = auto()
    """The transaction is committed, and nobody hears of it."""
    ANSWER_LOST_FOR_LONG = auto()
    """As before, and the database cannot be asked about it at once."""
    UNREADABLE = auto()
    """The next reading fails."""


class CountedBulk(SqliteBulk):
    """Tells of each of its statements, of which SQLAlchemy tells nobody."""

    def __init__(self, executed: Callable[[], None]) -> None:
        super().__init__()
        self._executed = executed

    def _run(self, cursor: DBAPICursor, statement: Statement) -> int:
        self._executed()
        return super()._run(cursor, statement)


class FaultyStore(SqlStore):
    """`arm` has a fault strike once, the writer's after some statements. `struck` counts the faults that did."""

    def __init__(self, url: str, struck: Counter[Fault]) -> None:
        super().__init__(url)
        self.struck = struck
        self._armed: list[tuple[Fault, int]] = []
        self._statements = 0
        backend = self._database._backend
        self._database.bulk = CountedBulk(self._executed)
        event.listen(backend.writer, "begin", self._begun)
        event.listen(backend.writer, "before_cursor_execute", self._executed)
        event.listen(backend.writer, "commit", self._committing)
        event.listen(backend.readers, "begin", self._reading)

    def arm(self, fault: Fault, after_statements: int = 0) -> None:
        self._armed.append((fault, after_statements))

    def disarm(self) -> None:
        """What has not struck yet does not."""
        self._armed.clear()

    def _next(self, *faults: Fault) -> int | None:
        """After how many statements the next fault strikes, if it is one of these."""
        if self._armed and self._armed[0][0] in faults:
            return self._armed[0][1]
        return None

    def _strike(self) -> Fault:
        fault, _ = self._armed.pop(0)
        self.struck[fault] += 1
        return fault

    def _begun(self, connection: Connection) -> None:
        self._statements = 0
        connection.exec_driver_sql(f"PRAGMA max_page_count={MOST_PAGES}")
        if self._next(Fault.LOCKED) is not None:
            self._strike()
            raise failure("database is locked")
        if self._next(Fault.FULL) is not None:
            self._strike()
            connection.exec_driver_sql("PRAGMA max_page_count=1")

    def _executed(self, *_: Any) -> None:
        self._statements += 1
        after = self._next(Fault.HALF_WAY, Fault.UNFORESEEN)
        if after is not None and self._statements > after:
            if self._strike() is Fault.UNFORESEEN:
                raise RuntimeError("nobody thought of this")
            raise failure("disk I/O error")

    def _committing(self, connection: Connection) -> None:
        if self._next(Fault.COMMIT_LOST) is not None:
            self._strike()
            raise failure("disk I/O error")
        if self._next(Fault.ANSWER_LOST, Fault.ANSWER_LOST_FOR_LONG) is not None:
            connection.connection.cursor().execute("COMMIT")
            if self._strike() is Fault.ANSWER_LOST_FOR_LONG:
                self._armed.insert(0, (Fault.LOCKED, 0))
            raise failure("disk I/O error")

    def _reading(self, connection: Connection) -> None:
        if self._next(Fault.UNREADABLE) is not None:
            self._strike()
            raise failure("disk I/O error")


def failure(text: str) -> OperationalError:
    """What SQLAlchemy makes of an error of SQLite."""
    return OperationalError("", {}, sqlite3.OperationalError(text))
