"""What the engine offers to the RPC layer: values and the `SchedulingEngine` Protocol.

All methods run on the event loop's thread and may raise the refusals of `engine.errors`. An acknowledged write is
durable when its coroutine returns. A read sees all writes acknowledged before it, and answers only once everything
that it saw is durable: that is why reads are coroutines too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from muster.core.decision import GroupResult, Reason
from muster.core.explain.explanation import Help
from muster.engine.aside import Question, TimeLimit
from muster.engine.log_entries import EventType
from muster.engine.pod_runs import LikePods
from muster.engine.ports import DecisionRecord, PendingGroup, PendingMember, QueuedUnit, UnitState
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import PodBatch
from muster.validation.admission import Outcome
from muster.validation.violations import Violation

if TYPE_CHECKING:
    from muster.engine.rerun import Rerun

Answer = TypeVar("Answer")


class DeleteOutcome(Enum):
    """What Delete did for one ref: gone, marked (goes later), or was not there (allow_missing)."""

    DELETED = "DELETED"
    MARKED = "MARKED"
    MISSING = "MISSING"


class ReportOutcome(Enum):
    """What ReportPods did with one report."""

    ACCEPTED = "ACCEPTED"
    UNCHANGED = "UNCHANGED"
    STALE = "STALE"
    UNKNOWN_POD = "UNKNOWN_POD"
    INVALID = "INVALID"


class Propagation(Enum):
    """What a Delete does with what the object owns."""

    BACKGROUND = "BACKGROUND"
    FOREGROUND = "FOREGROUND"
    ORPHAN = "ORPHAN"


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """For replay of a lost answer: `digest` is of the whole request without its id, `method` the RPC's name."""

    method: str
    request_id: str
    digest: bytes


class AppliedObject(NamedTuple):
    """Result of one object of an Apply, in request order. A PodBatch has the counts, its outcome is the strongest one."""

    outcome: Outcome
    uid: str
    resource_version: int
    created: int = 0
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class ApplyAnswer:
    revision: int
    results: tuple[AppliedObject, ...]


@dataclass(frozen=True, slots=True)
class ObjectRefusal:
    """What decoding found wrong with the object at `index` of a request (full JSON paths); joined to the engine's faults."""

    index: int
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class ApplyCall:
    """`objects[i]` is None where decoding refused it. `paths[i]` is the JSON prefix of object i (`objects[3].podGroup.`).

    `runs`: see `pod_runs`. `encode_answer` makes the bytes kept for a replay of the request (None: no request id).
    `written` is called once the revision stands in memory: another call that comes then is behind it.
    """

    cluster: str
    objects: Sequence[ClusterObject | PodBatch | None]
    paths: Sequence[str]
    refusals: Sequence[ObjectRefusal] = ()
    validate_only: bool = False
    identity: RequestIdentity | None = None
    encode_answer: Callable[[ApplyAnswer], bytes] | None = None
    runs: Sequence[LikePods] = ()
    written: Callable[[], None] = lambda: None


class DeleteRef(NamedTuple):
    """`kind` in canonical spelling; `uid` "" and `resource_version` 0 are no precondition."""

    key: ObjectKey
    uid: str = ""
    resource_version: int = 0


@dataclass(frozen=True, slots=True)
class DeleteCall:
    cluster: str
    refs: Sequence[DeleteRef]
    propagation: Propagation = Propagation.BACKGROUND
    allow_missing: bool = False
    force: bool = False
    grace_period_seconds: int | None = None
    validate_only: bool = False
    identity: RequestIdentity | None = None
    encode_answer: Callable[[DeleteAnswer], bytes] | None = None


@dataclass(frozen=True, slots=True)
class DeleteAnswer:
    revision: int
    outcomes: tuple[DeleteOutcome, ...]


class Bound(NamedTuple):
    """A fact from outside: the pod runs there; it wins."""

    node_name: str


class BindingFailed(NamedTuple):
    """The backend could not bind: the pod is pending again and that node is left out for it for a while."""

    node_name: str
    reason: str
    message: str


class PhaseChanged(NamedTuple):
    """Never backwards; `start_us` None leaves the start time as it is."""

    phase: str
    reason: str
    message: str
    start_us: int | None = None


class Removed(NamedTuple):
    """The pod is gone from its node; the object goes too."""


@dataclass(frozen=True, slots=True)
class PodReport:
    """`report` None: the request named none (INVALID)."""

    namespace: str
    name: str
    uid: str
    report: Bound | BindingFailed | PhaseChanged | Removed | None


@dataclass(frozen=True, slots=True)
class ReportCall:
    cluster: str
    reports: Sequence[PodReport]
    identity: RequestIdentity | None = None
    encode_answer: Callable[[ReportAnswer], bytes] | None = None


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    revision: int
    outcomes: tuple[ReportOutcome, ...]


@dataclass(frozen=True, slots=True)
class ObjectFilter:
    """What List and Watch select. `matches_labels` is a compiled label selector (None: all).

    `group` selects the pods and groups of that group's subtree, the group included. `unbound`: pods without a node.
    """

    kinds: frozenset[str]
    namespace: str = ""
    matches_labels: Callable[[dict[str, str]], bool] | None = None
    node_name: str = ""
    unbound: bool = False
    deleting: bool = False
    group: ObjectKey | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """All matching objects by (namespace, name) at one revision; pages are the RPC layer's to cut and to keep."""

    revision: int
    objects: list[ClusterObject]


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """`types`: what became of each of the `objects`; `revision`: all that matches up to it has been sent with this batch.

    `initial_state_complete` is set on the batch that ends the present state (ADDED). A bookmark has no objects.
    """

    types: Sequence[EventType]
    objects: Sequence[ClusterObject]
    revision: int
    initial_state_complete: bool = False


