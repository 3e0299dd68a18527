"""Bodies of all kinds but pods: msgspec's JSON of the model's own dataclasses, to be read in the database too."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from sqlalchemy import Connection, Table, bindparam, select

from muster.model.meta import POD, ObjectKey
from muster.model.objects import TYPES, ClusterObject
from muster.store.bulk import Row
from muster.store.tables import OBJECT_TABLES

_encode = msgspec.json.Encoder().encode
_BODIES = {
    kind: select(table.c.body)
    .where(table.c.cluster_id == bindparam("of"))
    .order_by(table.c.namespace, table.c.name)
    for kind, table in OBJECT_TABLES.items()
}
_decoders = {kind: msgspec.json.Decoder(TYPES[kind]) for kind in TYPES if kind != POD}


class Bodies:
    """Encodes each object of a commit once, though its table and the log both take the body."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ClusterObject, bytes]] = {}

    def of(self, value: ClusterObject) -> bytes:
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, _encode(value))
        return known[1]


def decode_object(kind: str, body: bytes | str) -> ClusterObject:
    """The object of any kind but Pod that `Bodies` encoded."""
    return _decoders[kind].decode(body)


def object_rows(
    cluster_id: int, objects: Iterable[tuple[ObjectKey, ClusterObject]], bodies: Bodies
) -> dict[Table, list[Row]]:
    """Rows of all that are no pods, by table."""
    rows: dict[Table, list[Row]] = {}
    for key, value in objects:
        if key.kind != POD:
            row = (cluster_id, key.namespace, key.name, bodies.of(value).decode())
            rows.setdefault(OBJECT_TABLES[key.kind], []).append(row)
    return rows


def object_keys(cluster_id: int, keys: Iterable[ObjectKey]) -> dict[Table, list[Row]]:
    """Primary keys of all that are no pods, by table."""
    rows: dict[Table, list[Row]] = {}
    for key in keys:
        if key.kind != POD:
            rows.setdefault(OBJECT_TABLES[key.kind], []).append((cluster_id, key.namespace, key.name))
    return rows


def load_objects(connection: Connection, cluster_id: int, filled: Collection[Table]) -> list[ClusterObject]:
    """All objects of a cluster but its pods, by kind, namespace and name; of tables that are `filled` alone."""
    return [
        decode_object(kind, body)
        for kind, table in OBJECT_TABLES.items()
        if table in filled
        for (body,) in connection.execute(_BODIES[kind], {"of": cluster_id})
    ]
