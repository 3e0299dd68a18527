"""Pods as rows: a narrow record and the ids of the three shared values beside it.

The order of columns is that of `tables.pods`; the log keeps the same. Rows are made column by column, since a call for
each field of 10 000 pods is what costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain
from operator import attrgetter
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
_FIELDS = (
    "ordinal",
    "namespace",
    "name",
    "uid",
    "resource_version",
    "generation",
    "creation_us",
    "deletion_us",
    "deletion_grace_seconds",
    "group",
)
_field_getters = tuple(attrgetter(name) for name in _FIELDS)
_metadata_getters = tuple(map(attrgetter, ("labels", "annotations", "owner_references", "finalizers")))
_spec_of, _status_of, _node_name_of = attrgetter("spec"), attrgetter("status"), attrgetter("node_name")
_gates_of = attrgetter("gates")


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
        gates = list(map(_gates_of, some))
        return [
            [self._cluster_id] * count,
            *(list(map(field_of, some)) for field_of in _field_getters),
            [_encode_gates(each).decode() if each else "" for each in gates] if any(gates) else [""] * count,
            list(map(_node_name_of, some)),
            self._shared(connection, self._specs, list(map(_spec_of, some))),
            self._metadata_ids(connection, some),
            self._shared(connection, self._statuses, list(map(_status_of, some))),
        ]

    @staticmethod
    def _shared(connection: Connection, ids: ValueIds, values: list[object]) -> list[int]:
        identities = list(map(id, values))
        if _are_one(identities):
            return [ids.ids(connection, {identities[0]: values[0]})[identities[0]]] * len(values)
        of_identity = ids.ids(connection, dict(zip(identities, values, strict=True)))
        return list(map(of_identity.__getitem__, identities))

    def _metadata_ids(self, connection: Connection, some: Sequence[Pod]) -> list[int]:
        parts = [list(map(id, map(part_of, some))) for part_of in _metadata_getters]
        if all(map(_are_one, parts)):
            identity = tuple(part[0] for part in parts)
            return [self._metadata.ids(connection, {identity: metadata_of(some[0])})[identity]] * len(some)
        identities = list(zip(*parts, strict=True))
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


def _are_one(identities: list[int]) -> bool:
    return identities[0] == identities[-1] and identities.count(identities[0]) == len(identities)


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
