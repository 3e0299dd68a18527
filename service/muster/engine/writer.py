"""The one writer: takes what all clusters have written since the last transaction and commits it together.

Group commit: while one transaction is on its way to disk, the next one fills, and it goes on filling for a moment as
long as the event loop has more to write, and callers come who were answered together before (`filling`). Nobody is answered, and no watch hears of a revision, before it is durable. If
the store refuses a transaction, nothing of it counts: those who wait are told, and the clusters concerned are loaded
again from the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from muster.engine.cluster import Cluster
from muster.engine.errors import UnavailableError
from muster.engine.filling import QUIET_TURNS, Filling
from muster.engine.ports import Clock, ClusterWrites, FencedError, Store, StoreUnavailableError
from muster.engine.telemetry_port import EngineTelemetry
from muster.telemetry.facts import CommitFacts

GATHER_SECONDS = 0.04
"""The longest time that a transaction waits for more while the loop is busy: each one costs the loop's thread its turn."""
QUIET_TURNS_ALONE = 1
"""Of the turns in which nobody writes, for a caller who is alone: turns may take milliseconds, while cycles run."""
MOST_GATHERED = 512
CYCLE_SECONDS = 0.05
"""The longest time that a transaction waits for units which came with it to be placed: their pods are then written once."""

_LOG = logging.getLogger(__name__)

Waiter = asyncio.Future[None]
Answer = TypeVar("Answer")


