"""Forgetting: old log entries, requests and decisions, values that nothing refers to, whole clusters.

How much to keep is the engine's to decide. A shared value stays for as long as a pod or a kept log entry refers to it.
Commits wait while something is forgotten, so that is done a slice at a time; what takes long, finding out which values
nothing refers to, is done beside them, and looked at again for what was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, tuple_, update

from muster.engine.ports import HistoryBounds, UnusedValues
from muster.store.bulk import Bulk
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

ENTRIES_AT_ONCE = 256
"""Log entries, requests or decisions that one slice removes."""
VALUES_AT_ONCE = 1_024


def forget_log(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> bool:
    """Remove some entries that are too old or too many, and note how far the log is gone: never beyond its end.

    Whether more are left.
    """
    mine = clusters.c.id == cluster_id
    held = connection.execute(select(clusters.c.revision, clusters.c.compacted_revision).where(mine)).one()
    first_young = _first_since(connection, cluster_id, revisions.c.time_us, bounds.log_before_us)
    before_revision = max(
        bounds.log_before_revision, held.revision + 1 if first_young is None else first_young
    )
    wanted = max(held.compacted_revision, min(before_revision - 1, held.revision))
    reached: int = min(wanted, held.compacted_revision + ENTRIES_AT_ONCE)
    connection.execute(
        delete(revisions).where(revisions.c.cluster_id == cluster_id, revisions.c.revision <= reached)
    )
    connection.execute(update(clusters).where(mine).values(compacted_revision=reached))
    return bool(reached < wanted)


def forget_requests(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> bool:
    """Remove some requests that were answered too long ago; whether more are left."""
    key = tuple_(requests.c.method, requests.c.request_id)
    mine = requests.c.cluster_id == cluster_id
    old = select(requests.c.method, requests.c.request_id).where(
        mine, requests.c.time_us < bounds.requests_before_us
    )
    removed = connection.execute(delete(requests).where(mine, key.in_(old.limit(ENTRIES_AT_ONCE)))).rowcount
    return removed >= ENTRIES_AT_ONCE


def forget_decisions(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> bool:
    """Remove some decisions that are too old or too many, with their assignments; whether more are left."""
    first_young = _first_since(connection, cluster_id, decisions.c.create_us, bounds.decisions_before_us)
    if first_young is None:
        last = select(func.max(decisions.c.revision)).where(decisions.c.cluster_id == cluster_id)
        first_young = (connection.execute(last).scalar() or 0) + 1
    before_revision, most = first_young, bounds.most_decisions
    if most is not None:
        newest = select(decisions.c.revision).where(decisions.c.cluster_id == cluster_id)
        first_too_old = newest.order_by(decisions.c.revision.desc()).offset(most).limit(1)
        before_revision = max(before_revision, (connection.execute(first_too_old).scalar() or -1) + 1)
    mine = decisions.c.cluster_id == cluster_id
    in_order = select(decisions.c.revision).where(mine).order_by(decisions.c.revision)
    beyond: int | None = connection.execute(in_order.offset(ENTRIES_AT_ONCE).limit(1)).scalar()
    reached = before_revision if beyond is None else min(before_revision, beyond)
    old = mine & (decisions.c.revision < reached)
    their_ids = select(decisions.c.id).where(old)
    connection.execute(
        delete(assignments).where(
            assignments.c.cluster_id == cluster_id, assignments.c.decision_id.in_(their_ids)
        )
    )
    connection.execute(delete(decisions).where(old))
    return reached < before_revision


def _first_since(
    connection: Connection, cluster_id: int, time: ColumnElement[int], since_us: int
) -> int | None:
    """The lowest revision in a table whose time is not before another; looks at what is older, and no further."""
    columns = time.table.c
    mine = select(columns.revision).where(columns.cluster_id == cluster_id, time >= since_us)
    found: int | None = connection.execute(mine.order_by(columns.revision).limit(1)).scalar_one_or_none()
    return found


def find_unused(connection: Connection, cluster_id: int) -> UnusedValues:
    """The shared values that neither a pod nor a log entry of this snapshot refers to."""
    revision = select(clusters.c.revision).where(clusters.c.id == cluster_id)
    logged = _logged(connection, cluster_id, 0)
    return UnusedValues(
        connection.execute(revision).scalar_one(),
        _unused(connection, cluster_id, pod_specs, pods.c.spec_id, logged.specs),
        _unused(connection, cluster_id, pod_metadata, pods.c.metadata_id, logged.metadata),
        _unused(connection, cluster_id, pod_statuses, pods.c.status_id, logged.statuses),
    )


def forget_unused(
    connection: Connection, bulk: Bulk, cluster_id: int, unused: UnusedValues
) -> tuple[UnusedValues | None, Table, set[int]]:
    """Remove some of them, unless something has come to refer to them since; those that are left, if any, and what went."""
    since = _logged(connection, cluster_id, unused.revision)
    if unused.specs:
        table, now = pod_specs, _now_unused(connection, cluster_id, unused.specs, pods.c.spec_id, since.specs)
        left = replace(unused, specs=unused.specs[VALUES_AT_ONCE:])
    elif unused.metadata:
        column, logged = pods.c.metadata_id, since.metadata
        table, now = pod_metadata, _now_unused(connection, cluster_id, unused.metadata, column, logged)
        left = replace(unused, metadata=unused.metadata[VALUES_AT_ONCE:])
    else:
        column, logged = pods.c.status_id, since.statuses
        table, now = pod_statuses, _now_unused(connection, cluster_id, unused.statuses, column, logged)
        left = replace(unused, statuses=unused.statuses[VALUES_AT_ONCE:])
    bulk.delete(connection, table, [(cluster_id, value_id) for value_id in now])
    return left if left.specs or left.metadata or left.statuses else None, table, now


def _now_unused(
    connection: Connection, cluster_id: int, ids: Iterable[int], column: ColumnElement[int], logged: set[int]
) -> set[int]:
    """The first of the ids, without those that the log or a pod refers to by now."""
    used = logged.union(_of_pods(connection, cluster_id, column))
    return {value_id for value_id in islice(ids, VALUES_AT_ONCE) if value_id not in used}


def _logged(connection: Connection, cluster_id: int, after_revision: int) -> UsedIds:
    """The values that log entries behind a revision refer to."""
    used = UsedIds()
    entries = select(revisions.c.used_values).where(
        revisions.c.cluster_id == cluster_id, revisions.c.revision > after_revision
    )
    for (used_values,) in connection.execute(entries):
        add_uses(used, used_values)
    return used


def _of_pods(connection: Connection, cluster_id: int, column: ColumnElement[int]) -> Iterable[int]:
    return connection.execute(select(column).distinct().where(pods.c.cluster_id == cluster_id)).scalars()


def _unused(
    connection: Connection, cluster_id: int, table: Table, column: ColumnElement[int], logged: Iterable[int]
) -> tuple[int, ...]:
    """Ids of the values of `table` that no pod refers to by `column`, nor the log by its ids."""
    stored = connection.execute(select(table.c.id).where(table.c.cluster_id == cluster_id)).scalars()
    return tuple(sorted({*stored} - {*_of_pods(connection, cluster_id, column), *logged}))


def forget_cluster(connection: Connection, cluster_id: int) -> None:
    """Remove every row of a cluster."""
    for table in TABLES_OF_A_CLUSTER:
        connection.execute(delete(table).where(table.c.cluster_id == cluster_id))
    connection.execute(delete(clusters).where(clusters.c.id == cluster_id))
