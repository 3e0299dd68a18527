"""One commit as rows: what the engine wrote, sorted by table, so that each table is touched once.

The log tells what a write does to a pod: one that it ADDED is inserted, any other updated, so nothing is read first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain

from sqlalchemy import Connection, Table

from muster.engine.ports import Change, ClusterWrites, EventType, FencedError
from muster.model.pod import Pod
from muster.store.bulk import Act, Bulk, Row, Statement
from muster.store.decisions import assignment_row, decision_row
from muster.store.objects import Bodies, object_keys, object_rows
from muster.store.queue import key_rows, pending_rows, unit_rows, wait_rows
from muster.store.requests import request_rows
from muster.store.revisions import revision_row
from muster.store.rows import CommittedPods, PodRows
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


def _by_table() -> defaultdict[Table, list[Row]]:
    return defaultdict(list)


@dataclass(slots=True)
class CommitRows:
    """Rows of the writes of several clusters, each of which is added once."""

    deleted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    inserted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    upserted: defaultdict[Table, list[Row]] = field(default_factory=_by_table)
    updated_pods: list[Row] = field(default_factory=list)

    def add(self, connection: Connection, cluster_id: int, writes: ClusterWrites, maker: PodRows) -> None:
        """Take in the writes of one cluster. Reads, if at all, which shared values are stored."""
        bodies = Bodies()
        changes = list(chain.from_iterable(entry.changes for entry in writes.entries))
        written = [pod for pod in writes.puts.values() if type(pod) is Pod]
        logged = [pod for _, pod, _ in changes if type(pod) is Pod]
        committed = CommittedPods(connection, maker, written + logged)
        for table, rows in maker.take_values():
            self.inserted[table] += rows
        self._add_pods(cluster_id, writes, changes, written, committed)
        self._add_objects(cluster_id, writes, bodies)
        self._add_queue(cluster_id, writes)
        self._add_decisions(cluster_id, writes)
        self.upserted[requests] += request_rows(cluster_id, writes.requests)
        self.inserted[revisions] += [
            revision_row(cluster_id, entry, committed, bodies) for entry in writes.entries
        ]

    def run(self, connection: Connection, bulk: Bulk) -> None:
        """Execute. Deletes come first, since a name may go and come again in one commit."""
        changed = bulk.run(
            connection,
            [
                *(Statement(Act.DELETE, table, keys) for table, keys in self.deleted.items()),
                *(Statement(Act.INSERT, table, rows) for table, rows in self.inserted.items()),
                *(Statement(Act.UPSERT, table, rows) for table, rows in self.upserted.items()),
                Statement(Act.UPDATE, pods, self.updated_pods, POD_CHANGES),
            ],
        )
        if changed != len(self.updated_pods):
            raise FencedError("the store lacks pods that were to be changed: load the cluster again")

    def _add_pods(
        self,
        cluster_id: int,
        writes: ClusterWrites,
        changes: list[Change],
        written: list[Pod],
        committed: CommittedPods,
    ) -> None:
        added = _ordinals(changes, EventType.ADDED)
        gone = _ordinals(changes, EventType.DELETED)
        gone.update(pod.ordinal for pod in writes.removed.values() if type(pod) is Pod)
        new = [pod for pod in written if pod.ordinal in added] if added else []
        self.inserted[pods] += committed.rows(new)
        if len(new) < len(written):
            old = [pod for pod in written if pod.ordinal not in added] if new else written
            self.updated_pods += committed.rows(old)
        self.deleted[pods] += [(cluster_id, ordinal) for ordinal in sorted(gone)]

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

    def _add_decisions(self, cluster_id: int, writes: ClusterWrites) -> None:
        for record in writes.decisions:
            self.inserted[decisions].append(decision_row(cluster_id, record))
            assigned = assignment_row(cluster_id, record)
            if assigned is not None:
                self.inserted[assignments].append(assigned)


def _ordinals(changes: list[Change], wanted: EventType) -> set[int]:
    """Of the pods to which this happened."""
    return {pod.ordinal for event, pod, _ in changes if event is wanted and type(pod) is Pod}
