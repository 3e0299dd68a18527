"""What commits cost on both databases: a gang of 10 000 pods added and bound, and what 32 writers commit together.

Both databases sync to disk. The plain form commits the same with a transaction for each pod, or for each writer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from muster.engine.log_entries import EventType, LogEntry
from muster.engine.ports import ClusterWrites, QueuedUnit, UnitState
from muster.model.meta import ORDINAL_BITS, POD_GROUP, Condition, ObjectKey
from muster.model.pod import Container, Pod, PodSpec, PodStatus, Resources
from muster.store.store import SqlStore, open_store
from tests.bench.place import DATABASES, Place
from tests.bench.row import Measured, Row
from tests.bench.stopwatch import Timing, least, settled_memory, timed

SPEC = PodSpec(containers=(Container(name="main", resources=Resources(requests={"cpu": "1"})),))
LABELS = {"app": "trainer"}
ANNOTATIONS = {"team": "vision"}
PENDING = PodStatus()
NODES = 5_000
PODS, GANG = 10_000, 8
WRITERS = 32
ROUNDS = 5
GROUP_COMMITS = 20
SAMPLE = 100


class Cluster:
    """A cluster whose revision counts up with each gang that is added or bound."""

    def __init__(self, store: SqlStore, name: str = "bench") -> None:
        self._name = name
        self._token = store.acquire(name)
        self._revision = 0

    def added(self, size: int) -> ClusterWrites:
        """The writes of a gang that comes."""
        writes = self._next_writes()
        revision = writes.revision
        group = f"gang-{revision}"
        pods = [
            Pod(
                name=f"{group}-{index:05}",
                namespace="default",
                uid=str(uuid.uuid4()),
                resource_version=revision,
                ordinal=(revision << ORDINAL_BITS) + index,
                creation_us=1_700_000_000_000_000,
                labels=LABELS,
                annotations=ANNOTATIONS,
                spec=SPEC,
                group=group,
                status=PENDING,
            )
            for index in range(size)
        ]
        self._put(writes, EventType.ADDED, pods)
        unit = ObjectKey(POD_GROUP, "default", group)
        writes.unit_puts[unit] = QueuedUnit(unit, UnitState.ACTIVE, since_us=revision)
        return writes

    def bound(self, added: ClusterWrites) -> ClusterWrites:
        """The writes of the binding of a gang that was added."""
        writes = self._next_writes()
        revision = writes.revision
        status = PodStatus(conditions=(Condition("PodScheduled", "True", last_transition_us=revision),))
        pods = [pod for pod in added.puts.values() if isinstance(pod, Pod)]
        bound = [
            replace(pod, node_name=f"node-{place % NODES}", resource_version=revision, status=status)
            for place, pod in enumerate(pods)
        ]
        self._put(writes, EventType.MODIFIED, bound)
        writes.unit_removals.add(ObjectKey(POD_GROUP, "default", bound[0].group))
        return writes

    def _next_writes(self) -> ClusterWrites:
        self._revision += 1
        return ClusterWrites(self._name, self._token, self._revision, created=self._revision == 1)

    @staticmethod
    def _put(writes: ClusterWrites, event: EventType, pods: list[Pod]) -> None:
        writes.puts.update((pod.key, pod) for pod in pods)
        entry = LogEntry(writes.revision, writes.revision, [event] * len(pods), pods)
        writes.entries.append(entry)


@contextmanager
def opened(place: Place, database: str) -> Iterator[SqlStore]:
    with place.store(database) as url:
        store = open_store(url)
        try:
            yield store
        finally:
            store.close()


def adding(database: str) -> Callable[[Place], Measured]:
    """Milliseconds of the commit that adds a gang of 10 000."""
    return lambda place: big_gang(place, database)[0]


def binding(database: str) -> Callable[[Place], Measured]:
    """Milliseconds of the commit that binds it."""
    return lambda place: big_gang(place, database)[1]


def big_gang(place: Place, database: str) -> tuple[Measured, Measured]:
    """What adding takes, and what binding takes, in turns on one store."""
    with opened(place, database) as store, settled_memory():
        cluster = Cluster(store)
        adds: list[Timing] = []
        binds: list[Timing] = []
        for _ in range(ROUNDS):
            added = cluster.added(PODS)
            adds.append(committed(store, [added]))
            binds.append(committed(store, [cluster.bound(added)]))
        single = [cluster.added(1) for _ in range(SAMPLE)]
        plain = [one_by_one(store, single), one_by_one(store, list(map(cluster.bound, single)))]
    first, second = (
        Measured(least(times).wall_ms, least(times).cpu, alone.scaled(PODS / SAMPLE).wall_ms)
        for times, alone in zip((adds, binds), plain, strict=True)
    )
    return first, second


def committed(store: SqlStore, writes: Sequence[ClusterWrites]) -> Timing:
    return timed(lambda: store.commit(writes))


def one_by_one(store: SqlStore, writes: Sequence[ClusterWrites]) -> Timing:
    """A transaction each."""

    def run() -> None:
        for each in writes:
            store.commit([each])

    return timed(run)


def group_commits(database: str) -> Callable[[Place], Measured]:
    """Rows a second: of each writer a gang of 8 that comes, its place in the queue, and the revision."""

    def measure(place: Place) -> Measured:
        with opened(place, database) as store, settled_memory():
            clusters = [Cluster(store, f"writer-{number}") for number in range(WRITERS)]
            batches = [[cluster.added(GANG) for cluster in clusters] for _ in range(GROUP_COMMITS)]
            rows = sum(map(rows_of, batches[0]))
            best = least([committed(store, batch) for batch in batches])
            plain = one_by_one(store, [cluster.added(GANG) for cluster in clusters])
        return Measured(rows / best.wall, best.cpu, rows / plain.wall)

    return measure


def rows_of(writes: ClusterWrites) -> int:
    return len(writes.puts) + len(writes.entries) + len(writes.unit_puts)


def rows_on(database: str) -> Iterator[Row]:
    alone = f"a transaction for each pod, from {SAMPLE}"
    yield Row(f"store/{database}/add-10000-pods", "ms", adding(database), alone)
    yield Row(f"store/{database}/bind-10000-pods", "ms", binding(database), alone)
    yield Row(
        f"store/{database}/32-writers",
        "rows/s",
        group_commits(database),
        "a transaction for each writer",
        15_000,
        3_000,
    )


ROWS = tuple(row for database in DATABASES for row in rows_on(database))
