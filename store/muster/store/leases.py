"""Ownership of a cluster: a token that only rises, checked inside each transaction.

The owner's lock keeps a second server away from the store. The token stands behind it: whoever acquires a cluster
makes every later transaction of the owner before fail, whatever that one believes. A lease outlives its cluster,
since a token that began again could be taken for an older owner's.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, update

from muster.engine.ports import FencedError
from muster.store.bulk import Act, Bulk, Statement
from muster.store.tables import leases
from muster.store.values import KEYS_IN_A_QUERY

_COUNT = (
    update(leases)
    .where(leases.c.cluster == bindparam("owned"), leases.c.token == bindparam("by"))
    .values(commits=leases.c.commits + 1)
    .returning(leases.c.commits)
)


def acquire(connection: Connection, bulk: Bulk, wanted: Sequence[str]) -> dict[str, int]:
    """Raise the tokens of clusters by one and return them. No cluster is named twice."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    tokens: dict[str, int] = {}
    for start in range(0, len(wanted), KEYS_IN_A_QUERY):
        some = sorted(wanted[start : start + KEYS_IN_A_QUERY])
        query = select(leases.c.cluster, leases.c.token, leases.c.commits).where(leases.c.cluster.in_(some))
        # In one order, so that two that want the same wait for each other and never both ways.
        rows = connection.execute(query.order_by(leases.c.cluster).with_for_update())
        held = {cluster: (token, commits) for cluster, token, commits in rows}
        raised = [(cluster, *held.get(cluster, (0, 0))) for cluster in some]
        rows_to_be = [(name, owner, token + 1, commits, None) for name, token, commits in raised]
        bulk.run(connection, [Statement.of_rows(Act.UPSERT, leases, rows_to_be)])
        tokens |= {name: token + 1 for name, token, _ in raised}
    return tokens


def fence(connection: Connection, cluster: str, token: int) -> int:
    """Count a commit of the cluster's owner and return the count. Raises FencedError if `token` is not the owner's.

    It comes first in a transaction: its row stays locked until the outcome is settled.
    """
    commits: int | None = connection.execute(_COUNT, {"owned": cluster, "by": token}).scalar_one_or_none()
    if commits is None:
        raise other_owner(cluster, token)
    return commits


def other_owner(cluster: str, token: int) -> FencedError:
    """What is raised where a token is not the owner's."""
    return FencedError(f"cluster {cluster!r} has another owner than the one with token {token}")


def is_committed(connection: Connection, cluster: str, token: int, commits: int) -> bool:
    """Did the commit with this count happen? Waits for a transaction that the server is still at work on.

    Raises FencedError if the cluster has another owner since, for then the count is not ours.
    """
    held = select(leases.c.token, leases.c.commits).where(leases.c.cluster == cluster).with_for_update()
    row = connection.execute(held).one_or_none()
    if row is None or row.token != token:
        raise other_owner(cluster, token)
    return bool(row.commits >= commits)
