"""Requests kept for replay."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from muster.engine.ports import RequestRecord
from muster.store.bulk import Row
from muster.store.tables import clusters, requests


def request_rows(cluster_id: int, records: Iterable[RequestRecord]) -> list[Row]:
    """One row for each request; of two with the same id the later."""
    latest = {(record.method, record.request_id): record for record in records}
    return [
        (cluster_id, record.method, record.request_id, record.digest, record.response, record.time_us)
        for record in latest.values()
    ]


def find_request(connection: Connection, cluster: str, method: str, request_id: str) -> RequestRecord | None:
    """The success kept for this request; None if there is none, or it is forgotten."""
    columns = requests.c
    query = (
        select(columns.digest, columns.response, columns.time_us)
        .join_from(clusters, requests, clusters.c.id == columns.cluster_id)
        .where(clusters.c.name == cluster, columns.method == method, columns.request_id == request_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return RequestRecord(method, request_id, row.digest, row.response, row.time_us)
