"""`SqlStore`: the engine's store on SQLite or PostgreSQL.

Each method is one transaction. What is written is for one thread, the engine's writer; what is read for any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from muster.engine.log_entries import LogEntry
from muster.engine.ports import (
    ClusterWrites,
    DecisionRecord,
    FencedError,
    HistoryBounds,
    LoadedCluster,
    OldHistory,
    RequestRecord,
    StoreUnavailableError,
    UnusedValues,
)
from muster.model.meta import ObjectKey
from muster.store import compaction, leases
from muster.store.bulk import Claim
from muster.store.commit import CommitRows
from muster.store.database import Database, OutcomeUnknownError, backend_for
from muster.store.decisions import DecisionFilter, get_decision, list_decisions
from muster.store.loading import load_cluster
from muster.store.requests import find_request
from muster.store.revisions import read_log
from muster.store.rows import PodRows
from muster.store.tables import clusters


@dataclass(frozen=True, slots=True)
class _Known:
    """What the writer keeps of a cluster between commits."""

    id: int
    pod_rows: PodRows


@dataclass(frozen=True, slots=True)
class _Sent:
    """A commit without an answer: the owner's token, and the count by which it is found."""

    token: int
    commits: int


class SqlStore:
    """Implements `engine.ports.Store`."""

    def __init__(self, url: str) -> None:
        self._database = Database(backend_for(url))
        self._known: dict[str, _Known] = {}
        self._unsettled: dict[str, _Sent] = {}

    def open(self) -> None:
        self._database.open()

    def close(self) -> None:
        self._known.clear()
        self._database.close()

    def acquire(self, cluster: str) -> int:
        return self.acquire_all([cluster])[cluster]

    def acquire_all(self, wanted: Sequence[str]) -> dict[str, int]:
        with self._database.write() as connection:
            tokens = leases.acquire(connection, self._database.bulk, wanted)
        for cluster in wanted:
            self._known.pop(cluster, None)
            self._unsettled.pop(cluster, None)
        return tokens

    def commit(self, writes: Sequence[ClusterWrites]) -> None:
        """All of it in one transaction, durable on return.

        Where the connection fails while committing, what became of it is read from the owner's lease. If that
        cannot be read either, StoreUnavailableError is raised, and should it turn out later that the commit had
        happened, the cluster's next one raises FencedError.
        """
        sent: dict[str, _Sent] = {}
        try:
            with self._database.write() as connection:
                self._write(connection, writes, sent)
        except BaseException as error:
            self._known.clear()
            if isinstance(error, OutcomeUnknownError):
                self._settle(sent)
                return
            if isinstance(error, IntegrityError):
                raise FencedError(
                    "the store holds other rows than the writer believes: load it again"
                ) from error
            raise
        for cluster in sent:
            self._known[cluster].pod_rows.trim()

    def _write(self, connection: Connection, writes: Sequence[ClusterWrites], sent: dict[str, _Sent]) -> None:
        bulk = self._database.bulk
        for part in _each_cluster_once(writes):
            for one in part:
                self._check_settled(connection, one.cluster)
            claims = [Claim(one.cluster, one.token, one.revision) for one in part]
            claimed = bulk.claim(connection, claims)
            batch = CommitRows()
            for one in part:
                held = claimed.get(one.cluster)
                if held is None:
                    raise leases.other_owner(one.cluster, one.token)
                sent[one.cluster] = _Sent(one.token, held.commits)
                known = self._known_cluster(connection, one, held.cluster_id)
                batch.add(connection, known.id, one, known.pod_rows)
            batch.run(connection, bulk)

    def _known_cluster(self, connection: Connection, writes: ClusterWrites, cluster_id: int | None) -> _Known:
        """What is known of the cluster, which is made if the writes say so."""
        if writes.created:
            cluster_id = _create(connection, writes)
        elif cluster_id is None:
            raise FencedError(
                f"cluster {writes.cluster!r} is gone or beyond revision {writes.revision}: load it again"
            )
        known = self._known.get(writes.cluster)
        if known is None or known.id != cluster_id:
            known = self._known[writes.cluster] = _Known(cluster_id, PodRows(connection, cluster_id))
        return known

    def _settle(self, sent: dict[str, _Sent]) -> None:
        """Find out whether a commit without an answer happened; raise StoreUnavailableError if not, or if unknown."""
        try:
            with self._database.write() as connection:
                happened = all(
                    leases.is_committed(connection, cluster, one.token, one.commits)
                    for cluster, one in sent.items()
                )
        except StoreUnavailableError:
            self._unsettled.update(sent)
            raise
        if not happened:
            raise StoreUnavailableError("the connection failed before the transaction was committed")

    def _check_settled(self, connection: Connection, cluster: str) -> None:
        one = self._unsettled.get(cluster)
        if one is None:
            return
        if leases.is_committed(connection, cluster, one.token, one.commits):
            raise FencedError(
                f"a commit to {cluster!r} that got no answer had happened: load the cluster again"
            )
        del self._unsettled[cluster]

    def delete_cluster(self, cluster: str, token: int) -> None:
        with self._database.write() as connection:
            leases.fence(connection, cluster, token)
            cluster_id = _id_of(connection, cluster)
            if cluster_id is not None:
                compaction.forget_cluster(connection, cluster_id)
        self._known.pop(cluster, None)

    def find_old(self, cluster: str, bounds: HistoryBounds) -> OldHistory | None:
        """What is beyond the bounds at the moment; takes its time, and holds up no commit."""
        with self._database.read() as connection:
            cluster_id = _id_of(connection, cluster)
            return None if cluster_id is None else compaction.find_old(connection, cluster_id, bounds)

    def forget_old(self, cluster: str, token: int, old: OldHistory) -> OldHistory | None:
        """Delete some of the history in one transaction; what is left. Raises FencedError."""
        with self._database.write() as connection:
            leases.fence(connection, cluster, token)
            cluster_id = _id_of(connection, cluster)
            return None if cluster_id is None else compaction.forget_old(connection, cluster_id, old)

    def find_unused(self, cluster: str) -> UnusedValues | None:
        """The shared values that nothing refers to at the moment; takes its time, and holds up no commit."""
        with self._database.read() as connection:
            cluster_id = _id_of(connection, cluster)
        return None if cluster_id is None else compaction.find_unused(self._database, cluster_id)

    def forget_unused(self, cluster: str, token: int, unused: UnusedValues) -> UnusedValues | None:
        """Delete some of these values that still are unused, in one transaction; what is left. Raises FencedError."""
        # The ids of values that are gone must not be used again; after an error it is not known which they are.
        known = self._known.pop(cluster, None)
        with self._database.write() as connection:
            leases.fence(connection, cluster, token)
            cluster_id = _id_of(connection, cluster)
            if cluster_id is None:
                return None
            left, table, gone = compaction.forget_unused(connection, self._database.bulk, cluster_id, unused)
        if known is not None:
            known.pod_rows.forget(table, gone)
            self._known[cluster] = known
        return left

    def list_clusters(self) -> list[str]:
        with self._database.read() as connection:
            return list(connection.execute(select(clusters.c.name).order_by(clusters.c.name)).scalars())

    def load_cluster(self, cluster: str) -> LoadedCluster:
        """All of a cluster in one snapshot; empty and at revision 0 if there is no such cluster."""
        with self._database.read() as connection:
            return load_cluster(connection, cluster)

    def read_log(self, cluster: str, after_revision: int, limit: int) -> list[LogEntry]:
        with self._database.read() as connection:
            cluster_id = _id_of(connection, cluster)
            return [] if cluster_id is None else read_log(connection, cluster_id, after_revision, limit)

    def compacted_revision(self, cluster: str) -> int:
        with self._database.read() as connection:
            query = select(clusters.c.compacted_revision).where(clusters.c.name == cluster)
            return connection.execute(query).scalar_one_or_none() or 0

    def find_request(self, cluster: str, method: str, request_id: str) -> RequestRecord | None:
        with self._database.read() as connection:
            return find_request(connection, cluster, method, request_id)

    def get_decision(self, cluster: str, decision_id: str) -> DecisionRecord | None:
        with self._database.read() as connection:
            cluster_id = _id_of(connection, cluster)
            return None if cluster_id is None else get_decision(connection, cluster_id, decision_id)

    def list_decisions(  # noqa: PLR0913 - the port's filters, each of them optional
        self,
        cluster: str,
        *,
        unit: ObjectKey | None = None,
        codes: Iterable[str] = (),
        from_us: int | None = None,
        to_us: int | None = None,
        before_revision: int | None = None,
        after_revision: int | None = None,
        limit: int = 500,
    ) -> list[DecisionRecord]:
        """Newest first, ascending when `after_revision` is given; times from `from_us` to before `to_us`."""
        wanted = DecisionFilter(unit, tuple(codes), from_us, to_us, before_revision, after_revision)
        with self._database.read() as connection:
            cluster_id = _id_of(connection, cluster)
            return [] if cluster_id is None else list_decisions(connection, cluster_id, wanted, limit)


def open_store(url: str) -> SqlStore:
    """A store that is open. Raises ValueError, ForeignStoreError, StoreUnavailableError."""
    store = SqlStore(url)
    store.open()
    return store


def _id_of(connection: Connection, cluster: str) -> int | None:
    return connection.execute(select(clusters.c.id).where(clusters.c.name == cluster)).scalar_one_or_none()


def _create(connection: Connection, writes: ClusterWrites) -> int:
    cluster_id = (connection.execute(select(func.max(clusters.c.id))).scalar_one() or 0) + 1
    row = {"id": cluster_id, "name": writes.cluster, "revision": writes.revision, "compacted_revision": 0}
    connection.execute(insert(clusters).values(row))
    return cluster_id


def _each_cluster_once(writes: Sequence[ClusterWrites]) -> Iterator[list[ClusterWrites]]:
    """The writes in their order, in parts that name no cluster twice."""
    part: dict[str, ClusterWrites] = {}
    for one in writes:
        if one.cluster in part:
            yield list(part.values())
            part = {}
        part[one.cluster] = one
    yield list(part.values())
