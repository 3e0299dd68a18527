"""The whole service behind the RPC layer: clusters by name, one writer, one worker pool (architecture.md).

Decides what is loaded, created and given up, and how a call becomes one revision; what a revision entails is
`mutation`'s, what a cycle decides is the core's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from muster.core.framework import Profile
from muster.engine import scheduling
from muster.engine.api import (
    ApplyAnswer,
    ApplyCall,
    ClusterSummary,
    DecisionBatch,
    DecisionFilter,
    DeleteAnswer,
    DeleteCall,
    ListAnswer,
    ObjectFilter,
    PositionedUnit,
    QueueAnswer,
    ReportAnswer,
    ReportCall,
    RequestIdentity,
    ScheduleAnswer,
    WatchBatch,
)
from muster.engine.applying import ApplyPlan, answer_of, stateless_faults
from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.cycle import CycleTools
from muster.engine.deletion import delete
from muster.engine.errors import FailedPreconditionError, NotFoundError, OutOfRangeError, UnavailableError
from muster.engine.mutation import Mutation
from muster.engine.ports import (
    Change,
    Clock,
    ClusterWrites,
    DecisionRecord,
    EventType,
    Ids,
    LogEntry,
    RequestRecord,
    Store,
    StoreUnavailableError,
    UnitState,
)
from muster.engine.reports import report
from muster.engine.request_log import RequestLog
from muster.engine.selection import matcher, select
from muster.engine.telemetry_port import EngineTelemetry
from muster.engine.watch_hub import DecisionFeed, RevisionFeed
from muster.engine.worker_pool import WorkerPool
from muster.engine.writer import Writer
from muster.model.meta import KINDS, ObjectKey
from muster.model.objects import ClusterObject
from muster.validation.violations import Violation

_LOG = logging.getLogger(__name__)
DEFAULT_CLUSTER = "default"
WATCH_BATCH = 200
RELOAD_PAUSE_SECONDS = 0.5

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How this process runs. Retentions in seconds, but for `log_revisions`."""

    clients_evict: bool = False
    workers: int = 1
    log_seconds: int = 3_600
    log_revisions: int = 100_000
    decision_seconds: int = 7 * 86_400
    request_seconds: int = 86_400
    compaction_seconds: float = 30.0


