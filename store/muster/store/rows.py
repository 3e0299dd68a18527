"""Pods as rows: a narrow record and the ids of the three shared values beside it.

The order of columns is that of `tables.pods`; the log keeps the same. Rows are made column by column, since a call for
each field of 10 000 pods is what costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, bindparam, select

from muster.model.pod import Pod
from muster.model.variations import variation
from muster.store.bulk import Row
from muster.store.tables import pod_metadata, pod_specs, pod_statuses, pods
from muster.store.values import SharedValues, ValueIds, metadata_of, values_of_pods

_encode_gates = msgspec.json.Encoder().encode
_decode_gates = msgspec.json.Decoder(tuple[str, ...]).decode


PodColumns = list[Sequence[Any]]

_ANY = Pod(name="any")
_stored = variation(Pod, *(field.name for field in fields(Pod)))
ROWS_AT_ONCE = 1_000
_PODS = select(pods).where(pods.c.cluster_id == bindparam("of")).order_by(pods.c.ordinal)


class PodRows:
    """Makes the rows of one cluster's pods; what they refer to must be stored with them (`take_values`)."""

    def __init__(self, connection: Connection, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._specs = ValueIds(connection, pod_specs, cluster_id)
        self._metadata = ValueIds(connection, pod_metadata, cluster_id)
        self._statuses = ValueIds(connection, pod_statuses, cluster_id)

    def columns(self, connection: Connection, some: Sequence[Pod]) -> PodColumns:
        """The columns of the table, with a place for each of these pods, in order; at least one."""
        count = len(some)
        gates = [pod.gates for pod in some]
        # A comprehension for each: the interpreter reads a slot that a line names in half the time of a getter.
        return [
            [self._cluster_id] * count,
            [pod.ordinal for pod in some],
            [pod.namespace for pod in some],
            [pod.name for pod in some],
            [pod.uid for pod in some],
            [pod.resource_version for pod in some],
            [pod.generation for pod in some],
            [pod.creation_us for pod in some],
            [pod.deletion_us for pod in some],
            [pod.deletion_grace_seconds for pod in some],
            [pod.group for pod in some],
            [_encode_gates(each).decode() if each else "" for each in gates] if any(gates) else [""] * count,
            [pod.node_name for pod in some],
            self._shared(connection, self._specs, [pod.spec for pod in some]),
            self._metadata_ids(connection, some),
            self._shared(connection, self._statuses, [pod.status for pod in some]),
        ]

    @staticmethod
    def _shared(connection: Connection, ids: ValueIds, values: Sequence[object]) -> list[int]:
        if _are_one(values):
            identity = id(values[0])
            return [ids.ids(connection, {identity: values[0]})[identity]] * len(values)
        identities = list(map(id, values))
        of_identity = ids.ids(connection, dict(zip(identities, values, strict=True)))
        return list(map(of_identity.__getitem__, identities))

    def _metadata_ids(self, connection: Connection, some: Sequence[Pod]) -> list[int]:
        parts: list[list[object]] = [
            [pod.labels for pod in some],
            [pod.annotations for pod in some],
            [pod.owner_references for pod in some],
            [pod.finalizers for pod in some],
        ]
        if all(map(_are_one, parts)):
            identity = tuple(id(part[0]) for part in parts)
            return [self._metadata.ids(connection, {identity: metadata_of(some[0])})[identity]] * len(some)
        identities = list(zip(*(map(id, part) for part in parts), strict=True))
        distinct = dict(zip(identities, some, strict=True))
        of_identity = self._metadata.ids(connection, {key: metadata_of(pod) for key, pod in distinct.items()})
        return list(map(of_identity.__getitem__, identities))

    def take_values(self) -> Iterator[tuple[Table, list[Row]]]:
        """The rows of shared values that rows made so far refer to and the store does not have, by table."""
        for values in (self._specs, self._metadata, self._statuses):
            yield values.table, values.new_rows
            values.new_rows = []

    def forget(self, table: Table, digests: Iterable[bytes]) -> None:
        """These values of the table are not in the store any more."""
        for values in (self._specs, self._metadata, self._statuses):
            if values.table is table:
                values.forget(digests)

    def trim(self) -> None:
        for values in (self._specs, self._metadata, self._statuses):
            values.trim()


def _are_one(values: Sequence[object]) -> bool:
    """Whether they are one value: equal ones are stored as one, and the very same object is seen at a glance."""
    return values[0] is values[-1] and values.count(values[0]) == len(values)


def load_pods(connection: Connection, cluster_id: int) -> list[Pod]:
    """All pods of a cluster by ordinal; values and names that are equal are one object."""
    values = values_of_pods(connection, cluster_id)
    parts = connection.execute(_PODS, {"of": cluster_id}).partitions(ROWS_AT_ONCE)
    return [*pods_of_rows(chain.from_iterable(parts), values)]


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
        yield _stored(
            _ANY,
            name,
            words.setdefault(namespace, namespace),
            uid,
            resource_version,
            generation,
            ordinal,
            creation_us,
            deletion_us,
            deletion_grace_seconds,
            metadata.labels,
            metadata.annotations,
            metadata.owner_references,
            metadata.finalizers,
            values.specs[spec_id],
            words.setdefault(group, group),
            gates_of[gates],
            words.setdefault(node_name, node_name),
            values.statuses[status_id],
        )
