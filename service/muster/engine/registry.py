"""The clusters that this process owns: loaded at start, created by the first Apply, given up on delete, loaded again after doubt.

Also what goes on for all of them now and then: compaction of their histories, and the sizes that metrics show.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from muster.core.framework import Profile
from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.cycle import CycleTools
from muster.engine.errors import (
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    Refusal,
)
from muster.engine.forgetting import Forgetting
from muster.engine.log_entries import LogEntry
from muster.engine.ports import (
    Clock,
    ClusterWrites,
    DecisionRecord,
    FencedError,
    HistoryBounds,
    Store,
    StoreUnavailableError,
)
from muster.engine.queue_depths import queue_depths
from muster.engine.side_readiness import SideReadiness
from muster.engine.side_worker import SideWorker
from muster.engine.telemetry_port import EngineTelemetry
from muster.engine.watch_hub import DecisionFeed, RevisionFeed
from muster.engine.worker_pool import WorkerPool
from muster.engine.writer import Writer

_LOG = logging.getLogger(__name__)
DEFAULT_CLUSTER = "default"
RELOAD_PAUSE_SECONDS = 0.5
REPORT_SECONDS = 2.0
REST_PER_WORK = 50.0
"""How long it is until sizes are shown again, for as long as it took to count them."""
PROGRESS_SECONDS = 1.0
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How this process runs. Retentions in seconds, but for `log_revisions` and `most_decisions`.

    finished_seconds: how long finished pods, and trees of which all pods have finished, stay; 0: for ever.
    question_modules: where questions to the side worker come from.
    """

    clients_evict: bool = False
    workers: int = 1
    log_seconds: int = 3_600
    log_revisions: int = 100_000
    decision_seconds: int = 7 * 86_400
    most_decisions: int = 1_000_000
    request_seconds: int = 86_400
    finished_seconds: int = 0
    compaction_seconds: float = 30.0
    question_modules: tuple[str, ...] = ()


