"""The queue's rows: units, what waits for an unseen root, what preempting units wait for, where bindings failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, select

from muster.engine.ports import (
    FailedBinding,
    PendingGroup,
    PendingMember,
    PreemptionWait,
    QueuedUnit,
    UnitState,
)
from muster.model.meta import ObjectKey
from muster.store.bulk import Row
from muster.store.columns import PackedIntegers, pack_integers, unpack_integers
from muster.store.tables import (
    failed_bindings,
    pending_pod_group_members,
    pending_pod_groups,
    preemption_waits,
    queue_units,
)

_encode_reasons = msgspec.json.Encoder().encode
_decode_reasons = msgspec.json.Decoder(tuple[str, ...]).decode
_NO_REASONS = "[]"


class PackedWait(msgspec.Struct, array_like=True, frozen=True):
    """The pods of a wait, each column with its length."""

    pods: PackedIntegers
    pod_count: int
    stayed: PackedIntegers
    stayed_count: int


_encode_wait = msgspec.msgpack.Encoder().encode
_decode_wait = msgspec.msgpack.Decoder(PackedWait).decode


def unit_rows(cluster_id: int, units: Iterable[QueuedUnit]) -> list[Row]:
    """A unit that is IN_FLIGHT is stored as ACTIVE, because a restart finds it so."""
    return [
        (
            cluster_id,
            *unit.key,
            int(UnitState.ACTIVE if unit.state is UnitState.IN_FLIGHT else unit.state),
            unit.priority,
            unit.since_us,
            unit.attempts,
            unit.not_before_us,
            unit.last_attempt_us,
            _encode_reasons(unit.reasons).decode() if unit.reasons else _NO_REASONS,
            unit.message,
        )
        for unit in units
    ]


def pending_rows(cluster_id: int, pending: Iterable[PendingGroup | PendingMember]) -> list[Row]:
    """Rows for either of the two pending tables."""
    return [(cluster_id, *one.key, *one.missing) for one in pending]


def wait_rows(cluster_id: int, waits: Iterable[PreemptionWait]) -> list[Row]:
    """Rows for what preempting units wait for."""
    return [(cluster_id, *wait.key, wait.until_us, _encode_wait(_packed(wait))) for wait in waits]


def key_rows(cluster_id: int, keys: Iterable[ObjectKey]) -> list[Row]:
    """Primary keys in any table of the queue."""
    return [(cluster_id, *key) for key in sorted(keys)]


def load_units(connection: Connection, cluster_id: int) -> list[QueuedUnit]:
    """All units of a cluster, by key."""
    return [
        QueuedUnit(
            key=ObjectKey(kind, namespace, name),
            state=UnitState(state),
            priority=priority,
            since_us=since_us,
            attempts=attempts,
            not_before_us=not_before_us,
            last_attempt_us=last_attempt_us,
            reasons=_decode_reasons(reasons),
            message=message,
        )
        for (
            _,
            kind,
            namespace,
            name,
            state,
            priority,
            since_us,
            attempts,
            not_before_us,
            last_attempt_us,
            reasons,
            message,
        ) in _rows(connection, queue_units, cluster_id)
    ]


def load_pending_groups(connection: Connection, cluster_id: int) -> list[PendingGroup]:
    """All pending groups of a cluster, by key."""
    return [
        PendingGroup(ObjectKey(*row[1:4]), ObjectKey(*row[4:7]))
        for row in _rows(connection, pending_pod_groups, cluster_id)
    ]


def load_pending_members(connection: Connection, cluster_id: int) -> list[PendingMember]:
    """All pending members of a cluster, by key."""
    return [
        PendingMember(ObjectKey(*row[1:4]), ObjectKey(*row[4:7]))
        for row in _rows(connection, pending_pod_group_members, cluster_id)
    ]


def load_waits(connection: Connection, cluster_id: int) -> list[PreemptionWait]:
    """All waits of a cluster, by the unit's key."""
    return [
        PreemptionWait(
            ObjectKey(row.kind, row.namespace, row.name),
            tuple(unpack_integers(packed.pods, packed.pod_count)),
            row.until_us,
            tuple(unpack_integers(packed.stayed, packed.stayed_count)),
        )
        for row in _rows(connection, preemption_waits, cluster_id)
        for packed in (_decode_wait(row.body),)
    ]


def load_failed_bindings(connection: Connection, cluster_id: int) -> list[FailedBinding]:
    """All failed bindings of a cluster, by pod and node."""
    columns = failed_bindings.c
    query = select(columns.ordinal, columns.node_name, columns.until_us)
    mine = query.where(columns.cluster_id == cluster_id).order_by(columns.ordinal, columns.node_name)
    return [FailedBinding(*row) for row in connection.execute(mine)]


def _packed(wait: PreemptionWait) -> PackedWait:
    return PackedWait(pack_integers(wait.pods), len(wait.pods), pack_integers(wait.stayed), len(wait.stayed))


def _rows(connection: Connection, table: Table, cluster_id: int) -> Iterable[Any]:
    columns = table.c
    query = select(table).where(columns.cluster_id == cluster_id)
    return connection.execute(query.order_by(columns.kind, columns.namespace, columns.name))
