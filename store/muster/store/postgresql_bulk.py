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
from itertools import chain
from typing import Any
from typing import cast as cast_to

import psycopg
from psycopg import sql
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy import Column as TableColumn

from muster.store.bulk import Act, Claim, Claimed, Column, SqlValue, Statement, wrapped_errors

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
_SEPARATOR = "\x1f"
_COPY_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_COPY_MARKS = "\\\t\n\r"


class PostgresBulk:
    """Statements with a text for each set of columns whose values differ; a session prepares what it meets."""

    def claim(self, connection: Connection, claims: Sequence[Claim]) -> dict[str, Claimed]:
        if not claims:
            return {}
        columns = zip(_CLAIM_TYPES, zip(*claims, strict=True), strict=True)
        literals = [_quoted(_array(of, values)) for of, values in columns]
        name = _prepared(connection, "claim", lambda: ([f"{of}[]" for of in _CLAIM_TYPES], _CLAIM))
        return dict(_claimed(_executed(connection, [_execution(name, literals)])))

    def run(self, connection: Connection, statements: Sequence[Statement]) -> int:
        script: list[str] = []
        concerned = 0
        for one in statements:
            if one.act is Act.INSERT and one.row_count >= COPIED_ROWS:
                if script:
                    _executed(connection, script)
                    script = []
                concerned = _copy(connection, one)
            elif one.row_count:
                script.append(_statement(connection, one))
        if script:
            concerned = _executed(connection, script).command_tuples or 0
        return concerned if statements and statements[-1].row_count else 0


def _statement(connection: Connection, statement: Statement) -> str:
    """The execution of a statement on its rows."""
    given = _Given(statement)
    key = (statement.act, statement.table.name, statement.changed, given.varying)
    name = _prepared(connection, key, lambda: (given.types, _MAKERS[statement.act](statement, given)))
    return _execution(name, given.literals)


def _prepared(connection: Connection, key: object, make: Callable[[], tuple[Sequence[str], str]]) -> str:
    """The name, on the session, of the statement with this key, or else made: its parameters' types, and its text.

    It goes to the server by itself, as the server keeps all of the message that a statement came with.
    """
    known: dict[object, str] = connection.info.setdefault(_PREPARED, {})
    name = known.get(key)
    if name is None:
        name = f"muster_{len(known)}"
        types, text = make()
        _executed(connection, [f"PREPARE {name} ({', '.join(types)}) AS {text}"])
        known[key] = name
    return name


def _execution(name: str, literals: Sequence[str]) -> str:
    return f"EXECUTE {name} ({', '.join(literals)})"


def _executed(connection: Connection, script: Sequence[str]) -> PGresult:
    """The answer to the script's last statement, in a transaction, which begins with it if none has.

    Past the driver's cursor, which waits for the interpreter's lock at each of several steps, and again at each answer.
    """
    with wrapped_errors(connection, "a script", psycopg.Error):
        session = _session(connection).pgconn
        if session.status != ConnStatus.OK:
            raise psycopg.OperationalError("the connection is lost")
        begin = ["BEGIN"] if session.transaction_status == TransactionStatus.IDLE else []
        answer = session.exec_(_message(";\n".join([*begin, *script])))
        if answer.status not in {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}:
            raise error_from_result(answer)
        return answer


