"""What the engine needs from the outside: a store, a clock, ids. The values that cross are defined here too.

The store is synchronous: the engine calls `commit` from its one writer thread and reads from reader threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from muster.core.decision import Decision
from muster.engine.log_entries import LogEntry
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject


class UnitState(IntEnum):
    """State of a queued unit (semantics 4). IN_FLIGHT lives in memory alone: a restart finds the unit ACTIVE."""

    PENDING = 1
    GATED = 2
    ACTIVE = 3
    BACKOFF = 4
    UNSCHEDULABLE = 5
    IN_FLIGHT = 6
    WAITING_FOR_PREEMPTION = 7


@dataclass(frozen=True, slots=True)
class QueuedUnit:
    """One row of the queue.

    priority: number of the whole tree. since_us: when the unit got its first pending pod. attempts: failures in a row.
    not_before_us: end of the backoff (0: none). last_attempt_us: 0 before the first. reasons: codes of the last failure.
    """

    key: ObjectKey
    state: UnitState
    priority: int = 0
    since_us: int = 0
    attempts: int = 0
    not_before_us: int = 0
    last_attempt_us: int = 0
    reasons: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """A group whose root has not been seen; `missing` is the ancestor that is not there (or the cycle's own key)."""

    key: ObjectKey
    missing: ObjectKey


@dataclass(frozen=True, slots=True)
class PendingMember:
    """A pod whose group or root has not been seen."""

    key: ObjectKey
    missing: ObjectKey


@dataclass(frozen=True, slots=True)
class PreemptionWait:
    """What a unit that preempts waits for. Where its pods are nominated is in their status.

    pods: ordinals of pods that are to leave: victims, and those that were leaving already and whose room it will use.
    until_us: when it gives up those that have not left. stayed: ordinals of pods that it gave up before; they are in
    the way for as long as they run.
    """

    key: ObjectKey
    pods: tuple[int, ...] = ()
    until_us: int = 0
    stayed: tuple[int, ...] = ()


class FailedBinding(NamedTuple):
    """A node that is left out for a pod, by ordinal, until a time, because the pod's binding there failed."""

    pod: int
    node_name: str
    until_us: int


@dataclass(frozen=True, slots=True)
class AssignmentColumns:
    """Assignments with names, as the API gives them; node_index[i] is pod i's place in `nodes`."""

    namespace: str = ""
    nodes: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    node_index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DisruptedPods:
    """Pods of the disruption units that a preemption weighed, in columns: by ordinal, what they are called and where they run.

    grace_seconds: from the deletion mark to the removal.
    """

    ordinals: tuple[int, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    grace_seconds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """What a decision was made on beside the objects as they were at its snapshot's revision.

    digest: of all that decides, 32 hexadecimal digits; "" where no cycle decided. budget_share: how much of the search
    budget the unit could spend, a fraction. excluded: by ordinal, nodes on which a binding of the pod had failed.
    awaited, stayed: ordinals of pods that an earlier preemption waited for, and of those that it had given up.
    reserved: room of another unit that this one might not use: a pod of each kind by ordinal, a node, how many of them.
    """

    digest: str = ""
    budget_share: str = "1"
    excluded: dict[int, tuple[str, ...]] = field(default_factory=dict)
    awaited: tuple[int, ...] = ()
    stayed: tuple[int, ...] = ()
    reserved: tuple[tuple[int, str, int], ...] = ()


NO_INPUT = DecisionInput()


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A committed decision, as GetDecision returns it. `trace_id` and times are outside what determinism compares.

    nominations, disrupted: the preemption's with names; empty without one.
    """

    id: str
    revision: int
    snapshot_revision: int
    decision: Decision
    assignments: AssignmentColumns = AssignmentColumns()
    trace_id: str = ""
    profile: str = ""
    create_us: int = 0
    duration_us: int = 0
    nominations: AssignmentColumns = AssignmentColumns()
    disrupted: DisruptedPods = DisruptedPods()
    input: DecisionInput = NO_INPUT


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A success kept for replay: the same id with another digest is refused, with the same digest answered by `response`."""

    method: str
    request_id: str
    digest: bytes
    response: bytes
    time_us: int


@dataclass(slots=True)
class ClusterWrites:
    """What one transaction changes in one cluster; it may span several revisions, `entries` has one for each.

    `puts` holds the final state of every object written, `removed` what goes first: an object that is deleted and made
    again in one transaction is in both, with different ordinals.
    `token` is the fencing token: the transaction fails if another owner has taken the cluster.
    """

    cluster: str
    token: int
    revision: int
    created: bool = False
    puts: dict[ObjectKey, ClusterObject] = field(default_factory=dict)
    removed: dict[ObjectKey, ClusterObject] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    unit_puts: dict[ObjectKey, QueuedUnit] = field(default_factory=dict)
    unit_removals: set[ObjectKey] = field(default_factory=set)
    pending_group_puts: dict[ObjectKey, PendingGroup] = field(default_factory=dict)
    pending_group_removals: set[ObjectKey] = field(default_factory=set)
    pending_member_puts: dict[ObjectKey, PendingMember] = field(default_factory=dict)
    pending_member_removals: set[ObjectKey] = field(default_factory=set)
    wait_puts: dict[ObjectKey, PreemptionWait] = field(default_factory=dict)
    wait_removals: set[ObjectKey] = field(default_factory=set)
    failed_binding_puts: dict[tuple[int, str], FailedBinding] = field(default_factory=dict)
    failed_binding_removals: set[tuple[int, str]] = field(default_factory=set)
    decisions: list[DecisionRecord] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)


@dataclass(slots=True)
class LoadedCluster:
    """Everything of one cluster that a restart needs. Pods that share a value share it by reference again."""

    name: str
    revision: int
    compacted_revision: int
    objects: list[ClusterObject]
    units: list[QueuedUnit]
    pending_groups: list[PendingGroup]
    pending_members: list[PendingMember]
    waits: list[PreemptionWait] = field(default_factory=list)
    failed_bindings: list[FailedBinding] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBounds:
    """What of a cluster's history is to be forgotten: all of before these times, in microseconds.

    log_before_revision: log entries below it as well. most_decisions: all decisions but the newest so many; None: no more.
    """

    log_before_us: int = 0
    requests_before_us: int = 0
    decisions_before_us: int = 0
    log_before_revision: int = 0
    most_decisions: int | None = None


@dataclass(frozen=True, slots=True)
class OldHistory:
    """What was found beyond the bounds of a cluster's history.

    log_after, log_to: all entries behind the one revision and up to the other. decisions_before: ascending revisions,
    before each of which some decisions are. requests: method and id of some that were answered before that time.
    """

    log_after: int = 0
    log_to: int = 0
    decisions_before: tuple[int, ...] = ()
    requests_before_us: int = 0
    requests: tuple[tuple[str, str], ...] = ()


StoredValue = tuple[int, bytes]
"""Id and digest."""


@dataclass(frozen=True, slots=True)
class UnusedValues:
    """Values that pods share, which nothing of a cluster referred to when they were looked for.

    used: ids of those, kind by kind, that something has come to refer to up to this revision.
    """

    revision: int
    specs: tuple[StoredValue, ...] = ()
    metadata: tuple[StoredValue, ...] = ()
    statuses: tuple[StoredValue, ...] = ()
    used: tuple[frozenset[int], frozenset[int], frozenset[int]] = (frozenset(), frozenset(), frozenset())


class FencedError(Exception):
    """Another process owns the store or the cluster now: stop, drop what was assumed, load again."""


class StoreUnavailableError(Exception):
    """The store did not take the transaction (full disk, lost connection); nothing of it was written."""


class ForeignStoreError(Exception):
    """The database is not Muster's, or of a newer version than this one knows."""


class Store(Protocol):
    """A durable store. All methods may raise StoreUnavailableError."""

    def open(self) -> None:
        """Connect, migrate to the newest schema, take the owner's lock. Raises ForeignStoreError."""
        ...

    def close(self) -> None: ...

    def acquire(self, cluster: str) -> int:
        """Become the owner of the cluster: raise its fencing token by one and return it."""
        ...

    def acquire_all(self, wanted: Sequence[str]) -> dict[str, int]:
        """As `acquire` for each of these clusters, in one transaction; their tokens."""
        ...

    def list_clusters(self) -> list[str]: ...

    def load_cluster(self, cluster: str) -> LoadedCluster: ...

    def delete_cluster(self, cluster: str, token: int) -> None: ...

    def commit(self, writes: Sequence[ClusterWrites]) -> None:
        """All of it in one transaction, durable on return. Raises FencedError, StoreUnavailableError."""
        ...

    def read_log(self, cluster: str, after_revision: int, limit: int) -> list[LogEntry]:
        """Entries with a greater revision, ascending, at most `limit`; the caller has checked compaction."""
        ...

    def compacted_revision(self, cluster: str) -> int:
        """The newest revision whose entry is gone (0: none is)."""
        ...

    def find_old(self, cluster: str, bounds: HistoryBounds) -> OldHistory | None:
        """The log entries, requests and decisions beyond the bounds, for `forget_old`. For any thread: it may take its time."""
        ...

    def forget_old(self, cluster: str, token: int, old: OldHistory) -> OldHistory | None:
        """Forget some of them; what is left, if anything. Raises FencedError."""
        ...

    def find_unused(self, cluster: str) -> UnusedValues | None:
        """The shared values that nothing uses any more, for `forget_unused`. For any thread: it may take its time."""
        ...

    def forget_unused(self, cluster: str, token: int, unused: UnusedValues) -> UnusedValues | None:
        """Forget some of them that are not used again; what is left, if anything. Raises FencedError."""
        ...

    def find_request(self, cluster: str, method: str, request_id: str) -> RequestRecord | None: ...

    def get_decision(self, cluster: str, decision_id: str) -> DecisionRecord | None: ...

    def list_decisions(  # noqa: PLR0913 - one argument a filter
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
        """Newest first (ascending when `after_revision` is given)."""
        ...


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for durations."""

    def now_us(self) -> int: ...

    def monotonic(self) -> float: ...


class Ids(Protocol):
    """Makes uids and decision ids."""

    def uid(self) -> str: ...

    def uids(self, count: int) -> Sequence[str]:
        """As many as asked for."""
        ...
