"""Pods as rows: a narrow record and the ids of the three shared values beside it.

The order of a row is that of `tables.pods`; the log keeps the same columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from muster.model.pod import Pod
from muster.store.bulk import Bulk, Row
from muster.store.tables import pod_metadata, pod_specs, pod_statuses, pods
from muster.store.values import SharedValues, ValueIds, metadata_of, values_of_pods

_encode_gates = msgspec.json.Encoder().encode
_decode_gates = msgspec.json.Decoder(tuple[str, ...]).decode


class PodRows:
    """Makes the rows of one cluster's pods; `write_values` must run before what it returned is stored."""

    def __init__(self, connection: Connection, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._specs = ValueIds(connection, pod_specs, cluster_id)
        self._metadata = ValueIds(connection, pod_metadata, cluster_id)
        self._statuses = ValueIds(connection, pod_statuses, cluster_id)

    def rows(self, connection: Connection, some: Sequence[Pod]) -> list[Row]:
        """A row for each pod, in order."""
        if not some:
            return []
        specs = self._specs.ids(connection, {id(pod.spec): pod.spec for pod in some})
        statuses = self._statuses.ids(connection, {id(pod.status): pod.status for pod in some})
        identities = [
            (id(pod.labels), id(pod.annotations), id(pod.owner_references), id(pod.finalizers))
            for pod in some
        ]
        distinct = dict(zip(identities, some, strict=True))
        metadata = self._metadata.ids(connection, {key: metadata_of(pod) for key, pod in distinct.items()})
        cluster_id = self._cluster_id
        return [
            (
                cluster_id,
                pod.ordinal,
                pod.namespace,
                pod.name,
                pod.uid,
                pod.resource_version,
                pod.generation,
                pod.creation_us,
                pod.deletion_us,
                pod.deletion_grace_seconds,
                pod.group,
                _encode_gates(pod.gates).decode() if pod.gates else "",
                pod.node_name,
                specs[id(pod.spec)],
                metadata[identity],
                statuses[id(pod.status)],
            )
            for pod, identity in zip(some, identities, strict=True)
        ]

    def write_values(self, connection: Connection, bulk: Bulk) -> None:
        """Store the shared values that rows made so far refer to and the store does not have."""
        for values in (self._specs, self._metadata, self._statuses):
            bulk.insert(connection, values.table, values.new_rows)
            values.new_rows = []

    def trim(self) -> None:
        for values in (self._specs, self._metadata, self._statuses):
            values.trim()


def load_pods(connection: Connection, cluster_id: int) -> list[Pod]:
    """All pods of a cluster by ordinal; values and names that are equal are one object."""
    values = values_of_pods(connection, cluster_id)
    query = select(pods).where(pods.c.cluster_id == cluster_id).order_by(pods.c.ordinal)
    return [*pods_of_rows(connection.execute(query), values)]


def pods_of_rows(rows: Iterable[Any], values: SharedValues) -> Iterator[Pod]:
    """Pods from rows in the order of the table, in that order."""
    words: dict[str, str] = {}
    gates_of: dict[str, tuple[str, ...]] = {"": ()}
    for (
        _,
        ordinal,
        namespace,
        name,
        uid,
        resource_version,
        generation,
        creation_us,
        deletion_us,
        deletion_grace_seconds,
        group,
        gates,
        node_name,
        spec_id,
        metadata_id,
        status_id,
    ) in rows:
        metadata = values.metadata[metadata_id]
        if gates not in gates_of:
            gates_of[gates] = _decode_gates(gates)
        yield Pod(
            name=name,
            namespace=words.setdefault(namespace, namespace),
            uid=uid,
            resource_version=resource_version,
            generation=generation,
            ordinal=ordinal,
            creation_us=creation_us,
            deletion_us=deletion_us,
            deletion_grace_seconds=deletion_grace_seconds,
            labels=metadata.labels,
            annotations=metadata.annotations,
            owner_references=metadata.owner_references,
            finalizers=metadata.finalizers,
            spec=values.specs[spec_id],
            group=words.setdefault(group, group),
            gates=gates_of[gates],
            node_name=words.setdefault(node_name, node_name),
            status=values.statuses[status_id],
        )
