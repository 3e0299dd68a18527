"""One commit as rows: what the engine wrote, sorted by table, so that each table is touched once.

The log tells what a write does to a pod: one that it ADDED is inserted, any other updated, so nothing is read first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import is_, itemgetter

from sqlalchemy import Connection, Table

from muster.engine.log_entries import EventType
from muster.engine.ports import ClusterWrites, FencedError
from muster.model.pod import Pod
from muster.store.bulk import Act, Bulk, Row, Statement
from muster.store.columns import Packs
from muster.store.decisions import assignment_row, decision_row
from muster.store.objects import Bodies, object_keys, object_rows
from muster.store.queue import key_rows, pending_rows, unit_rows, wait_rows
from muster.store.requests import request_rows
from muster.store.revisions import LoggedPods, in_columns, revision_rows
from muster.store.rows import PodColumns, PodRows
from muster.store.tables import (
    POD_CHANGES,
    assignments,
    decisions,
    failed_bindings,
    pending_pod_group_members,
    pending_pod_groups,
    pods,
    preemption_waits,
    queue_units,
    requests,
    revisions,
)

_revision_of = itemgetter(1)


def _by_table() -> defaultdict[Table, list[Row]]:
    return defaultdict(list)


@dataclass(slots=True)
class CommitRows:
    """Rows of the writes of several clusters, each of which is added once."""

    deleted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    inserted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    upserted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    inserted_pods: list[PodColumns] = field(default_factory=list)
    updated_pods: list[PodColumns] = field(default_factory=list)

    def add(self, connection: Connection, cluster_id: int, writes: ClusterWrites, maker: PodRows) -> None:
        """Take in the writes of one cluster. Reads, if at all, which shared values are stored."""
        bodies, packs = Bodies(), Packs()
        together = in_columns(connection, maker, writes.entries)
        self._add_pods(connection, cluster_id, writes, together, maker)
        for table, rows in maker.take_values():
            self.inserted[table] += rows
        self._add_objects(cluster_id, writes, bodies)
        self._add_queue(cluster_id, writes)
        self._add_decisions(cluster_id, writes, packs)
        self.upserted[requests] += request_rows(cluster_id, writes.requests)
        entries = chain.from_iterable(revision_rows(cluster_id, one, bodies, packs) for one in together)
        self.inserted[revisions] += sorted(entries, key=_revision_of)

    def run(self, connection: Connection, bulk: Bulk) -> None:
        """Execute. Deletes come first, since a name may go and come again in one commit."""
        updates = Statement(Act.UPDATE, pods, self.updated_pods, POD_CHANGES)
        changed = bulk.run(
            connection,
            [
                *(Statement.of_rows(Act.DELETE, table, keys) for table, keys in self.deleted.items()),
                *(Statement.of_rows(Act.INSERT, table, rows) for table, rows in self.inserted.items()),
                Statement(Act.INSERT, pods, self.inserted_pods),
                *(Statement.of_rows(Act.UPSERT, table, rows) for table, rows in self.upserted.items()),
                updates,
            ],
        )
        if changed != updates.row_count:
            raise FencedError("the store lacks pods that were to be changed: load the cluster again")

    def _add_pods(
        self,
        connection: Connection,
        cluster_id: int,
        writes: ClusterWrites,
        together: list[LoggedPods],
        maker: PodRows,
    ) -> None:
        """What is written of a pod is mostly what the log has of it, and then its columns are the log's."""
        added = _ordinals(together, EventType.ADDED)
        gone = _ordinals(together, EventType.DELETED)
        gone.update(pod.ordinal for pod in writes.removed.values() if type(pod) is Pod)
        self.deleted[pods] += [(cluster_id, ordinal) for ordinal in sorted(gone)]
        written = [pod for pod in writes.puts.values() if type(pod) is Pod]
        logged, others = _written_columns(together, written)
        for columns in logged:
            self._add_columns(columns, added)
        if others:
            self._add_columns(maker.columns(connection, others), added)

    def _add_columns(self, columns: PodColumns, added: set[int]) -> None:
        """Of pods; those that were added are new to the store."""
        ordinals = columns[1]
        if not added or added.isdisjoint(ordinals):
            self.updated_pods.append(columns)
        elif added.issuperset(ordinals):
            self.inserted_pods.append(_by_ordinal(columns))
        else:
            new = [place for place, ordinal in enumerate(ordinals) if ordinal in added]
            old = [place for place, ordinal in enumerate(ordinals) if ordinal not in added]
            self.inserted_pods.append(_by_ordinal(_some(columns, new)))
            self.updated_pods.append(_some(columns, old))

    def _add_objects(self, cluster_id: int, writes: ClusterWrites, bodies: Bodies) -> None:
        gone = [key for key in writes.removed if key not in writes.puts]
        for table, keys in object_keys(cluster_id, gone).items():
            self.deleted[table] += keys
        for table, rows in object_rows(cluster_id, writes.puts.items(), bodies).items():
            self.upserted[table] += rows

    def _add_queue(self, cluster_id: int, writes: ClusterWrites) -> None:
        self.deleted[queue_units] += key_rows(cluster_id, writes.unit_removals)
        self.deleted[pending_pod_groups] += key_rows(cluster_id, writes.pending_group_removals)
        self.deleted[pending_pod_group_members] += key_rows(cluster_id, writes.pending_member_removals)
        self.upserted[queue_units] += unit_rows(cluster_id, writes.unit_puts.values())
        groups, members = writes.pending_group_puts.values(), writes.pending_member_puts.values()
        self.upserted[pending_pod_groups] += pending_rows(cluster_id, groups)
        self.upserted[pending_pod_group_members] += pending_rows(cluster_id, members)
        self.deleted[preemption_waits] += key_rows(cluster_id, writes.wait_removals)
        self.deleted[failed_bindings] += [
            (cluster_id, *key) for key in sorted(writes.failed_binding_removals)
        ]
        self.upserted[failed_bindings] += [
            (cluster_id, *binding) for binding in writes.failed_binding_puts.values()
        ]
        self.upserted[preemption_waits] += wait_rows(cluster_id, writes.wait_puts.values())

    def _add_decisions(self, cluster_id: int, writes: ClusterWrites, packs: Packs) -> None:
        for record in writes.decisions:
            self.inserted[decisions].append(decision_row(cluster_id, record))
            assigned = assignment_row(cluster_id, record, packs)
            if assigned is not None:
                self.inserted[assignments].append(assigned)


