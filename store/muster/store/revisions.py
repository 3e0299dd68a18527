"""The log: one row a revision, in a form that stays readable for as long as it is kept.

A body holds pods in columns that refer to the shared values by id, so a revision that binds 10 000 pods takes some
hundred KiB; a few pods are in it as the rows of their table, which takes a fraction of the time. Other kinds are whole.
`used_values` repeats the ids for compaction, which keeps the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, count, repeat
from operator import not_
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import Connection, select

from muster.engine.log_entries import Change, EventType, LogEntry
from muster.model.pod import Pod
from muster.store.bulk import Row
from muster.store.columns import (
    PackedIntegers,
    PackedNames,
    PackedOptionals,
    PackedUids,
    PackedWords,
    Packs,
    pack_integers,
    pack_optionals,
    pack_words,
    unpack_integers,
    unpack_names,
    unpack_optionals,
    unpack_uids,
    unpack_words,
)
from muster.store.objects import Bodies, decode_object
from muster.store.rows import PodColumns, PodRows, pods_of_rows
from muster.store.tables import revisions
from muster.store.values import SharedValues, UsedIds, values_by_id


class PackedPods(msgspec.Struct, array_like=True, frozen=True):
    """Pods' changes in columns. A new column goes to the end and has a default, as old bodies lack it."""

    count: int
    types: PackedIntegers
    ordinals: PackedIntegers
    namespaces: PackedWords
    names: PackedNames
    uids: PackedUids
    resource_versions: PackedIntegers
    generations: PackedIntegers
    creations_us: PackedIntegers
    deletions_us: PackedOptionals
    deletion_graces_seconds: PackedOptionals
    groups: PackedWords
    gates: PackedWords
    node_names: PackedWords
    spec_ids: PackedIntegers
    metadata_ids: PackedIntegers
    status_ids: PackedIntegers
    previous_labels: dict[int, dict[str, str]]


class PackedObject(msgspec.Struct, array_like=True, frozen=True):
    type: int
    kind: str
    body: bytes
    previous_labels: dict[str, str] | None


class PlainPods(msgspec.Struct, array_like=True, frozen=True):
    """A few pods' changes; `rows` have the columns of the table."""

    types: Sequence[int]
    rows: list[tuple[Any, ...]]
    previous_labels: dict[int, dict[str, str]]


class Body(msgspec.Struct, array_like=True, frozen=True):
    """A revision. `runs`: how many objects, then pods, then objects and so on follow one another in it.

    Its pods are in `pods` or in `plain_pods`. A new field goes to the end and has a default, as old bodies lack it.
    """

    runs: list[int]
    objects: list[PackedObject]
    pods: PackedPods | None = None
    plain_pods: PlainPods | None = None


FEW_PODS = 64
"""Up to here, columns would save little room for the time that packing each of them takes."""

_encode = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(Body).decode
_decode_uses = msgspec.msgpack.Decoder(tuple[list[int], list[int], list[int]]).decode


class Logged(NamedTuple):
    """An entry taken apart: its pods, what happened to each, and its other changes. `runs` are those of a body."""

    entry: LogEntry
    runs: list[int]
    pods: Sequence[Pod]
    types: Sequence[EventType]
    previous_labels: dict[int, dict[str, str]]
    others: Sequence[Change]


def logged(entry: LogEntry) -> Logged:
    """The entry, taken apart."""
    objects, types, labels = entry.objects, entry.types, entry.previous_labels or {}
    are_pods = bytes([type(each) is Pod for each in objects])
    places = [*compress(count(), are_pods)]
    pods = cast("list[Pod]", [*compress(objects, are_pods)])
    previous = {at: labels[place] for at, place in enumerate(places) if place in labels} if labels else {}
    others = [
        Change(types[place], objects[place], labels.get(place))
        for place in compress(count(), map(not_, are_pods))
    ]
    return Logged(entry, _runs(are_pods), pods, [*compress(types, are_pods)], previous, others)


def _runs(are_pods: bytes) -> list[int]:
    """How many objects, then pods, then objects and so on follow one another."""
    runs: list[int] = []
    start = 0
    while start < len(are_pods):
        end = are_pods.find(1 - len(runs) % 2, start)
        if end < 0:
            end = len(are_pods)
        runs.append(end - start)
        start = end
    return runs


class LoggedPods:
    """Entries, and their pods in columns, one entry's after another's: both table and log take them."""

    def __init__(self, connection: Connection, maker: PodRows, entries: Sequence[Logged]) -> None:
        self.entries = entries
        self.pods: list[Pod] = [*chain.from_iterable(one.pods for one in entries)]
        self.types: list[EventType] = [*chain.from_iterable(one.types for one in entries)]
        self.only_type = self._only_type()
        self.columns: PodColumns = maker.columns(connection, self.pods) if self.pods else []

    def _only_type(self) -> EventType | None:
        """What happened to all of the pods, if it was the same."""
        types = self.types
        return types[0] if types and types.count(types[0]) == len(types) else None


def in_columns(connection: Connection, maker: PodRows, entries: Iterable[LogEntry]) -> list[LoggedPods]:
    """All of the entries: those with many pods by themselves, those with few together."""
    few: list[Logged] = []
    apart: list[LoggedPods] = []
    for one in map(logged, entries):
        if len(one.pods) > FEW_PODS:
            apart.append(LoggedPods(connection, maker, [one]))
        else:
            few.append(one)
    return [LoggedPods(connection, maker, few), *apart] if few else apart


