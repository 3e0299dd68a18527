"""All of one cluster from the store, in one snapshot. A store may have hundreds of clusters, most of them small.

So tables that hold nothing of a cluster are not asked: one question finds out which do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Table, bindparam, select

from muster.engine.ports import LoadedCluster
from muster.store.objects import load_objects
from muster.store.queue import (
    load_failed_bindings,
    load_pending_groups,
    load_pending_members,
    load_units,
    load_waits,
)
from muster.store.rows import load_pods
from muster.store.tables import (
    OBJECT_TABLES,
    clusters,
    failed_bindings,
    pending_pod_group_members,
    pending_pod_groups,
    pods,
    preemption_waits,
    queue_units,
)

Item = TypeVar("Item")

_TABLES = (
    *OBJECT_TABLES.values(),
    pods,
    queue_units,
    pending_pod_groups,
    pending_pod_group_members,
    preemption_waits,
    failed_bindings,
)
_FILLED = select(
    *(select(1).where(table.c.cluster_id == bindparam("of")).exists().label(table.name) for table in _TABLES)
)
_BY_NAME = select(clusters).where(clusters.c.name == bindparam("named"))


def load_cluster(connection: Connection, name: str) -> LoadedCluster:
    """The cluster; empty and at revision 0 if there is none."""
    row = connection.execute(_BY_NAME, {"named": name}).one_or_none()
    if row is None:
        return LoadedCluster(name, 0, 0, [], [], [], [])
    filled = _filled(connection, row.id)

    def items(table: Table, load: Callable[[Connection, int], list[Item]]) -> list[Item]:
        return load(connection, row.id) if table in filled else []

    return LoadedCluster(
        name=name,
        revision=row.revision,
        compacted_revision=row.compacted_revision,
        objects=[*load_objects(connection, row.id, filled), *items(pods, load_pods)],
        units=items(queue_units, load_units),
        pending_groups=items(pending_pod_groups, load_pending_groups),
        pending_members=items(pending_pod_group_members, load_pending_members),
        waits=items(preemption_waits, load_waits),
        failed_bindings=items(failed_bindings, load_failed_bindings),
    )


def _filled(connection: Connection, cluster_id: int) -> frozenset[Table]:
    """The tables that hold something of a cluster."""
    answers = connection.execute(_FILLED, {"of": cluster_id}).one()
    return frozenset(table for table, is_filled in zip(_TABLES, answers, strict=True) if is_filled)