class _Given:
    """The rows of a statement as literals, and as what its text says in their place."""

    def __init__(self, statement: Statement) -> None:
        self.literals: list[str] = []
        self.types: list[str] = []
        self._values: dict[str, str] = {}
        varying: list[str] = []
        arrays: list[str] = []
        for name, values in statement.given(statement.joined()).items():
            of = _TYPES[type(statement.table.columns[name].type)]
            parameter = f"${len(self.literals) + 1}"
            if values.count(values[0]) == len(values):
                self.literals.append(_literal(values[0]))
                self.types.append(of)
                self._values[name] = parameter
            else:
                self.literals.append(_quoted(_array(of, values)))
                self.types.append(f"{of}[]")
                self._values[name] = f"given.{name}"
                varying.append(name)
                arrays.append(parameter)
        self.varying = tuple(varying)
        self.source = f"unnest({', '.join(arrays)}) AS given ({', '.join(varying)})" if varying else ""

    def values(self, table: Table) -> str:
        """What stands for the values of all columns."""
        return ", ".join(self._values[column.name] for column in table.columns)

    def changes(self, names: Sequence[str]) -> str:
        return ", ".join(f"{name} = {self._values[name]}" for name in names)

    def joined(self, table: Table) -> str:
        """What is given, joined to `found.ctid` of the rows with these keys, up to the condition's end.

        A row is found as the first in the order of the primary key that is not before the key, for which no other index
        is of use. By equal keys the planner would take any index that begins with one of them, where it believes that
        a cluster has few rows.
        """
        *first, last = table.primary_key.columns
        alike = [f"kept.{key.name} = {self._key(key)}" for key in first]
        conditions = " AND ".join([*alike, f"kept.{last.name} >= {self._key(last)}"])
        found = (
            f"LATERAL (SELECT kept.ctid, kept.{last.name} FROM {table.name} AS kept WHERE {conditions}"  # noqa: S608
            f" ORDER BY kept.{last.name} LIMIT 1) AS found"
        )
        sources = f"{self.source}, {found}" if self.source else found
        return f"{sources} WHERE {table.name}.ctid = found.ctid AND found.{last.name} = {self._key(last)}"

    def _key(self, column: TableColumn[Any]) -> str:
        return self._values[column.name] + _COLLATIONS.get(type(column.type), "")


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
    return f"UPDATE {table.name} SET {given.changes(statement.changed)} FROM {given.joined(table)}"  # noqa: S608


def _delete(statement: Statement, given: _Given) -> str:
    return f"DELETE FROM {statement.table.name} USING {given.joined(statement.table)}"  # noqa: S608


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


def _claimed(answer: PGresult) -> Iterator[tuple[str, Claimed]]:
    """The rows of the claim's statement."""
    for row in range(answer.ntuples):
        cluster, commits, cluster_id = (answer.get_value(row, place) for place in range(3))
        if cluster is not None and commits is not None:
            yield cluster.decode(), Claimed(int(commits), None if cluster_id is None else int(cluster_id))


def _session(connection: Connection) -> psycopg.Connection[Any]:
    return cast_to("psycopg.Connection[Any]", connection.connection.dbapi_connection)


def _copy(connection: Connection, statement: Statement) -> int:
    table = statement.table
    names = sql.SQL(", ").join(map(sql.Identifier, table.columns.keys()))
    command = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), names)
    with wrapped_errors(connection, "COPY", psycopg.Error):
        message = _message(_copied(statement))
        with _session(connection).cursor() as cursor, cursor.copy(command) as copy:
            copy.write(message)
    return statement.row_count


def _copied(statement: Statement) -> str:
    """Rows in the text form of COPY, which differ: made by a line that has all that they share."""
    line: list[str] = []
    varying: list[Column] = []
    for name, values in statement.given(statement.joined()).items():
        of = _TYPES[type(statement.table.columns[name].type)]
        if values.count(values[0]) == len(values):
            line.append(str(_copied_values(of, values[:1])[0]).replace("%", "%%"))
        else:
            line.append("%s")
            varying.append(_copied_values(of, values))
    lines = ("\t".join(line) + "\n") * statement.row_count
    return lines % tuple(chain.from_iterable(zip(*varying, strict=True)))


def _copied_values(of: str, values: Column) -> Column:
    """What is written as text: an integer as it is."""
    if of == "bytea":
        return ["\\\\x" + value.hex() for value in values]
    if of != "text":
        return ["\\N" if value is None else value for value in values] if None in values else values
    joined = "".join(values)
    if any(mark in joined for mark in _COPY_MARKS):
        return [value.translate(_COPY_ESCAPES) for value in values]
    return values


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
        return '{"\\\\x' + '","\\\\x'.join(map(bytes.hex, values)) + '"}'
    if None in values:
        values = ["NULL" if value is None else value for value in values]
    return "{" + ("%s," * len(values))[:-1] % tuple(values) + "}"


def _text_array(values: Sequence[str]) -> str:
    """Escaped all at once, by a separator that none of the values has."""
    joined = _SEPARATOR.join(values)
    if joined.count(_SEPARATOR) == len(values) - 1:
        return '{"' + _escaped(joined).replace(_SEPARATOR, '","') + '"}'
    return '{"' + '","'.join(map(_escaped, values)) + '"}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