def revision_rows(cluster_id: int, together: LoggedPods, bodies: Bodies, packs: Packs) -> Iterator[Row]:
    """The rows of the entries."""
    columns = together.columns
    if len(together.entries) == 1 and len(together.pods) > FEW_PODS:
        (one,) = together.entries
        uses = _encode(_uses(columns))
        yield _revision_row(cluster_id, one, bodies, uses, packed=_pack(one, columns, packs))
        return
    rows = list(zip(*columns, strict=True))
    ids, alone = list(zip(*columns[-3:], strict=True)), _UsesAlone()
    start = 0
    for one in together.entries:
        end = start + len(one.pods)
        if end > start:
            plain = PlainPods(one.types, rows[start:end], one.previous_labels)
            used = set(ids[start:end])
            uses = alone[used.pop()] if len(used) == 1 else _encode(_uses([c[start:end] for c in columns]))
            yield _revision_row(cluster_id, one, bodies, uses, plain=plain)
        else:
            yield _revision_row(cluster_id, one, bodies, _NO_USES)
        start = end


_NO_USES = _encode(([], [], []))


class _UsesAlone(dict[tuple[int, ...], bytes]):
    """What an entry uses, all pods of which share one spec, one metadata and one status, as those of many do."""

    def __missing__(self, ids: tuple[int, ...]) -> bytes:
        made = self[ids] = _encode(tuple([each] for each in ids))
        return made


def _uses(columns: PodColumns) -> tuple[list[int], ...]:
    return tuple(_distinct(column) for column in columns[-3:])


def _distinct(ids: Sequence[int]) -> list[int]:
    return [ids[0]] if ids.count(ids[0]) == len(ids) else sorted(set(ids))


def _revision_row(
    cluster_id: int,
    one: Logged,
    bodies: Bodies,
    uses: bytes,
    *,
    packed: PackedPods | None = None,
    plain: PlainPods | None = None,
) -> Row:
    objects = [
        PackedObject(kind, changed.key.kind, bodies.of(changed), labels)
        for kind, changed, labels in one.others
    ]
    body = _encode(Body(one.runs, objects, packed, plain))
    return (cluster_id, one.entry.revision, one.entry.time_us, uses, body)


def _pack(one: Logged, columns: PodColumns, packs: Packs) -> PackedPods:
    return PackedPods(
        len(one.pods),
        pack_integers(one.types),
        packs.ordinals.of(columns[1]),
        pack_words(columns[2]),
        packs.names.of(columns[3]),
        packs.uids.of(columns[4]),
        pack_integers(columns[5]),
        pack_integers(columns[6]),
        pack_integers(columns[7]),
        pack_optionals(columns[8]),
        pack_optionals(columns[9]),
        pack_words(columns[10]),
        pack_words(columns[11]),
        pack_words(columns[12]),
        pack_integers(columns[13]),
        pack_integers(columns[14]),
        pack_integers(columns[15]),
        one.previous_labels,
    )


def read_log(connection: Connection, cluster_id: int, after_revision: int, limit: int) -> list[LogEntry]:
    """Entries with a greater revision, ascending, at most `limit`; pods in them share values by reference."""
    columns = revisions.c
    query = (
        select(columns.revision, columns.time_us, columns.used_values, columns.body)
        .where(columns.cluster_id == cluster_id, columns.revision > after_revision)
        .order_by(columns.revision)
        .limit(limit)
    )
    stored = connection.execute(query).all()
    used = UsedIds()
    for row in stored:
        add_uses(used, row.used_values)
    values = values_by_id(connection, cluster_id, used)
    return [
        LogEntry.of(row.revision, row.time_us, _changes(_decode_body(row.body), values)) for row in stored
    ]


def add_uses(used: UsedIds, used_values: bytes) -> None:
    """Add the ids that an entry refers to."""
    specs, metadata, statuses = _decode_uses(used_values)
    used.specs.update(specs)
    used.metadata.update(metadata)
    used.statuses.update(statuses)


def _changes(body: Body, values: SharedValues) -> tuple[Change, ...]:
    objects = (
        Change(EventType(one.type), decode_object(one.kind, one.body), one.previous_labels)
        for one in body.objects
    )
    pods = _pods_of(body, values)
    changes: list[Change] = []
    for place, length in enumerate(body.runs):
        source = pods if place % 2 else objects
        changes.extend(next(source) for _ in range(length))
    return tuple(changes)


def _pods_of(body: Body, values: SharedValues) -> Iterator[Change]:
    if body.plain_pods is not None:
        plain = body.plain_pods
        labels = map(plain.previous_labels.get, range(len(plain.rows)))
        return map(Change, map(EventType, plain.types), pods_of_rows(plain.rows, values), labels)
    return _unpack(body.pods, values) if body.pods is not None else iter(())


def _unpack(packed: PackedPods, values: SharedValues) -> Iterator[Change]:
    count = packed.count
    rows = zip(
        repeat(0, count),
        unpack_integers(packed.ordinals, count),
        unpack_words(packed.namespaces, count),
        unpack_names(packed.names),
        unpack_uids(packed.uids),
        unpack_integers(packed.resource_versions, count),
        unpack_integers(packed.generations, count),
        unpack_integers(packed.creations_us, count),
        unpack_optionals(packed.deletions_us, count),
        unpack_optionals(packed.deletion_graces_seconds, count),
        unpack_words(packed.groups, count),
        unpack_words(packed.gates, count),
        unpack_words(packed.node_names, count),
        unpack_integers(packed.spec_ids, count),
        unpack_integers(packed.metadata_ids, count),
        unpack_integers(packed.status_ids, count),
        strict=True,
    )
    types = map(EventType, unpack_integers(packed.types, count))
    labels = map(packed.previous_labels.get, range(count))
    return map(Change, types, pods_of_rows(rows, values), labels)