class Writer:
    """`published` is called with the writes of each durable transaction, `failed` with the clusters of a refused one."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        telemetry: EngineTelemetry,
        published: Callable[[ClusterWrites], None],
        failed: Callable[[list[str]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._published = published
        self._failed = failed
        self._dirty: dict[str, Cluster] = {}
        self._waiting: dict[str, list[Waiter]] = {}
        self._in_flight: dict[str, list[Waiter]] = {}
        self._untaken: dict[str, list[Waiter]] = {}
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="muster-writer")
        self._running: asyncio.Task[None] | None = None
        self._passing: asyncio.Future[None] | None = None
        self._filling = Filling()
        self._closing = False

    def start(self) -> None:
        """Begin to commit."""
        self._running = asyncio.create_task(self._run(), name="writer")

    def schedule(self, cluster: Cluster) -> None:
        """The cluster may have writes."""
        if cluster.has_writes:
            self._dirty[cluster.name] = cluster
            self._wake.set()

    async def durable(self, cluster: Cluster) -> None:
        """Return once everything written so far in the cluster is durable. Raises UnavailableError if it is lost."""
        self.schedule(cluster)
        name = cluster.name
        if cluster.has_writes:
            waiters = self._waiting.setdefault(name, [])
            self._filling.caller_came()
        elif name in self._in_flight:
            waiters = self._in_flight[name]
        else:
            return
        waiter: Waiter = asyncio.get_running_loop().create_future()
        waiters.append(waiter)
        await waiter

    async def taken(self, cluster: Cluster) -> None:
        """Return once a transaction has begun with everything written so far in the cluster. Raises UnavailableError if it is lost.

        Who writes much waits for this, not for what is durable: the next transaction fills while this one is on its way.
        """
        self.schedule(cluster)
        if cluster.has_writes:
            cluster.coming.end()
            waiter: Waiter = asyncio.get_running_loop().create_future()
            self._untaken.setdefault(cluster.name, []).append(waiter)
            await waiter

    async def let_through(self) -> None:
        """Return once no transaction that callers wait for is on its way, and none fills for more of them.

        The thread of the one would wait for ours at every step; what fills the other is decided together.
        """
        while self._passing is not None and not self._passing.done():
            await asyncio.wait([self._passing])
        await self._filling.until_full()

    def abandon(self, cluster: Cluster, why: str) -> None:
        """Drop what the cluster has written since the last transaction; who waits for it is told."""
        cluster.take_writes()
        self._dirty.pop(cluster.name, None)
        self._filling.end()
        lost = [self._waiting.pop(cluster.name, []), self._untaken.pop(cluster.name, [])]
        _resolve(lost, _refusal(why))

    async def run_apart(self, call: Callable[[], Answer]) -> Answer:
        """Run a store call on the writer's thread, between transactions, which wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def close(self) -> None:
        """Commit what is left, then stop."""
        self._closing = True
        self._wake.set()
        if self._running is not None:
            await self._running
        self._thread.shutdown()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._dirty:
                await self._gather()
                await self._await_cycles()
                await self._commit_once()
            if self._closing:
                return

    async def _gather(self) -> None:
        """Wait while more callers come, so that many share a transaction; where nobody waits, while the loop writes.

        Those whose calls are here already show within a few turns of the loop; only then are those waited for who are
        expected, as that takes time in which nothing else may be done.
        """
        began = self._clock.monotonic()
        callers = revisions = quiet = 0
        while revisions < MOST_GATHERED and self._clock.monotonic() - began < GATHER_SECONDS:
            before = callers, revisions
            callers = _count(self._waiting)
            revisions = sum(each.open_revisions for each in self._dirty.values())
            is_more = callers > before[0] if callers else revisions > before[1]
            quiet = 0 if is_more else quiet + 1
            is_lonely = callers == 1 and not self._filling.expects_others
            if quiet < (QUIET_TURNS_ALONE if is_lonely else QUIET_TURNS):
                await asyncio.sleep(0)
            elif not await self._filling.another_caller(callers):
                break
        self._filling.end()

    async def _await_cycles(self) -> None:
        """Wait a little for the decisions on units of which the transaction has the objects."""
        until = self._clock.monotonic() + CYCLE_SECONDS
        latest = {name: each.coming.round for name, each in self._dirty.items()}
        while coming := self._coming(latest):
            _, pending = await asyncio.wait(coming, timeout=max(0.0, until - self._clock.monotonic()))
            if pending:
                return

    def _coming(self, latest: Mapping[str, int]) -> list[asyncio.Future[None]]:
        """Of the cycles, but for those that wait for the transaction themselves; `latest` are the rounds by cluster."""
        writing = (each for name, each in self._dirty.items() if name in latest and name not in self._untaken)
        return [to for each in writing if (to := each.coming.change(latest[each.name])) is not None]

    async def _commit_once(self) -> None:
        self._filling.begin()
        clusters, self._dirty = self._dirty, {}
        batch = [writes for cluster in clusters.values() if (writes := cluster.take_writes()) is not None]
        self._in_flight = {name: self._waiting.pop(name, []) for name in clusters}
        _resolve([self._untaken.pop(name, []) for name in clusters], None)
        started = self._clock.monotonic()
        committing = asyncio.ensure_future(self.run_apart(lambda: self._store.commit(batch)))
        self._passing = committing if any(self._in_flight.values()) else None
        try:
            await committing
        except Exception as error:  # noqa: BLE001 - whatever it was: the transaction is undone, and others follow
            if not isinstance(error, FencedError | StoreUnavailableError):
                _LOG.exception("a transaction broke")
            lost, self._in_flight = self._in_flight, {}
            self._tell(batch, started, succeeded=False)
            _resolve(lost.values(), _refusal(str(error)))
            for cluster in clusters.values():
                self.abandon(cluster, str(error))
            await self._failed(list(clusters))
        else:
            done, self._in_flight = self._in_flight, {}
            for writes in batch:
                self._published(writes)
            self._filling.transaction_ended(_count(done), _count(self._waiting))
            self._tell(batch, started, succeeded=True)
            _resolve(done.values(), None)

    def _tell(self, batch: list[ClusterWrites], started: float, *, succeeded: bool) -> None:
        rows = sum(len(w.puts) + len(w.removed) + len(w.unit_puts) + len(w.entries) for w in batch)
        revisions = sum(len(writes.entries) for writes in batch)
        seconds = self._clock.monotonic() - started
        self._telemetry.committed(CommitFacts(revisions, rows, seconds, succeeded))


def _count(waiters: Mapping[str, list[Waiter]]) -> int:
    return sum(map(len, waiters.values()))


def _refusal(why: str) -> UnavailableError:
    return UnavailableError("STORE_UNAVAILABLE", f"the store did not take the write: {why}")


def _resolve(groups: Iterable[list[Waiter]], error: Exception | None) -> None:
    for waiters in groups:
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