class Engine:
    """Implements `engine.api.SchedulingEngine`. `profiles` by scheduler name, the first is the default one."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        profiles: Mapping[str, Profile],
        telemetry: EngineTelemetry,
        options: EngineOptions,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._profiles = dict(profiles)
        self._names = frozenset(profiles) | {""}
        self._telemetry = telemetry
        self._options = options
        self._services: dict[str, ClusterService] = {}
        self._creating = asyncio.Lock()
        self._requests = RequestLog(self._look_up_request)
        self._pool = WorkerPool(options.workers, on_restart=telemetry.worker_restarted)
        self._writer = Writer(store, clock, telemetry, self._publish, self._reload)
        self._tools = CycleTools(clock, self._profiles, self._pool, self._writer, telemetry)
        self._compacting: asyncio.Task[None] | None = None
        self._reloading: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open the store, take over its clusters, begin to schedule. Raises ForeignStoreError, StoreUnavailableError."""
        await self._writer.run_apart(self._store.open)
        self._writer.start()
        names = await asyncio.to_thread(self._store.list_clusters)
        for name in dict.fromkeys([*names, DEFAULT_CLUSTER]):
            self._take_up(await self._load(name, created=name not in names))
        self._compacting = asyncio.create_task(self._compact_for_ever(), name="compaction")

    async def drain(self) -> None:
        """Finish what is in work, end all watches, close the store."""
        if self._compacting is not None:
            self._compacting.cancel()
        for service in self._services.values():
            ending = UnavailableError("SERVER_DRAINING", "the server is shutting down")
            service.revisions.fail(ending)
            service.decisions.fail(ending)
            await service.stop()
            self._writer.schedule(service.cluster)
        await self._writer.close()
        await self._pool.close()
        await asyncio.to_thread(self._store.close)

    async def find_replay(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        return await self._requests.find(cluster, identity) if cluster in self._services else None

    async def apply(self, call: ApplyCall) -> ApplyAnswer:
        faults = await stateless_faults(call)

        async def work() -> ApplyAnswer:
            service = self._services.get(call.cluster)
            if service is None:
                self._try_on_nothing(call, faults)
                if call.validate_only:
                    return self._try_on_nothing(call, faults)
                service = await self._create(call.cluster)
            return await self._written(
                service,
                lambda mutation: self._apply(mutation, call, faults),
                None if call.validate_only else call.identity,
                call.encode_answer,
            )

        return await self._requests.once(
            call.cluster, None if call.validate_only else call.identity, call.encode_answer, work
        )

    async def delete(self, call: DeleteCall) -> DeleteAnswer:
        service = self._service(call.cluster)

        def step(mutation: Mutation) -> tuple[DeleteAnswer, bool]:
            outcomes = delete(mutation, call, clients_evict=self._options.clients_evict)
            writes = not call.validate_only and bool(mutation.edits)
            revision = mutation.revision if writes else mutation.state.revision
            return DeleteAnswer(revision, outcomes), writes

        identity = None if call.validate_only else call.identity
        return await self._once(service, step, identity, call.encode_answer)

    async def report_pods(self, call: ReportCall) -> ReportAnswer:
        service = self._service(call.cluster)

        def step(mutation: Mutation) -> tuple[ReportAnswer, bool]:
            outcomes = report(mutation, call)
            writes = bool(mutation.edits)
            return ReportAnswer(mutation.revision if writes else mutation.state.revision, outcomes), writes

        return await self._once(service, step, call.identity, call.encode_answer)

    async def get(self, cluster: str, key: ObjectKey) -> tuple[ClusterObject, int]:
        service = self._service(cluster)
        found, revision = service.cluster.state.get(key), service.cluster.state.revision
        await service.durable()
        if found is None:
            raise NotFoundError("OBJECT_NOT_FOUND", f"{key} does not exist", [(key.kind, str(key))])
        return found, revision

    async def list_objects(self, cluster: str, selection: ObjectFilter) -> ListAnswer:
        service = self._service(cluster)
        state = service.cluster.state
        answer = ListAnswer(state.revision, select(state, selection))
        await service.durable()
        return answer

    async def watch(
        self, cluster: str, selection: ObjectFilter, from_revision: int | None
    ) -> AsyncIterator[WatchBatch]:
        service = self._service(cluster)
        state = service.cluster.state
        if from_revision is None:
            present, revision = select(state, selection), state.revision
            await service.durable()
            for batch in _present(present, revision):
                yield batch
        else:
            revision = from_revision
            await self._check_revision(service, revision)
        async for batch in service.revisions.changes(selection, matcher(state, selection), revision):
            yield batch

    async def list_clusters(self) -> list[ClusterSummary]:
        summaries = []
        for name, service in sorted(self._services.items()):
            objects = service.cluster.state.objects
            counts = {kind: len(objects[kind]) for kind in KINDS}
            summaries.append(ClusterSummary(name, service.cluster.state.revision, counts))
        for service in list(self._services.values()):
            await service.durable()
        return summaries

    async def delete_cluster(self, cluster: str) -> None:
        service = self._service(cluster)
        if cluster == DEFAULT_CLUSTER:
            raise FailedPreconditionError("ARGUMENT_STATE", "the default cluster always exists")
        service.available = False
        await service.stop()
        with_writes = service.cluster
        await self._writer.durable(with_writes)
        await self._writer.run_apart(lambda: self._store.delete_cluster(cluster, with_writes.token))
        del self._services[cluster]
        self._pool.forget(cluster)
        gone = NotFoundError("CLUSTER_NOT_FOUND", f"cluster {cluster!r} was deleted", [("Cluster", cluster)])
        service.revisions.fail(gone)
        service.decisions.fail(gone)

    async def schedule(
        self, cluster: str, unit: ObjectKey, *, validate_only: bool, wait_seconds: float | None
    ) -> ScheduleAnswer:
        service = self._service(cluster)
        if validate_only:
            return await scheduling.dry_run(service, self._clock, unit)
        return await scheduling.schedule(service, self._clock, unit, wait_seconds=wait_seconds)

    async def queue(self, cluster: str, states: frozenset[UnitState]) -> QueueAnswer:
        service = self._service(cluster)
        held = service.cluster
        units: list[PositionedUnit] = []
        counts: dict[UnitState, int] = {}
        position = 0
        for row in held.queue.in_order():
            counts[row.state] = counts.get(row.state, 0) + 1
            position += row.state is UnitState.ACTIVE
            if not states or row.state in states:
                units.append(PositionedUnit(row, position if row.state is UnitState.ACTIVE else 0))
        answer = QueueAnswer(
            held.state.revision, units, counts, held.pending_group_rows(), held.pending_member_rows()
        )
        await service.durable()
        return answer

    async def decisions(
        self, cluster: str, from_revision: int | None, selection: DecisionFilter
    ) -> AsyncIterator[DecisionBatch]:
        service = self._service(cluster)
        revision = service.cluster.state.revision if from_revision is None else from_revision
        await self._check_revision(service, revision)
        async for batch in service.decisions.decisions(revision, selection):
            yield batch

    async def get_decision(self, cluster: str, decision_id: str) -> DecisionRecord:
        service = self._service(cluster)
        await service.durable()
        found = await asyncio.to_thread(self._store.get_decision, cluster, decision_id)
        if found is None:
            text = f"decision {decision_id!r} does not exist, or is not kept any more"
            known = decision_id.isdecimal() and 0 < int(decision_id) <= service.cluster.state.revision
            reason = "DECISION_COMPACTED" if known else "DECISION_NOT_FOUND"
            raise NotFoundError(reason, text, [("Decision", decision_id)])
        return found

    async def list_decisions(
        self, cluster: str, selection: DecisionFilter, before_revision: int | None, limit: int
    ) -> list[DecisionRecord]:
        await self._service(cluster).durable()
        return await asyncio.to_thread(
            lambda: self._store.list_decisions(
                cluster,
                unit=selection.unit,
                codes=selection.codes,
                from_us=selection.from_us,
                to_us=selection.to_us,
                before_revision=before_revision,
                limit=limit,
            )
        )

    def profile_names(self) -> Sequence[str]:
        return list(self._profiles)

    def _service(self, cluster: str) -> ClusterService:
        service = self._services.get(cluster)
        if service is None:
            text = f"cluster {cluster!r} does not exist"
            raise NotFoundError("CLUSTER_NOT_FOUND", text, [("Cluster", cluster)])
        service.check_available()
        return service

    def _apply(
        self, mutation: Mutation, call: ApplyCall, faults: Mapping[int, list[Violation]]
    ) -> tuple[ApplyAnswer, bool]:
        plan = ApplyPlan(mutation.cluster, call, mutation, self._ids.uid)
        admitted = plan.admit(faults)
        if not call.validate_only:
            plan.write(admitted)
        writes = bool(mutation.edits)
        return answer_of(call, admitted, mutation.revision if writes else mutation.state.revision), writes

    def _try_on_nothing(self, call: ApplyCall, faults: Mapping[int, list[Violation]]) -> ApplyAnswer:
        """Admission against an empty cluster, so that a refused call creates none."""
        nothing = Cluster(call.cluster, 0, self._names)
        mutation = Mutation(nothing, self._clock.now_us())
        admitted = ApplyPlan(nothing, call, mutation, self._ids.uid).admit(faults)
        return answer_of(call, admitted, 0)

    async def _once(
        self,
        service: ClusterService,
        step: Callable[[Mutation], tuple[Answer, bool]],
        identity: RequestIdentity | None,
        encode: Callable[[Answer], bytes] | None,
    ) -> Answer:
        return await self._requests.once(
            service.cluster.name, identity, encode, lambda: self._written(service, step, identity, encode)
        )

    async def _written(
        self,
        service: ClusterService,
        step: Callable[[Mutation], tuple[Answer, bool]],
        identity: RequestIdentity | None,
        encode: Callable[[Answer], bytes] | None,
    ) -> Answer:
        answer = service.write(step, identity, encode)
        await service.durable()
        return answer

    async def _create(self, name: str) -> ClusterService:
        async with self._creating:
            if name not in self._services:
                self._take_up(await self._load(name, created=True))
        return self._services[name]

    async def _load(self, name: str, *, created: bool) -> Cluster:
        token = 0

        def acquire() -> None:
            nonlocal token
            token = self._store.acquire(name)

        await self._writer.run_apart(acquire)
        cluster = Cluster(name, token, self._names, created=created)
        if not created:
            cluster.load(await asyncio.to_thread(self._store.load_cluster, name))
        return cluster

    def _take_up(self, cluster: Cluster) -> None:
        name = cluster.name

        async def read_log(after: int, limit: int) -> list[LogEntry]:
            return await asyncio.to_thread(self._store.read_log, name, after, limit)

        async def read_decisions(after: int, limit: int) -> list[DecisionRecord]:
            return await asyncio.to_thread(
                lambda: self._store.list_decisions(name, after_revision=after, limit=limit)
            )

        revision = cluster.state.revision
        service = ClusterService(
            cluster,
            self._tools,
            RevisionFeed(revision, read_log),
            DecisionFeed(revision, read_decisions),
            self._lost,
        )
        self._services[name] = service
        service.start()

    def _publish(self, writes: ClusterWrites) -> None:
        service = self._services.get(writes.cluster)
        if service is not None:
            service.publish(writes)

    def _lost(self, name: str) -> None:
        """Memory and store may differ: load the cluster again, behind what is being committed."""
        self._services[name].available = False
        reloading = asyncio.create_task(self._reload([name]))
        self._reloading.add(reloading)
        reloading.add_done_callback(self._reloading.discard)

    async def _reload(self, names: list[str]) -> None:
        """Drop what was assumed and load from the store again, however long that takes."""
        for name in names:
            service = self._services.get(name)
            if service is None:
                continue
            service.available = False
            self._writer.abandon(service.cluster, "it is being loaded again")
            await service.stop()
            self._writer.abandon(service.cluster, "it is being loaded again")
            self._pool.forget(name)
            service.replace(await self._load_patiently(name))

    async def _load_patiently(self, name: str) -> Cluster:
        while True:
            try:
                names = await asyncio.to_thread(self._store.list_clusters)
                return await self._load(name, created=name not in names)
            except StoreUnavailableError:
                _LOG.warning("the store does not answer; cluster %s waits", name)
                await asyncio.sleep(RELOAD_PAUSE_SECONDS)

    async def _look_up_request(self, cluster: str, method: str, request_id: str) -> RequestRecord | None:
        return await asyncio.to_thread(self._store.find_request, cluster, method, request_id)

    async def _check_revision(self, service: ClusterService, revision: int) -> None:
        """Raises OutOfRangeError for a revision from the future, or one whose successors are gone."""
        current = service.cluster.state.revision
        await service.durable()
        if revision > current:
            text = f"revision {revision} is in the future: the cluster is at {current}"
            raise OutOfRangeError("REVISION_IN_FUTURE", text, current_revision=str(current))
        name = service.cluster.name
        compacted = await asyncio.to_thread(self._store.compacted_revision, name)
        if revision < compacted:
            text = f"revision {revision} was compacted away: the oldest is {compacted}"
            raise OutOfRangeError("REVISION_COMPACTED", text, oldest_revision=str(compacted))

    async def _compact_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._options.compaction_seconds)
            for service in list(self._services.values()):
                try:
                    await self._compact(service)
                except StoreUnavailableError:
                    _LOG.warning("cluster %s was not compacted", service.cluster.name)

    async def _compact(self, service: ClusterService) -> None:
        options, cluster = self._options, service.cluster
        now_us = self._clock.now_us()
        revision = max(
            service.revisions.revision_before(now_us - options.log_seconds * 1_000_000),
            cluster.state.revision - options.log_revisions,
        )
        decisions = service.decisions.revision_before(now_us - options.decision_seconds * 1_000_000)
        await self._writer.run_apart(
            lambda: self._store.compact(
                cluster.name,
                cluster.token,
                log_before_revision=revision,
                requests_before_us=now_us - options.request_seconds * 1_000_000,
                decisions_before_revision=decisions,
            )
        )


def _present(objects: list[ClusterObject], revision: int) -> list[WatchBatch]:
    """The present state as ADDED; the last batch, which may be empty, completes it."""
    changes = [Change(EventType.ADDED, item) for item in objects]
    slices = [tuple(changes[i : i + WATCH_BATCH]) for i in range(0, len(changes), WATCH_BATCH)] or [()]
    return [
        WatchBatch(part, revision if i == len(slices) - 1 else 0, initial_state_complete=i == len(slices) - 1)
        for i, part in enumerate(slices)
    ]
