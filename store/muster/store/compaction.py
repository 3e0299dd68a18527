"""Forgetting: old log entries, requests and decisions, values that nothing refers to, whole clusters.

How much to keep is the engine's to decide. A shared value stays for as long as a pod or a kept log entry refers to it.
What is to go is found beside the commits, on a snapshot; commits wait only while a slice of it goes. A value that was
found unused may be used again by then, which the log of since tells.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)

from muster.engine.ports import HistoryBounds, OldHistory, StoredValue, UnusedValues
from muster.store.bulk import Act, Bulk, Statement
from muster.store.database import Database
from muster.store.revisions import add_uses
from muster.store.tables import (
    TABLES_OF_A_CLUSTER,
    assignments,
    clusters,
    decisions,
    pod_metadata,
    pod_specs,
    pod_statuses,
    pods,
    requests,
    revisions,
)
from muster.store.values import UsedIds

ENTRIES_AT_ONCE = 64
"""Log entries or decisions that one slice removes, each with some hundred bytes or KiB."""
REQUESTS_AT_ONCE = 128
VALUES_AT_ONCE = 96
MOST_REQUESTS = 100_000
"""So many old requests are found at once; others are another time."""
ENTRIES_READ_AT_ONCE = 256
REST_PER_WORK = 4.0
"""A thread that reads a long log rests for so many times as long as it worked, or others would wait for the interpreter."""


def find_old(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> OldHistory | None:
    """What is beyond the bounds, if anything; of requests no more than some. Never beyond the end of the log."""
    log = select(clusters.c.revision, clusters.c.compacted_revision).where(clusters.c.id == cluster_id)
    revision, compacted = connection.execute(log).one()
    first_young = _first_since(connection, cluster_id, revisions.c.time_us, bounds.log_before_us)
    log_before = max(bounds.log_before_revision, revision + 1 if first_young is None else first_young)
    old = OldHistory(
        log_after=compacted,
        log_to=max(compacted, min(log_before - 1, revision)),
        decisions_before=_ends_of_slices(
            connection, cluster_id, _decisions_before(connection, cluster_id, bounds)
        ),
        requests_before_us=bounds.requests_before_us,
        requests=_old_requests(connection, cluster_id, bounds.requests_before_us),
    )
    return old if _is_any(old) else None


def _is_any(old: OldHistory) -> bool:
    return old.log_to > old.log_after or bool(old.decisions_before or old.requests)


def _old_requests(connection: Connection, cluster_id: int, before_us: int) -> tuple[tuple[str, str], ...]:
    old = select(requests.c.method, requests.c.request_id).where(
        requests.c.cluster_id == cluster_id, requests.c.time_us < before_us
    )
    found = connection.execute(old.limit(MOST_REQUESTS))
    return tuple(sorted((method, request_id) for method, request_id in found))


def _decisions_before(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> int:
    """The revision below which decisions are too old or too many."""
    first_young = _first_since(connection, cluster_id, decisions.c.create_us, bounds.decisions_before_us)
    mine = decisions.c.cluster_id == cluster_id
    if first_young is None:
        last = select(func.max(decisions.c.revision)).where(mine)
        first_young = (connection.execute(last).scalar() or 0) + 1
    if bounds.most_decisions is None:
        return first_young
    newest = select(decisions.c.revision).where(mine).order_by(decisions.c.revision.desc())
    first_too_old = newest.offset(bounds.most_decisions).limit(1)
    return max(first_young, (connection.execute(first_too_old).scalar() or -1) + 1)


def _ends_of_slices(connection: Connection, cluster_id: int, before_revision: int) -> tuple[int, ...]:
    """Revisions that cut the decisions before one into slices, the last of which is that one; none if there are no such."""
    columns = decisions.c
    place = func.row_number().over(order_by=columns.revision).label("place")
    old = select(columns.revision, place).where(
        columns.cluster_id == cluster_id, columns.revision < before_revision
    )
    each = old.subquery()
    first_of_slices = select(each.c.revision).where(each.c.place % ENTRIES_AT_ONCE == 1)
    firsts = sorted(set(connection.execute(first_of_slices).scalars()))
    return (*firsts[1:], before_revision) if firsts else ()


def forget_old(connection: Connection, cluster_id: int, old: OldHistory) -> OldHistory | None:
    """Remove some of it, and note how far the log is gone; what is left, if anything."""
    reached = min(old.log_to, old.log_after + ENTRIES_AT_ONCE)
    if reached > old.log_after:
        what = {"of_cluster": cluster_id, "reached": reached}
        connection.execute(_FORGET_ENTRIES, what)
        connection.execute(_NOTE_COMPACTED, what)
    for before in old.decisions_before[:1]:
        what = {"of_cluster": cluster_id, "before": before}
        connection.execute(_FORGET_ASSIGNMENTS, what)
        connection.execute(_FORGET_DECISIONS, what)
    for method, keys in groupby(old.requests[:REQUESTS_AT_ONCE], key=itemgetter(0)):
        # One that was used again meanwhile is young.
        connection.execute(
            delete(requests).where(
                requests.c.cluster_id == cluster_id,
                requests.c.method == method,
                requests.c.request_id.in_([request_id for _, request_id in keys]),
                requests.c.time_us < old.requests_before_us,
            )
        )
    left = replace(
        old,
        log_after=reached,
        decisions_before=old.decisions_before[1:],
        requests=old.requests[REQUESTS_AT_ONCE:],
    )
    return left if _is_any(left) else None


_OF_CLUSTER: BindParameter[int] = bindparam("of_cluster", type_=BigInteger)
_BEFORE = (decisions.c.cluster_id == _OF_CLUSTER) & (
    decisions.c.revision < bindparam("before", type_=BigInteger)
)
_REACHED: BindParameter[int] = bindparam("reached", type_=BigInteger)
_FORGET_ENTRIES = delete(revisions).where(
    revisions.c.cluster_id == _OF_CLUSTER, revisions.c.revision <= _REACHED
)
_NOTE_COMPACTED = update(clusters).where(clusters.c.id == _OF_CLUSTER).values(compacted_revision=_REACHED)
_FORGET_ASSIGNMENTS = delete(assignments).where(
    assignments.c.cluster_id == _OF_CLUSTER,
    assignments.c.decision_id.in_(select(decisions.c.id).where(_BEFORE)),
)
_FORGET_DECISIONS = delete(decisions).where(_BEFORE)


def _first_since(
    connection: Connection, cluster_id: int, time: ColumnElement[int], since_us: int
) -> int | None:
    """The lowest revision in a table whose time is not before another; looks at what is older, and no further."""
    columns = time.table.c
    mine = select(columns.revision).where(columns.cluster_id == cluster_id, time >= since_us)
    found: int | None = connection.execute(mine.order_by(columns.revision).limit(1)).scalar_one_or_none()
    return found


def find_unused(database: Database, cluster_id: int) -> UnusedValues:
    """The shared values that nothing refers to, as far as the log is read, by looks at it that are short.

    One long look would keep SQLite's log from beginning anew, which every commit would feel.
    """
    used = UsedIds()
    with database.read() as connection:
        begin = select(clusters.c.compacted_revision).where(clusters.c.id == cluster_id)
        reached: int = connection.execute(begin).scalar_one()
    reached = _add_logged(database, cluster_id, used, reached)
    with database.read() as connection:
        specs = _without_pods(connection, cluster_id, pod_specs, pods.c.spec_id)
        metadata = _without_pods(connection, cluster_id, pod_metadata, pods.c.metadata_id)
        statuses = _without_pods(connection, cluster_id, pod_statuses, pods.c.status_id)
    reached = _add_logged(database, cluster_id, used, reached)
    return UnusedValues(
        reached,
        tuple(value for value in specs if value[0] not in used.specs),
        tuple(value for value in metadata if value[0] not in used.metadata),
        tuple(value for value in statuses if value[0] not in used.statuses),
    )


def _without_pods(
    connection: Connection, cluster_id: int, table: Table, column: ColumnElement[int]
) -> list[StoredValue]:
    """The values of `table` that no pod refers to by `column`; by id."""
    referred = select(column).where(pods.c.cluster_id == cluster_id)
    columns = select(table.c.id, table.c.digest).where(table.c.cluster_id == cluster_id)
    found = connection.execute(columns.where(table.c.id.not_in(referred)).order_by(table.c.id))
    return [(value_id, digest) for value_id, digest in found]


def _add_logged(database: Database, cluster_id: int, used: UsedIds, after_revision: int) -> int:
    """Add the values that the log refers to behind a revision; the last revision that was read."""
    reached = after_revision
    while True:
        began = time.thread_time()
        with database.read() as connection:
            entries = _uses_since(connection, cluster_id, reached, ENTRIES_READ_AT_ONCE)
        for _, used_values in entries:
            add_uses(used, used_values)
        reached = entries[-1][0] if entries else reached
        if len(entries) < ENTRIES_READ_AT_ONCE:
            return reached
        time.sleep((time.thread_time() - began) * REST_PER_WORK)


def _uses_since(
    connection: Connection, cluster_id: int, after_revision: int, most: int | None = None
) -> list[tuple[int, bytes]]:
    columns = revisions.c
    behind = (columns.cluster_id == cluster_id) & (columns.revision > after_revision)
    entries = select(columns.revision, columns.used_values).where(behind).order_by(columns.revision)
    return [(revision, uses) for revision, uses in connection.execute(entries.limit(most))]


def forget_unused(
    connection: Connection, bulk: Bulk, cluster_id: int, unused: UnusedValues
) -> tuple[UnusedValues | None, Table, list[bytes]]:
    """Remove some of them, unless something has come to refer to them; those that are left, if any, and digests of what went."""
    left = _up_to_date(connection, cluster_id, unused)
    if unused.specs:
        table, some, used = pod_specs, unused.specs, left.used[0]
        left = replace(left, specs=some[VALUES_AT_ONCE:])
    elif unused.metadata:
        table, some, used = pod_metadata, unused.metadata, left.used[1]
        left = replace(left, metadata=some[VALUES_AT_ONCE:])
    else:
        table, some, used = pod_statuses, unused.statuses, left.used[2]
        left = replace(left, statuses=some[VALUES_AT_ONCE:])
    gone = [value for value in some[:VALUES_AT_ONCE] if value[0] not in used]
    keys = [(cluster_id, value_id) for value_id, _ in gone]
    bulk.run(connection, [Statement.of_rows(Act.DELETE, table, keys)])
    is_more = left.specs or left.metadata or left.statuses
    return left if is_more else None, table, [digest for _, digest in gone]


def _up_to_date(connection: Connection, cluster_id: int, unused: UnusedValues) -> UnusedValues:
    """With what is used by now: all that was written since is in the log, none of which was old enough to go yet."""
    entries, since = _uses_since(connection, cluster_id, unused.revision), UsedIds()
    for _, used_values in entries:
        add_uses(since, used_values)
    reached = entries[-1][0] if entries else unused.revision
    specs, metadata, statuses = unused.used
    used = (specs | since.specs, metadata | since.metadata, statuses | since.statuses)
    return replace(unused, revision=reached, used=used)


def forget_cluster(connection: Connection, cluster_id: int) -> None:
    """Remove every row of a cluster."""
    for table in TABLES_OF_A_CLUSTER:
        connection.execute(delete(table).where(table.c.cluster_id == cluster_id))
    connection.execute(delete(clusters).where(clusters.c.id == cluster_id))
