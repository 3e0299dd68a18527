"""Forgetting: old log entries, requests and decisions, values that nothing refers to, whole clusters.

How much to keep is the engine's to decide. A shared value stays for as long as a pod or a kept log entry refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from muster.engine.ports import HistoryBounds
from muster.store.bulk import Bulk, Row
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


def forget_log(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> None:
    """Remove the entries that are too old or too many, and note how far the log is gone: never beyond its end."""
    mine = clusters.c.id == cluster_id
    held = connection.execute(select(clusters.c.revision, clusters.c.compacted_revision).where(mine)).one()
    first_young = _first_since(connection, cluster_id, revisions.c.time_us, bounds.log_before_us)
    before_revision = max(
        bounds.log_before_revision, held.revision + 1 if first_young is None else first_young
    )
    compacted = max(held.compacted_revision, min(before_revision - 1, held.revision))
    connection.execute(
        delete(revisions).where(revisions.c.cluster_id == cluster_id, revisions.c.revision <= compacted)
    )
    connection.execute(update(clusters).where(mine).values(compacted_revision=compacted))


def forget_requests(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> None:
    """Remove the requests that were answered too long ago."""
    connection.execute(
        delete(requests).where(
            requests.c.cluster_id == cluster_id, requests.c.time_us < bounds.requests_before_us
        )
    )


def forget_decisions(connection: Connection, cluster_id: int, bounds: HistoryBounds) -> None:
    """Remove the decisions that are too old or too many, with their assignments."""
    first_young = _first_since(connection, cluster_id, decisions.c.create_us, bounds.decisions_before_us)
    if first_young is None:
        last = select(func.max(decisions.c.revision)).where(decisions.c.cluster_id == cluster_id)
        first_young = (connection.execute(last).scalar() or 0) + 1
    before_revision, most = first_young, bounds.most_decisions
    if most is not None:
        newest = select(decisions.c.revision).where(decisions.c.cluster_id == cluster_id)
        first_too_old = newest.order_by(decisions.c.revision.desc()).offset(most).limit(1)
        before_revision = max(before_revision, (connection.execute(first_too_old).scalar() or -1) + 1)
    old = (decisions.c.cluster_id == cluster_id) & (decisions.c.revision < before_revision)
    their_ids = select(decisions.c.id).where(old)
    connection.execute(
        delete(assignments).where(
            assignments.c.cluster_id == cluster_id, assignments.c.decision_id.in_(their_ids)
        )
    )
    connection.execute(delete(decisions).where(old))


def _first_since(
    connection: Connection, cluster_id: int, time: ColumnElement[int], since_us: int
) -> int | None:
    """The lowest revision in a table whose time is not before another; looks at what is older, and no further."""
    columns = time.table.c
    mine = select(columns.revision).where(columns.cluster_id == cluster_id, time >= since_us)
    found: int | None = connection.execute(mine.order_by(columns.revision).limit(1)).scalar_one_or_none()
    return found


def forget_unused_values(connection: Connection, bulk: Bulk, cluster_id: int) -> None:
    """Remove the shared values that neither a pod nor a log entry refers to."""
    logged = UsedIds()
    entries = select(revisions.c.used_values).where(revisions.c.cluster_id == cluster_id)
    for (used_values,) in connection.execute(entries):
        add_uses(logged, used_values)
    for table, column, kept in (
        (pod_specs, pods.c.spec_id, logged.specs),
        (pod_metadata, pods.c.metadata_id, logged.metadata),
        (pod_statuses, pods.c.status_id, logged.statuses),
    ):
        bulk.delete(connection, table, _unused(connection, cluster_id, table, column, kept))


def _unused(
    connection: Connection, cluster_id: int, table: Table, column: ColumnElement[int], logged: Iterable[int]
) -> list[Row]:
    """Keys of the values of `table` that no pod refers to by `column`, nor the log by its ids."""
    of_pods = connection.execute(select(column).distinct().where(pods.c.cluster_id == cluster_id)).scalars()
    stored = connection.execute(select(table.c.id).where(table.c.cluster_id == cluster_id)).scalars()
    return [(cluster_id, value_id) for value_id in sorted({*stored} - {*of_pods, *logged})]


def forget_cluster(connection: Connection, cluster_id: int) -> None:
    """Remove every row of a cluster."""
    for table in TABLES_OF_A_CLUSTER:
        connection.execute(delete(table).where(table.c.cluster_id == cluster_id))
    connection.execute(delete(clusters).where(clusters.c.id == cluster_id))
