"""Decision records: narrow columns to search by, a body of JSON, and assignments as one packed body beside it.

A decision that preempts assigns nothing: its nominations are packed where others have their assignments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, select

from muster.core.decision import Assignments, Decision, PreemptionEnd
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.model.meta import ObjectKey
from muster.model.variations import variation, varied
from muster.store.bulk import Row
from muster.store.columns import (
    PackedIntegers,
    PackedNames,
    PackedUids,
    Packs,
    unpack_integers,
    unpack_names,
    unpack_uids,
)
from muster.store.tables import assignments, decisions

NO_ASSIGNMENTS = (Assignments(), AssignmentColumns())

_assigning = variation(Decision, "assignments")
_of_assignments = variation(DecisionRecord, "decision", "assignments")


class PackedAssignments(msgspec.Struct, array_like=True, frozen=True):
    """Both forms of the assignments: with names as the API gives them, and by ordinal as the core decided them.

    The core's nodes and index are None where they are the same as those with names.
    """

    namespace: str
    nodes: tuple[str, ...]
    names: PackedNames
    uids: PackedUids
    node_index: tuple[int, ...]
    count: int
    ordinals: PackedIntegers
    core_nodes: tuple[str, ...] | None
    core_node_index: tuple[int, ...] | None


_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(DecisionRecord).decode
_encode_assignments = msgspec.msgpack.Encoder().encode
_decode_assignments = msgspec.msgpack.Decoder(PackedAssignments).decode


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """What a list of decisions asks for; times are inclusive, revisions exclusive."""

    unit: ObjectKey | None = None
    codes: tuple[str, ...] = ()
    from_us: int | None = None
    to_us: int | None = None
    before_revision: int | None = None
    after_revision: int | None = None


def decision_row(cluster_id: int, record: DecisionRecord) -> Row:
    """The row of a record, without its assignments or nominations."""
    bare = _with_places(record, *NO_ASSIGNMENTS)
    unit, code = record.decision.unit, record.decision.code
    body = _encode_record(bare).decode()
    return (cluster_id, record.revision, record.id, *unit, code.value, record.create_us, body)


def assignment_row(cluster_id: int, record: DecisionRecord, packs: Packs) -> Row | None:
    """The assignments of a record, or its nominations; None if it has none."""
    decision = record.decision
    core, named = decision.assignments, record.assignments
    if decision.preemption is not None and _nominates(decision):
        core, named = decision.preemption.nominations, record.nominations
    if (core, named) == NO_ASSIGNMENTS:
        return None
    packed = PackedAssignments(
        named.namespace,
        named.nodes,
        packs.names.of(named.pods),
        packs.uids.of(named.uids),
        named.node_index,
        len(core.pods),
        packs.ordinals.of(core.pods),
        None if core.nodes == named.nodes else core.nodes,
        None if core.node_index == named.node_index else core.node_index,
    )
    return (cluster_id, record.id, _encode_assignments(packed))


def get_decision(connection: Connection, cluster_id: int, decision_id: str) -> DecisionRecord | None:
    """The record with this id; None if there is none, or it is forgotten."""
    row = connection.execute(_records(cluster_id).where(decisions.c.id == decision_id)).one_or_none()
    return None if row is None else _record(row)


def list_decisions(
    connection: Connection, cluster_id: int, wanted: DecisionFilter, limit: int
) -> list[DecisionRecord]:
    """Newest first, but ascending when `after_revision` is given."""
    columns = decisions.c
    query = _records(cluster_id).where(*_conditions(wanted)).limit(limit)
    if wanted.after_revision is None:
        query = query.order_by(columns.revision.desc(), columns.id.desc())
    else:
        query = query.order_by(columns.revision, columns.id)
    return [_record(row) for row in connection.execute(query)]


def _records(cluster_id: int) -> Select[Any]:
    """Records with their assignments, NULL where a record has none."""
    mine = (assignments.c.cluster_id == decisions.c.cluster_id) & (
        assignments.c.decision_id == decisions.c.id
    )
    return (
        select(decisions.c.body, assignments.c.body.label("packed"))
        .join_from(decisions, assignments, mine, isouter=True)
        .where(decisions.c.cluster_id == cluster_id)
    )


def _conditions(wanted: DecisionFilter) -> Iterable[ColumnElement[bool]]:
    columns = decisions.c
    if wanted.unit is not None:
        yield columns.unit_kind == wanted.unit.kind
        yield columns.unit_namespace == wanted.unit.namespace
        yield columns.unit_name == wanted.unit.name
    if wanted.codes:
        yield columns.code.in_(wanted.codes)
    if wanted.from_us is not None:
        yield columns.create_us >= wanted.from_us
    if wanted.to_us is not None:
        yield columns.create_us < wanted.to_us
    if wanted.before_revision is not None:
        yield columns.revision < wanted.before_revision
    if wanted.after_revision is not None:
        yield columns.revision > wanted.after_revision


def _record(row: Any) -> DecisionRecord:  # noqa: ANN401 - a row of `_records`
    record = _decode_record(row.body)
    if row.packed is None:
        return record
    packed = _decode_assignments(row.packed)
    named = AssignmentColumns(
        packed.namespace,
        packed.nodes,
        tuple(unpack_names(packed.names)),
        tuple(unpack_uids(packed.uids)),
        packed.node_index,
    )
    core = Assignments(
        tuple(unpack_integers(packed.ordinals, packed.count)),
        named.nodes if packed.core_nodes is None else packed.core_nodes,
        named.node_index if packed.core_node_index is None else packed.core_node_index,
    )
    return _with_places(record, core, named)


def _nominates(decision: Decision) -> bool:
    return decision.preemption is not None and decision.preemption.end is PreemptionEnd.NOMINATED


def _with_places(record: DecisionRecord, core: Assignments, named: AssignmentColumns) -> DecisionRecord:
    """The record with these assignments, or with these nominations if it is one that preempts."""
    decision = record.decision
    if decision.preemption is None or not _nominates(decision):
        return _of_assignments(record, _assigning(decision, core), named)
    preemption = replace(decision.preemption, nominations=core)
    return varied(record, nominations=named, decision=varied(decision, preemption=preemption))