@dataclass(frozen=True, slots=True)
class PositionedUnit:
    """A queued unit, its place among the active ones (1 is next; 0: none), pods without a node, room that is reserved."""

    unit: QueuedUnit
    position: int
    pending_pods: int = 0
    reserved: Reason | None = None


@dataclass(frozen=True, slots=True)
class ScheduleCall:
    """`unit` may be any object of a unit. `wait_seconds` None: the first cycle is waited for, no later one."""

    cluster: str
    unit: ObjectKey
    validate_only: bool = False
    wait_seconds: float | None = None
    identity: RequestIdentity | None = None
    encode_answer: Callable[[ScheduleAnswer], bytes] | None = None


@dataclass(frozen=True, slots=True)
class ScheduleAnswer:
    """`decision` None: nothing was ever decided for the unit (`queue` says why)."""

    decision: DecisionRecord | None
    fresh: bool
    queue: PositionedUnit | None


@dataclass(frozen=True, slots=True)
class PreemptCall:
    """`unit` may be any object of a unit."""

    cluster: str
    unit: ObjectKey
    validate_only: bool = False
    identity: RequestIdentity | None = None
    encode_answer: Callable[[PreemptAnswer], bytes] | None = None


@dataclass(frozen=True, slots=True)
class PreemptAnswer:
    """`not_possible`: the rule that kept preemption from being tried; "" if it was, or none is needed."""

    decision: DecisionRecord
    not_possible: str = ""


@dataclass(frozen=True, slots=True)
class ExplainCall:
    """`unit` may be any object of a unit. `what_would_help`: also try which changes would let it be scheduled."""

    cluster: str
    unit: ObjectKey
    what_would_help: bool = False


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """Where the unit is in the queue now (None: it is not), its last decision (None: there was none), and why.

    result: of every group, on the state of `revision`; None if the unit was gone by then. helps: the smallest first.
    """

    queue: PositionedUnit | None
    last_decision: DecisionRecord | None
    result: GroupResult | None
    helps: tuple[Help, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queue in its order at `revision`."""

    revision: int
    units: list[PositionedUnit]
    counts: dict[UnitState, int]
    pending_groups: list[PendingGroup]
    pending_members: list[PendingMember]


@dataclass(frozen=True, slots=True)
class DecisionBatch:
    decisions: tuple[DecisionRecord, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    unit: ObjectKey | None = None
    codes: frozenset[str] = frozenset()
    from_us: int | None = None
    to_us: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    name: str
    revision: int
    counts: dict[str, int] = field(default_factory=dict)


class SchedulingEngine(Protocol):
    """The whole service behind the RPC layer. Empty cluster names have become "default" before they get here."""

    async def find_replay(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        """The kept answer of the same request, None if new; waits for a first one in work. Raises InvalidArgumentError REQUEST_ID_REUSED."""
        ...

    async def apply(self, call: ApplyCall) -> ApplyAnswer: ...

    async def delete(self, call: DeleteCall) -> DeleteAnswer: ...

    async def report_pods(self, call: ReportCall) -> ReportAnswer: ...

    async def get(self, cluster: str, key: ObjectKey) -> tuple[ClusterObject, int]:
        """The object and the revision at which it was read. Raises NotFoundError."""
        ...

    async def list_objects(self, cluster: str, selection: ObjectFilter) -> ListAnswer: ...

    def watch(
        self, cluster: str, selection: ObjectFilter, from_revision: int | None
    ) -> AsyncIterator[WatchBatch]:
        """Batches of at most 200 changes. Raises OutOfRangeError, ResourceExhaustedError (WATCHER_TOO_SLOW)."""
        ...

    async def list_clusters(self) -> list[ClusterSummary]: ...

    async def delete_cluster(self, cluster: str, identity: RequestIdentity | None = None) -> DeleteOutcome:
        """DELETED, or MARKED while another call deletes it. Repeats are known until the process ends: the cluster keeps none."""
        ...

    async def schedule(self, call: ScheduleCall) -> ScheduleAnswer: ...

    async def preempt(self, call: PreemptCall) -> PreemptAnswer: ...

    async def explain(self, call: ExplainCall) -> ExplainAnswer: ...

    async def aside(self, cluster: str | None, question: Question[Answer], limit: TimeLimit) -> Answer:
        """What the question answers on a copy of the cluster, of an empty one for None; in a process of low priority.

        The question and its answer can be pickled, and `OutOfTimeError` is raised in it at the end of its time. Raises
        what it raises of `Refusal`s, SideWorkerFailedError, ResourceExhaustedError.
        """
        ...

    async def queue(self, cluster: str, states: frozenset[UnitState]) -> QueueAnswer: ...

    def decisions(
        self, cluster: str, from_revision: int | None, selection: DecisionFilter
    ) -> AsyncIterator[DecisionBatch]: ...

    async def get_decision(self, cluster: str, decision_id: str) -> DecisionRecord: ...

    async def rerun(self, cluster: str, record: DecisionRecord) -> Rerun:
        """The recorded decision made again from the same input, aside. Raises as `aside`."""
        ...

    async def list_decisions(
        self, cluster: str, selection: DecisionFilter, before_revision: int | None, limit: int
    ) -> list[DecisionRecord]:
        """Newest first, those with a smaller revision than `before_revision`; any member may stand for the unit."""
        ...

    def profile_names(self) -> Sequence[str]: ...

    async def drain(self) -> None:
        """Finish what is in work, take nothing new, end all watches, close the store."""
        ...