def _ordinals(together: list[LoggedPods], wanted: EventType) -> set[int]:
    """Of the pods to which this happened."""
    ordinals: set[int] = set()
    for one in together:
        if one.only_type is wanted:
            ordinals.update(one.columns[1])
        elif one.only_type is None and wanted in one.types:
            ordinals.update(compress(one.columns[1], map(wanted.__eq__, one.types)))
    return ordinals


def _written_columns(
    together: list[LoggedPods], written: Sequence[Pod]
) -> tuple[list[PodColumns], list[Pod]]:
    """The log's columns of those pods that are written, and pods that are written and not in the log.

    The last entries come first, as they mostly have all that is written, in that order: what they bound others added.
    """
    columns: list[PodColumns] = []
    entries, left = list(together), list(written)
    while left and entries and _ends_with(left, entries[-1].pods):
        last = entries.pop()
        columns.append(last.columns)
        del left[-len(last.pods) :]
    identities = set(map(id, left))
    while identities and entries:
        last = entries.pop()
        found = identities.intersection(map(id, last.pods))
        identities -= found
        if found:
            columns.append(_of_pods(last, found))
    return columns[::-1], [pod for pod in left if id(pod) in identities] if identities else []


def _ends_with(some: list[Pod], last: list[Pod]) -> bool:
    return 0 < len(last) <= len(some) and all(map(is_, last, some[-len(last) :]))


def _of_pods(one: LoggedPods, wanted: set[int]) -> PodColumns:
    """The columns of these pods alone."""
    if len(wanted) == len(one.pods):
        return one.columns
    places = {id(pod): place for place, pod in enumerate(one.pods) if id(pod) in wanted}
    return _some(one.columns, list(places.values()))


def _by_ordinal(columns: PodColumns) -> PodColumns:
    """In the order of the table's key, in which SQLite adds them several times as fast."""
    ordinals = columns[1]
    if sorted(ordinals) == ordinals:
        return columns
    order = sorted(range(len(ordinals)), key=ordinals.__getitem__)
    are_one = (column.count(column[0]) == len(column) for column in columns)
    return [
        column if is_one else list(map(column.__getitem__, order))
        for column, is_one in zip(columns, are_one, strict=True)
    ]


def _some(columns: PodColumns, places: Sequence[int]) -> PodColumns:
    return [list(map(column.__getitem__, places)) for column in columns]