class ClusterRegistry:
    """`services` by cluster name. Owns the writer and the worker pool; `side` answers what must not hold them up."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        profiles: Mapping[str, Profile],
        telemetry: EngineTelemetry,
        options: EngineOptions,
    ) -> None:
        self.services: dict[str, ClusterService] = {}
        self.names = frozenset(profiles) | {""}
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._options = options
        self._creating = asyncio.Lock()
        self._loading_again = asyncio.Lock()
        self._pool = WorkerPool(options.workers, on_restart=telemetry.worker_restarted)
        self.side = SideWorker(
            self.names, on_restart=telemetry.worker_restarted, modules=options.question_modules
        )
        self._writer = Writer(store, clock, telemetry, self._publish, self._reload)
        self._forgetting = Forgetting(store, self._writer, clock)
        self._tools = CycleTools(
            clock, dict(profiles), self._pool, self._writer, telemetry, options.clients_evict
        )
        self._housekeeping: list[asyncio.Task[None]] = []
        self._reloading: set[asyncio.Task[None]] = set()
        self._is_closing = False

    async def start(self) -> None:
        """Open the store, take over its clusters, begin to schedule. Raises ForeignStoreError, StoreUnavailableError."""
        await self._writer.run_apart(self._store.open)
        self._writer.start()
        self._pool.warm_up()
        await self._take_over()
        await self._pool.ready()
        readiness = SideReadiness(self.side, self.services)
        chores = (self._compact_for_ever(), self._report_for_ever(), readiness.run())
        self._housekeeping = [asyncio.create_task(chore) for chore in chores]

    async def _take_over(self) -> None:
        """Load all that the store has, and say how far it is where that takes its time."""
        names = await asyncio.to_thread(self._store.list_clusters)
        wanted = list(dict.fromkeys([*names, DEFAULT_CLUSTER]))
        tokens = await self._writer.run_apart(lambda: self._store.acquire_all(wanted))
        told = self._clock.monotonic()
        for count, name in enumerate(wanted):
            if self._clock.monotonic() - told >= PROGRESS_SECONDS:
                told = self._clock.monotonic()
                _LOG.info("loading clusters", extra={"loaded": count, "clusters": len(wanted)})
            self._take_up(await self._loaded(name, tokens[name], created=name not in names))

    async def close(self, ending: Refusal) -> None:
        """End all watches with the refusal, finish what is in work, close the store. A cluster that cannot be loaded is left."""
        self._is_closing = True
        for chore in self._housekeeping:
            chore.cancel()
            with suppress(asyncio.CancelledError):
                await chore
        deleting = [each.deleting for each in self.services.values() if each.deleting is not None]
        await asyncio.gather(*deleting, return_exceptions=True)
        for service in self.services.values():
            service.revisions.fail(ending)
            service.decisions.fail(ending)
            service.refuse_callers(ending)
            await service.stop()
            self._writer.schedule(service.cluster)
        await self._writer.close()
        await self._pool.close()
        await self.side.close()
        await asyncio.to_thread(self._store.close)

    async def create(self, name: str) -> ClusterService:
        """The cluster's service, made if there is none."""
        async with self._creating:
            if name not in self.services:
                self._take_up(await self._load(name, created=True))
        return self.services[name]

    async def delete(self, name: str) -> None:
        """Give the cluster up, and delete all that the store has of it. A caller that leaves does not stop it."""
        if name == DEFAULT_CLUSTER:
            raise FailedPreconditionError("ARGUMENT_STATE", "the default cluster always exists")
        service = self.services[name]
        service.available = False
        service.deleting = asyncio.create_task(self._delete(service))
        await asyncio.shield(service.deleting)

    async def _delete(self, service: ClusterService) -> None:
        cluster, name = service.cluster, service.cluster.name
        try:
            await service.stop()
            await self._writer.durable(cluster)
            await self._writer.run_apart(lambda: self._store.delete_cluster(name, cluster.token))
        except BaseException:
            # Whoever asked may have left. It goes on as the store has it.
            _LOG.warning("cluster %s was not deleted; it is loaded again", name)
            service.deleting = None
            self._lost(name)
            raise
        del self.services[name]
        self._pool.forget(name)
        self.side.forget(name)
        gone = NotFoundError("CLUSTER_NOT_FOUND", f"cluster {name!r} was deleted", [("Cluster", name)])
        service.revisions.fail(gone)
        service.decisions.fail(gone)
        service.refuse_callers(gone)
        self._telemetry.queue_depth(name, [])

    async def _load(self, name: str, *, created: bool) -> Cluster:
        token = await self._writer.run_apart(lambda: self._store.acquire(name))
        return await self._loaded(name, token, created=created)

    async def _loaded(self, name: str, token: int, *, created: bool) -> Cluster:
        cluster = Cluster(name, token, self.names, self._telemetry, created=created)
        if not created:
            cluster.load(await asyncio.to_thread(self._store.load_cluster, name))
        return cluster

    def _take_up(self, cluster: Cluster) -> None:
        name = cluster.name

        async def read_log(after: int, limit: int) -> list[LogEntry]:
            entries = await asyncio.to_thread(self._store.read_log, name, after, limit)
            oldest = await asyncio.to_thread(self._store.compacted_revision, name)
            if after < oldest:
                text = f"revision {after} was compacted away while the watch read: the oldest is {oldest}"
                raise OutOfRangeError("REVISION_COMPACTED", text, oldest_revision=str(oldest))
            return entries

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
        self.services[name] = service
        service.start()

    def _publish(self, writes: ClusterWrites) -> None:
        self.side.note(writes)
        service = self.services.get(writes.cluster)
        if service is not None:
            service.publish(writes)

    def _lost(self, name: str) -> None:
        """Memory and store may differ: load the cluster again, behind what is being committed."""
        self.services[name].available = False
        reloading = asyncio.create_task(self._reload([name]))
        self._reloading.add(reloading)
        reloading.add_done_callback(self._reloading.discard)

    async def _reload(self, names: list[str]) -> None:
        """Drop what was assumed and load from the store again, however long that takes; once for each doubt."""
        for name in names:
            service = self.services.get(name)
            if service is None:
                continue
            service.available = False
            doubted = service.cluster
            async with self._loading_again:
                if service.cluster is doubted:
                    await self._load_again(service)

    async def _load_again(self, service: ClusterService) -> None:
        name = service.cluster.name
        self._writer.abandon(service.cluster, "it is being loaded again")
        await service.stop()
        self._writer.abandon(service.cluster, "it is being loaded again")
        service.refuse_callers(service.being_loaded())
        self._pool.forget(name)
        loaded = await self._load_patiently(name)
        if loaded is not None and not self._is_closing and self.services.get(name) is service:
            service.replace(loaded)

    async def _load_patiently(self, name: str) -> Cluster | None:
        """Tried until it succeeds; None if the server stops before."""
        while not self._is_closing:
            try:
                return await self._load(name, created=not await self._is_stored(name))
            except StoreUnavailableError:
                _LOG.warning("the store does not answer; cluster %s waits", name)
            except Exception:  # noqa: BLE001 - whatever it was: without another try the cluster would be gone for good
                _LOG.exception("cluster %s cannot be loaded; it waits", name)
            await asyncio.sleep(RELOAD_PAUSE_SECONDS)
        return None

    async def _is_stored(self, name: str) -> bool:
        """Whether the store holds the cluster, once what is being committed has been."""
        names: list[str] = []
        await self._writer.run_apart(lambda: names.extend(self._store.list_clusters()))
        return name in names

    async def _compact_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._options.compaction_seconds)
            await self.compact()

    async def compact(self) -> None:
        """Remove from all clusters what has been finished for long enough, and what is old of their histories."""
        for service in list(self.services.values()):
            try:
                if self._options.finished_seconds:
                    await service.remove_finished(self._options.finished_seconds)
                await self._forgetting.forget(service.cluster, partial(self._bounds, service.cluster))
            except (FencedError, StoreUnavailableError, Refusal):
                _LOG.warning("cluster %s was not compacted", service.cluster.name)
            except Exception:  # noqa: BLE001 - one bad cluster must not let all others grow for ever
                _LOG.exception("the compaction of cluster %s broke", service.cluster.name)

    def _bounds(self, cluster: Cluster) -> HistoryBounds:
        options, now_us = self._options, self._clock.now_us()
        return HistoryBounds(
            log_before_us=now_us - options.log_seconds * SECOND_US,
            log_before_revision=cluster.state.revision - options.log_revisions,
            requests_before_us=now_us - options.request_seconds * SECOND_US,
            decisions_before_us=now_us - options.decision_seconds * SECOND_US,
            most_decisions=options.most_decisions,
        )

    async def _report_for_ever(self) -> None:
        while True:
            worked = 0.0
            for service in list(self.services.values()):
                worked += await self._report(service)
            await asyncio.sleep(max(REPORT_SECONDS, REST_PER_WORK * worked))

    async def _report(self, service: ClusterService) -> float:
        """Show how large a cluster and its queue are; the seconds that it took."""
        cluster = service.cluster
        depths, worked = await queue_depths(cluster)
        if self.services.get(cluster.name) is service:
            self._telemetry.queue_depth(cluster.name, depths)
            sizes = {kind: len(objects) for kind, objects in cluster.state.objects.items()}
            self._telemetry.cache_size(cluster.name, cluster.state.revision, sizes)
        return worked
