"""Shared values: what many pods hold in common is stored once, found by its content.

The engine shares specs, statuses and label maps by reference, so a value is known by its identity first and
encoded only when it is new to this process. Then its digest tells whether the store has it. Ids are given out here,
as the one writer knows the greatest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, func, select

from muster.model.meta import OwnerReference
from muster.model.pod import Pod, PodSpec, PodStatus
from muster.store.bulk import Row
from muster.store.tables import pod_metadata, pod_specs, pod_statuses, pods

# Beyond these a cache is emptied after a commit. They bound memory, and cost time only where thousands of pods
# share nothing.
KNOWN_OBJECTS = 10_000
KNOWN_DIGESTS = 100_000
KEYS_IN_A_QUERY = 500
DIGEST_BYTES = 16

# Mappings are sorted, so that equal values have equal bodies.
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode_spec = msgspec.json.Decoder(PodSpec).decode
_decode_status = msgspec.json.Decoder(PodStatus).decode

Identity = Hashable


@dataclass(frozen=True, slots=True)
class PodMetadata:
    """What a pod's metadata holds beside its identity."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


_decode_metadata = msgspec.json.Decoder(PodMetadata).decode


def metadata_of(pod: Pod) -> PodMetadata:
    """The shared part of a pod's metadata."""
    return PodMetadata(pod.labels, pod.annotations, pod.owner_references, pod.finalizers)


class ValueIds:
    """The ids of one table's values in one cluster, and the rows of those that the store has yet to get."""

    def __init__(self, connection: Connection, table: Table, cluster_id: int) -> None:
        self.table = table
        self.new_rows: list[Row] = []
        self._cluster_id = cluster_id
        self._of_object: dict[Identity, tuple[object, int]] = {}
        self._of_digest: dict[bytes, int] = {}
        columns = table.c
        mine = columns.cluster_id == cluster_id
        greatest = connection.execute(select(func.max(columns.id)).where(mine)).scalar_one()
        self._next_id = (greatest or 0) + 1
        newest = (
            select(columns.digest, columns.id)
            .where(mine)
            .order_by(columns.id.desc())
            .limit(KNOWN_DIGESTS + 1)
        )
        stored = connection.execute(newest).all()
        self._knows_all = len(stored) <= KNOWN_DIGESTS
        self._of_digest.update((digest, value_id) for digest, value_id in stored)

    def ids(self, connection: Connection, values: Mapping[Identity, object]) -> dict[Identity, int]:
        """The id of each value; those that the store lacks are in `new_rows` afterwards.

        A key is the identity of the value's objects, and the cache keeps them alive, so that it is not used again.
        """
        result: dict[Identity, int] = {}
        unseen: list[tuple[Identity, object, bytes, bytes]] = []
        for identity, value in values.items():
            known = self._of_object.get(identity)
            if known is not None:
                result[identity] = known[1]
            else:
                body = _encode(value)
                unseen.append((identity, value, blake2b(body, digest_size=DIGEST_BYTES).digest(), body))
        if unseen and not self._knows_all:
            self._look_up(connection, [digest for _, _, digest, _ in unseen])
        for identity, value, digest, body in unseen:
            result[identity] = self._id_of_digest(digest, body)
            self._of_object[identity] = (value, result[identity])
        return result

    def trim(self) -> None:
        """Forget what was cached if it has become too much. Called between commits."""
        if len(self._of_object) > KNOWN_OBJECTS:
            self._of_object.clear()
        if len(self._of_digest) > KNOWN_DIGESTS:
            self._of_digest.clear()
            self._knows_all = False

    def forget(self, digests: Iterable[bytes]) -> None:
        """These are not in the store any more."""
        self._of_object.clear()
        for digest in digests:
            self._of_digest.pop(digest, None)

    def _id_of_digest(self, digest: bytes, body: bytes) -> int:
        value_id = self._of_digest.get(digest)
        if value_id is None:
            value_id = self._of_digest[digest] = self._next_id
            self._next_id += 1
            self.new_rows.append((self._cluster_id, value_id, digest, body.decode()))
        return value_id

    def _look_up(self, connection: Connection, digests: Sequence[bytes]) -> None:
        columns = self.table.c
        wanted = [digest for digest in digests if digest not in self._of_digest]
        for start in range(0, len(wanted), KEYS_IN_A_QUERY):
            some = wanted[start : start + KEYS_IN_A_QUERY]
            query = select(columns.digest, columns.id).where(
                columns.cluster_id == self._cluster_id, columns.digest.in_(some)
            )
            self._of_digest.update((digest, value_id) for digest, value_id in connection.execute(query))


@dataclass(frozen=True, slots=True)
class SharedValues:
    """Values by id, as a reader needs them to make pods."""

    specs: dict[int, PodSpec]
    metadata: dict[int, PodMetadata]
    statuses: dict[int, PodStatus]


@dataclass(slots=True)
class UsedIds:
    """The ids that some pods refer to."""

    specs: set[int] = field(default_factory=set)
    metadata: set[int] = field(default_factory=set)
    statuses: set[int] = field(default_factory=set)


def values_of_pods(connection: Connection, cluster_id: int) -> SharedValues:
    """The values that the stored pods of a cluster refer to."""

    def used(table: Table) -> Iterator[tuple[int, str]]:
        rows = connection.execute(_USED[table], {"of": cluster_id})
        return ((value_id, body) for value_id, body in rows)

    return SharedValues(
        {key: _decode_spec(body) for key, body in used(pod_specs)},
        {key: _decode_metadata(body) for key, body in used(pod_metadata)},
        {key: _decode_status(body) for key, body in used(pod_statuses)},
    )


def _used(table: Table, referring: ColumnElement[int]) -> Select[Any]:
    """The values of a table that pods of a cluster refer to."""
    wanted = select(referring).where(pods.c.cluster_id == bindparam("of"))
    return select(table.c.id, table.c.body).where(
        table.c.cluster_id == bindparam("of"), table.c.id.in_(wanted)
    )


_USED = {
    pod_specs: _used(pod_specs, pods.c.spec_id),
    pod_metadata: _used(pod_metadata, pods.c.metadata_id),
    pod_statuses: _used(pod_statuses, pods.c.status_id),
}


def values_by_id(connection: Connection, cluster_id: int, wanted: UsedIds) -> SharedValues:
    """These values. The caller's snapshot has them all, for what refers to them keeps them stored."""

    def some(table: Table, ids: set[int]) -> Iterator[tuple[int, str]]:
        ordered = sorted(ids)
        for start in range(0, len(ordered), KEYS_IN_A_QUERY):
            query = select(table.c.id, table.c.body).where(
                table.c.cluster_id == cluster_id, table.c.id.in_(ordered[start : start + KEYS_IN_A_QUERY])
            )
            yield from ((value_id, body) for value_id, body in connection.execute(query))

    return SharedValues(
        {key: _decode_spec(body) for key, body in some(pod_specs, wanted.specs)},
        {key: _decode_metadata(body) for key, body in some(pod_metadata, wanted.metadata)},
        {key: _decode_status(body) for key, body in some(pod_statuses, wanted.statuses)},
    )
