"""An engine in memory: stores, lists, watches and replays as the Protocol says, and schedules nothing by itself.

A test puts decisions and queue states into it, makes it refuse (`refusal`), or holds its calls back (`gate`).
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from muster.engine.api import (
    AppliedObject,
    ApplyAnswer,
    ApplyCall,
    Bound,
    ClusterSummary,
    DecisionBatch,
    DecisionFilter,
    DeleteAnswer,
    DeleteCall,
    DeleteOutcome,
    ExplainAnswer,
    ExplainCall,
    ListAnswer,
    ObjectFilter,
    PodReport,
    PositionedUnit,
    PreemptAnswer,
    PreemptCall,
    QueueAnswer,
    ReportAnswer,
    ReportCall,
    ReportOutcome,
    RequestIdentity,
    ScheduleAnswer,
    ScheduleCall,
    WatchBatch,
)
from muster.engine.aside import Question, Setting, TimeLimit
from muster.engine.cluster import Cluster
from muster.engine.errors import (
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    Precondition,
    ResourceExhaustedError,
)
from muster.engine.log_entries import Change, EventType
from muster.engine.ports import DecisionRecord, UnitState
from muster.engine.rerun import Rerun
from muster.model.meta import CLUSTER_SCOPED_KINDS, ObjectKey
from muster.model.names import DEFAULT_NAMESPACE
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.validation.admission import Outcome
from muster.validation.violations import Violation

WATCH_BUFFER = 100_000

Answer = TypeVar("Answer")


@dataclass
class FakeCluster:
    revision: int = 0
    compacted: int = 0
    objects: dict[ObjectKey, ClusterObject] = field(default_factory=dict)
    log: list[tuple[int, tuple[Change, ...]]] = field(default_factory=list)
    decisions: list[DecisionRecord] = field(default_factory=list)
    units: list[PositionedUnit] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def commit(self, changes: Sequence[Change]) -> None:
        self.revision += 1
        self.log.append((self.revision, tuple(changes)))
        self.notify()

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class FakeEngine:
    """Satisfies `SchedulingEngine`. `calls` counts by method; `in_work` and `most_in_work` count applies.
    `entered` can be acquired once for each call that came in."""

    def __init__(self) -> None:
        self.clusters: defaultdict[str, FakeCluster] = defaultdict(FakeCluster)
        self.clusters["default"].revision = 1
        self.refusal: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.calls: defaultdict[str, int] = defaultdict(int)
        self.in_work = 0
        self.most_in_work = 0
        self.entered = asyncio.Semaphore(0)
        self.drained = False
        self._kept: dict[tuple[str, str, str], tuple[bytes, bytes]] = {}

    def add_decision(self, record: DecisionRecord, cluster: str = "default") -> None:
        """Commits a decision as a revision of its own."""
        held = self.clusters[cluster]
        held.revision += 1
        held.decisions.append(replace(record, revision=held.revision))
        held.notify()

    async def find_replay(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        kept = self._kept.get((cluster, identity.method, identity.request_id))
        if kept is None:
            return None
        if kept[0] != identity.digest:
            raise InvalidArgumentError("REQUEST_ID_REUSED", "the request id was used for another request")
        return kept[1]

    async def apply(self, call: ApplyCall) -> ApplyAnswer:
        self.in_work += 1
        self.most_in_work = max(self.most_in_work, self.in_work)
        call.written()
        try:
            await self._enter("apply")
            return self._apply(call)
        finally:
            self.in_work -= 1

    def _apply(self, call: ApplyCall) -> ApplyAnswer:
        faults = [violation for refusal in call.refusals for violation in refusal.violations]
        faults += [
            Violation(f"{path}metadata.name", "INVALID", "no dots at the start")
            for path, each in zip(call.paths, call.objects, strict=True)
            if each is not None and not isinstance(each, PodBatch) and each.name.startswith(".")
        ]
        if faults:
            raise InvalidArgumentError("INVALID_OBJECTS", f"{len(faults)} faults", faults)
        cluster = self.clusters[call.cluster]
        changes: list[Change] = []
        results = [self._put(cluster, each, changes) for each in call.objects if each is not None]
        if changes and not call.validate_only:
            for change in changes:
                cluster.objects[change.object.key] = change.object
            cluster.commit(changes)
        answer = ApplyAnswer(cluster.revision, tuple(results))
        self._keep(call.cluster, call.identity, call.encode_answer and call.encode_answer(answer))
        return answer

    def _put(
        self, cluster: FakeCluster, given: ClusterObject | PodBatch, changes: list[Change]
    ) -> AppliedObject:
        if isinstance(given, PodBatch):
            pods = [replace(given.template, name=name) for name in given.names]
            outcomes = [self._put(cluster, pod, changes).outcome for pod in pods]
            created, updated = outcomes.count(Outcome.CREATED), outcomes.count(Outcome.UPDATED)
            return AppliedObject(
                outcomes[0], "", cluster.revision + 1, created, updated, len(pods) - created - updated
            )
        if given.key.kind not in CLUSTER_SCOPED_KINDS and not given.namespace:
            given = replace(given, namespace=DEFAULT_NAMESPACE)
        old = cluster.objects.get(given.key)
        if old is not None and given.resource_version not in (0, old.resource_version):
            stale = Precondition("RESOURCE_VERSION_MISMATCH", str(given.key), "it has moved on")
            raise ConflictError("RESOURCE_VERSION_MISMATCH", "an object has moved on", [stale])
        uid = old.uid if old is not None else given.uid or f"uid-{given.name}"
        version = cluster.revision + 1
        new = replace(given, uid=uid, resource_version=version)
        if old is not None and replace(new, resource_version=old.resource_version) == old:
            return AppliedObject(Outcome.UNCHANGED, uid, old.resource_version)
        kind = EventType.ADDED if old is None else EventType.MODIFIED
        changes.append(Change(kind, new))
        return AppliedObject(Outcome.CREATED if old is None else Outcome.UPDATED, uid, version)

    async def delete(self, call: DeleteCall) -> DeleteAnswer:
        await self._enter("delete")
        cluster = self._known(call.cluster)
        missing = [ref.key for ref in call.refs if ref.key not in cluster.objects]
        if missing and not call.allow_missing:
            resources = [(key.kind, f"{key.namespace}/{key.name}") for key in missing]
            raise NotFoundError("OBJECT_NOT_FOUND", f"{missing[0]} does not exist", resources)
        gone = [cluster.objects[ref.key] for ref in call.refs if ref.key not in missing]
        outcomes = [
            DeleteOutcome.MISSING if ref.key in missing else DeleteOutcome.DELETED for ref in call.refs
        ]
        if gone and not call.validate_only:
            for each in gone:
                del cluster.objects[each.key]
            cluster.commit([Change(EventType.DELETED, each) for each in gone])
        answer = DeleteAnswer(cluster.revision, tuple(outcomes))
        self._keep(call.cluster, call.identity, call.encode_answer and call.encode_answer(answer))
        return answer

    async def report_pods(self, call: ReportCall) -> ReportAnswer:
        await self._enter("report_pods")
        cluster = self._known(call.cluster)
        changes: list[Change] = []
        outcomes = [self._report(cluster, each, changes) for each in call.reports]
        if changes:
            cluster.commit(changes)
        answer = ReportAnswer(cluster.revision, tuple(outcomes))
        self._keep(call.cluster, call.identity, call.encode_answer and call.encode_answer(answer))
        return answer

    def _report(self, cluster: FakeCluster, report: PodReport, changes: list[Change]) -> ReportOutcome:
        key = ObjectKey("Pod", report.namespace, report.name)
        pod = cluster.objects.get(key)
        if not isinstance(pod, Pod):
            return ReportOutcome.UNKNOWN_POD
        if not isinstance(report.report, Bound):
            return ReportOutcome.INVALID
        cluster.objects[key] = replace(pod, node_name=report.report.node_name)
        changes.append(Change(EventType.MODIFIED, cluster.objects[key]))
        return ReportOutcome.ACCEPTED

    async def get(self, cluster: str, key: ObjectKey) -> tuple[ClusterObject, int]:
        await self._enter("get")
        held = self._known(cluster)
        if key not in held.objects:
            raise NotFoundError(
                "OBJECT_NOT_FOUND", f"{key} does not exist", [(key.kind, f"{key.namespace}/{key.name}")]
            )
        return held.objects[key], held.revision

    async def list_objects(self, cluster: str, selection: ObjectFilter) -> ListAnswer:
        await self._enter("list_objects")
        held = self._known(cluster)
        found = [each for each in held.objects.values() if _selected(selection, each)]
        return ListAnswer(held.revision, sorted(found, key=lambda each: (each.namespace, each.name)))

    async def watch(
        self, cluster: str, selection: ObjectFilter, from_revision: int | None
    ) -> AsyncIterator[WatchBatch]:
        await self._enter("watch")
        held = self._known(cluster)
        sent = held.revision if from_revision is None else from_revision
        if sent < held.compacted:
            raise OutOfRangeError("REVISION_COMPACTED", "compacted", oldest_revision=str(held.compacted))
        if sent > held.revision:
            raise OutOfRangeError("REVISION_IN_FUTURE", "future", current_revision=str(held.revision))
        if from_revision is None:
            present = [
                Change(EventType.ADDED, each) for each in held.objects.values() if _selected(selection, each)
            ]
            for batch in _batches(present, 0, sent, complete=True):
                yield batch
        while True:
            changed = held.changed
            for revision, changes in [entry for entry in held.log if entry[0] > sent]:
                wanted = [each for each in changes if _selected(selection, each.object)]
                for batch in _batches(wanted, sent, revision, complete=False):
                    yield batch
                sent = revision
                if len(held.log) > WATCH_BUFFER:
                    raise ResourceExhaustedError("WATCHER_TOO_SLOW", "too far behind")
            if held.revision > sent and not any(entry[0] > sent for entry in held.log):
                sent = held.revision
            await changed.wait()

    async def list_clusters(self) -> list[ClusterSummary]:
        await self._enter("list_clusters")
        return [
            ClusterSummary(name, held.revision, {"Pod": len(held.objects)} if held.objects else {})
            for name, held in self.clusters.items()
        ]

    async def delete_cluster(self, cluster: str, identity: RequestIdentity | None = None) -> DeleteOutcome:
        await self._enter("delete_cluster")
        self._known(cluster)
        del self.clusters[cluster]
        return DeleteOutcome.DELETED

    async def schedule(self, call: ScheduleCall) -> ScheduleAnswer:
        await self._enter("schedule")
        held = self._known(call.cluster)
        record = next((each for each in held.decisions if each.decision.unit == call.unit), None)
        queued = next((each for each in held.units if each.unit.key == call.unit), None)
        return ScheduleAnswer(record, fresh=record is not None, queue=queued)

    async def preempt(self, call: PreemptCall) -> PreemptAnswer:
        await self._enter("preempt")
        held = self._known(call.cluster)
        return PreemptAnswer(next(each for each in held.decisions if each.decision.unit == call.unit))

    async def aside(self, cluster: str | None, question: Question[Answer], limit: TimeLimit) -> Answer:
        """Answers about an empty cluster, here."""
        await self._enter("aside")
        if cluster is not None:
            self._known(cluster)
        return question(Cluster(cluster or "", 0, frozenset({""})), Setting({}, 0))

    async def explain(self, call: ExplainCall) -> ExplainAnswer:
        await self._enter("explain")
        held = self._known(call.cluster)
        queued = next((each for each in held.units if each.unit.key == call.unit), None)
        record = next((each for each in held.decisions if each.decision.unit == call.unit), None)
        if queued is None and record is None:
            raise NotFoundError("OBJECT_NOT_FOUND", f"{call.unit} does not exist", [("PodGroup", "")])
        result = record.decision.result if record is not None else None
        return ExplainAnswer(queued, record, result, (), held.revision)

    async def queue(self, cluster: str, states: frozenset[UnitState]) -> QueueAnswer:
        await self._enter("queue")
        held = self._known(cluster)
        counts: defaultdict[UnitState, int] = defaultdict(int)
        for each in held.units:
            counts[each.unit.state] += 1
        units = [each for each in held.units if not states or each.unit.state in states]
        return QueueAnswer(held.revision, units, dict(counts), [], [])

    async def decisions(
        self, cluster: str, from_revision: int | None, selection: DecisionFilter
    ) -> AsyncIterator[DecisionBatch]:
        await self._enter("decisions")
        held = self._known(cluster)
        sent = held.revision if from_revision is None else from_revision
        yield DecisionBatch((), sent)
        while True:
            changed = held.changed
            fresh = [each for each in held.decisions if each.revision > sent]
            wanted = tuple(each for each in fresh if _wanted(selection, each))
            sent = held.revision
            if wanted:
                yield DecisionBatch(wanted, sent)
            await changed.wait()

    async def get_decision(self, cluster: str, decision_id: str) -> DecisionRecord:
        await self._enter("get_decision")
        for each in self._known(cluster).decisions:
            if each.id == decision_id:
                return each
        raise NotFoundError(
            "DECISION_NOT_FOUND", f"there is no decision {decision_id}", [("Decision", decision_id)]
        )

    async def rerun(self, cluster: str, record: DecisionRecord) -> Rerun:
        await self._enter("rerun")
        self._known(cluster)
        return Rerun(not_possible="nothing is decided here")

    async def list_decisions(
        self, cluster: str, selection: DecisionFilter, before_revision: int | None, limit: int
    ) -> list[DecisionRecord]:
        await self._enter("list_decisions")
        newest_first = reversed(self._known(cluster).decisions)
        found = [
            each
            for each in newest_first
            if _wanted(selection, each) and (before_revision is None or each.revision < before_revision)
        ]
        return found[:limit]

    def profile_names(self) -> Sequence[str]:
        return ("default-scheduler",)

    async def drain(self) -> None:
        self.drained = True

    async def _enter(self, method: str) -> None:
        self.calls[method] += 1
        self.entered.release()
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal

    def _known(self, cluster: str) -> FakeCluster:
        if cluster not in self.clusters:
            raise NotFoundError("CLUSTER_NOT_FOUND", f"no cluster {cluster}", [("Cluster", cluster)])
        return self.clusters[cluster]

    def _keep(self, cluster: str, identity: RequestIdentity | None, answer: bytes | None) -> None:
        if identity is not None and answer is not None:
            self._kept[cluster, identity.method, identity.request_id] = (identity.digest, answer)


def _selected(selection: ObjectFilter, each: ClusterObject) -> bool:
    return (
        each.key.kind in selection.kinds
        and selection.namespace in ("", each.namespace)
        and (selection.matches_labels is None or selection.matches_labels(each.labels))
    )


def _wanted(selection: DecisionFilter, record: DecisionRecord) -> bool:
    decision = record.decision
    return selection.unit in (None, decision.unit) and (
        not selection.codes or decision.code.value in selection.codes
    )


def _batches(changes: list[Change], before: int, revision: int, *, complete: bool) -> list[WatchBatch]:
    """Batches of 200; only the last has the revision."""
    cut = [changes[start : start + 200] for start in range(0, len(changes), 200)] or (
        [[]] if complete else []
    )
    return [
        WatchBatch([kind for kind, *_ in each], [item for _, item, _ in each], at, complete and last)
        for index, each in enumerate(cut)
        for last in [index == len(cut) - 1]
        for at in [revision if last else before]
    ]
