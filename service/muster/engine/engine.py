"""The whole service behind the RPC layer: how a call becomes a read, or one revision (architecture.md).

Which clusters there are is `registry`'s, what a revision entails `mutation`'s, what a cycle decides the core's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

from muster.core.framework import Profile
from muster.engine import preempting, scheduling
from muster.engine.api import (
    ApplyAnswer,
    ApplyCall,
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
    PositionedUnit,
    PreemptAnswer,
    PreemptCall,
    QueueAnswer,
    ReportAnswer,
    ReportCall,
    RequestIdentity,
    ScheduleAnswer,
    ScheduleCall,
    WatchBatch,
)
from muster.engine.apply_call import Applying
from muster.engine.applying import stateless_faults
from muster.engine.aside import AskedAside, Question, Setting, TimeLimit
from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.deletion import delete
from muster.engine.errors import NotFoundError, OutOfRangeError, UnavailableError
from muster.engine.explain_call import explain_unit
from muster.engine.listing import as_added, listed
from muster.engine.mutation import Mutation
from muster.engine.ports import (
    Clock,
    DecisionRecord,
    Ids,
    RequestRecord,
    Store,
    UnitState,
)
from muster.engine.positioned_units import positioned
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.reports import report
from muster.engine.request_log import RequestLog
from muster.engine.rerun import Rerun
from muster.engine.rerun_batches import Reruns
from muster.engine.selection import matcher
from muster.engine.telemetry_port import EngineTelemetry
from muster.model.meta import KINDS, ObjectKey
from muster.model.objects import ClusterObject
from muster.validation.objects import Rules

Answer = TypeVar("Answer")

LONGEST_DECISION_ID = 19
"""A revision's digits."""


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
        self._options = options
        self._profiles = dict(profiles)
        self._rules = Rules()
        self._requests = RequestLog(self._look_up_request)
        self._registry = ClusterRegistry(store, clock, profiles, telemetry, options)
        self._reruns = Reruns(store, self._durable_revision, self.aside)

    async def start(self) -> None:
        """Open the store and begin to schedule. Raises ForeignStoreError, StoreUnavailableError."""
        await self._registry.start()

    async def drain(self) -> None:
        await self._registry.close(UnavailableError("SERVER_DRAINING", "the server is shutting down"))

    async def find_replay(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        return await self._requests.find(cluster, identity) if cluster in self._registry.services else None

    async def apply(self, call: ApplyCall) -> ApplyAnswer:
        """One revision of all objects, or a refusal of the whole call; a new cluster is made only if it is not refused."""
        applying = Applying(call, await stateless_faults(call, self._rules), self._clock, self._ids)

        async def work() -> ApplyAnswer:
            service = self._registry.services.get(call.cluster)
            if service is None:
                tried = await applying.to_nothing(Cluster(call.cluster, 0, self._registry.names))
                if call.validate_only:
                    return tried
                service = await self._registry.create(call.cluster)
            answer = await applying.to(service)
            await service.durable()
            return answer

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
            outcomes = report(mutation, call, clients_evict=self._options.clients_evict)
            writes = bool(mutation.edits)
            return ReportAnswer(mutation.revision if writes else mutation.state.revision, outcomes), writes

        return await self._once(service, step, call.identity, call.encode_answer)

    async def get(self, cluster: str, key: ObjectKey) -> tuple[ClusterObject, int]:
        service = self._service(cluster)
        found, durable = service.cluster.state.get(key), service.revisions.durable_revision
        # What no later revision has changed is what it was at the durable one.
        if found is not None and found.resource_version <= durable:
            return found, durable
        revision = service.cluster.state.revision
        await service.durable()
        if found is None:
            raise NotFoundError("OBJECT_NOT_FOUND", f"{key} does not exist", [(key.kind, str(key))])
        return found, revision

    async def list_objects(self, cluster: str, selection: ObjectFilter) -> ListAnswer:
        return await listed(self._service(cluster), selection)

    async def watch(
        self, cluster: str, selection: ObjectFilter, from_revision: int | None
    ) -> AsyncIterator[WatchBatch]:
        service = self._service(cluster)
        state = service.cluster.state
        if from_revision is None:
            present = await listed(service, selection)
            revision = present.revision
            for batch in as_added(present):
                yield batch
        else:
            revision = from_revision
            await self._check_revision(service, revision)
        async for batch in service.revisions.changes(selection, matcher(state, selection), revision):
            yield batch

    async def list_clusters(self) -> list[ClusterSummary]:
        summaries = []
        for name, service in sorted(self._registry.services.items()):
            objects = service.cluster.state.objects
            counts = {kind: len(objects[kind]) for kind in KINDS if objects[kind]}
            summaries.append(ClusterSummary(name, service.cluster.state.revision, counts))
        for service in list(self._registry.services.values()):
            await service.durable()
        return summaries

    async def delete_cluster(self, cluster: str, identity: RequestIdentity | None = None) -> DeleteOutcome:
        async def work() -> DeleteOutcome:
            known = self._registry.services.get(cluster)
            if known is not None and known.deleting is not None:
                return DeleteOutcome.MARKED
            self._service(cluster)
            await self._registry.delete(cluster)
            return DeleteOutcome.DELETED

        return await self._requests.once(cluster, identity, lambda _: b"", work)

    async def schedule(self, call: ScheduleCall) -> ScheduleAnswer:
        service = self._service(call.cluster)
        last = self._last_decision(service)

        async def work() -> ScheduleAnswer:
            answer = await scheduling.schedule(service, self._clock, call, last)
            await self._keep(service, call.identity, call.encode_answer, answer)
            return answer

        if call.validate_only:
            return await scheduling.dry_run(service, self._clock, call.unit, last)
        return await self._requests.once(call.cluster, call.identity, call.encode_answer, work)

    async def preempt(self, call: PreemptCall) -> PreemptAnswer:
        service = self._service(call.cluster)

        async def work() -> PreemptAnswer:
            answer = await preempting.preempt(service, self._clock, call)
            await self._keep(service, call.identity, call.encode_answer, answer)
            return answer

        if call.validate_only:
            return await preempting.preempt(service, self._clock, call)
        return await self._requests.once(call.cluster, call.identity, call.encode_answer, work)

    async def explain(self, call: ExplainCall) -> ExplainAnswer:
        service = self._service(call.cluster)
        last = self._last_decision(service)
        return await explain_unit(service, self._registry.side, self._profiles, call, last)

    async def aside(self, cluster: str | None, question: Question[Answer], limit: TimeLimit) -> Answer:
        held = None
        if cluster is not None:
            service = self._service(cluster)
            await service.durable()
            service.check_available()
            held = service.cluster
        setting = Setting(self._profiles, self._clock.now_us(), self._options.clients_evict)
        asked = AskedAside(question, setting)
        return await self._registry.side.ask(held, asked, limit.seconds, limit.within_seconds)

    async def queue(self, cluster: str, states: frozenset[UnitState]) -> QueueAnswer:
        """The queue in its order; `states` chooses units (none: all), while the counts are always of all."""
        service = self._service(cluster)
        held = service.cluster
        counts: dict[UnitState, int] = {}
        units: list[PositionedUnit] = []
        for row, position in held.queue.positions():
            counts[row.state] = counts.get(row.state, 0) + 1
            if not states or row.state in states:
                units.append(positioned(held, row, position))
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
        is_id = decision_id.isascii() and decision_id.isdecimal() and len(decision_id) <= LONGEST_DECISION_ID
        found = await asyncio.to_thread(self._store.get_decision, cluster, decision_id) if is_id else None
        if found is None:
            text = f"decision {decision_id[:80]!r} does not exist, or is not kept any more"
            known = is_id and 0 < int(decision_id) <= service.cluster.state.revision
            reason = "DECISION_COMPACTED" if known else "DECISION_NOT_FOUND"
            raise NotFoundError(reason, text, [("Decision", decision_id[:80])])
        return found

    async def rerun(self, cluster: str, record: DecisionRecord) -> Rerun:
        return await self._reruns.rerun(cluster, record)

    async def _durable_revision(self, cluster: str) -> int:
        service = self._service(cluster)
        revision = service.cluster.state.revision
        await service.durable()
        return revision

    async def list_decisions(
        self, cluster: str, selection: DecisionFilter, before_revision: int | None, limit: int
    ) -> list[DecisionRecord]:
        service = self._service(cluster)
        unit = None if selection.unit is None else scheduling.unit_named(service, selection.unit)
        await service.durable()
        return await asyncio.to_thread(
            lambda: self._store.list_decisions(
                cluster,
                unit=unit,
                codes=selection.codes,
                from_us=selection.from_us,
                to_us=selection.to_us,
                before_revision=before_revision,
                limit=limit,
            )
        )

    def profile_names(self) -> Sequence[str]:
        return list(self._profiles)

    def _last_decision(self, service: ClusterService) -> scheduling.LastDecision:
        """Finds the last decision on a unit of the cluster, in memory or in the store."""

        async def last(root: ObjectKey) -> DecisionRecord | None:
            kept = service.cluster.last_decisions.get(root)
            if kept is not None:
                return kept
            found = await self.list_decisions(service.cluster.name, DecisionFilter(unit=root), None, 1)
            return found[0] if found else None

        return last

    def _service(self, cluster: str) -> ClusterService:
        service = self._registry.services.get(cluster)
        if service is None:
            text = f"cluster {cluster!r} does not exist"
            raise NotFoundError("CLUSTER_NOT_FOUND", text, [("Cluster", cluster)])
        service.check_available()
        return service

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

    async def _keep(
        self,
        service: ClusterService,
        identity: RequestIdentity | None,
        encode: Callable[[Answer], bytes] | None,
        answer: Answer,
    ) -> None:
        """Keep the answer of a call that waited for cycles, if it may come again."""
        if identity is not None and encode is not None:
            service.keep_answer(identity, encode(answer), self._clock.now_us())
            await service.durable()

    async def _written(
        self,
        service: ClusterService,
        step: Callable[[Mutation], tuple[Answer, bool]],
        identity: RequestIdentity | None,
        encode: Callable[[Answer], bytes] | None,
    ) -> Answer:
        await service.cluster.large_calls.over()
        answer = service.write(step, identity, encode)
        await service.durable()
        return answer

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
