"""Prints what commits cost on both databases: `python tests/bench/store_commit.py [rounds]`.

A gang of 10 000 pods is added and bound, then 64 gangs of 8 in one commit each way. Times are the best and the
median of the rounds, as the wall and the process see them; PostgreSQL runs without fsync here, SQLite with it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "service"), str(ROOT / "store")]

from muster.engine.ports import Change, ClusterWrites, EventType, LogEntry, QueuedUnit, UnitState  # noqa: E402
from muster.model.meta import ORDINAL_BITS, POD_GROUP, Condition, ObjectKey  # noqa: E402
from muster.model.pod import Container, Pod, PodSpec, PodStatus, Resources  # noqa: E402
from muster.store.store import SqlStore, open_store  # noqa: E402
from tests.postgres_server import running_server  # noqa: E402

SPEC = PodSpec(containers=(Container(name="main", resources=Resources(requests={"cpu": "1"})),))
LABELS = {"app": "trainer"}
ANNOTATIONS = {"team": "vision"}
PENDING = PodStatus()
NODES = 5_000


class Cluster:
    """A cluster whose revision counts up with each gang that is added or bound."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._token = store.acquire("bench")
        self._revision = 0

    def add(self, gangs: int, size: int) -> Callable[[], list[Pod]]:
        """A commit that adds gangs, each in a revision of its own; running it returns the pods."""
        writes = self._writes()
        for _ in range(gangs):
            revision = self._next_revision(writes)
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
            self._put(writes, revision, EventType.ADDED, pods)
            unit = ObjectKey(POD_GROUP, "default", group)
            writes.unit_puts[unit] = QueuedUnit(unit, UnitState.ACTIVE, since_us=revision)
        return self._commit(writes)

    def bind(self, gangs: int, pods: list[Pod]) -> Callable[[], list[Pod]]:
        """A commit that binds pods, in as many revisions as there are gangs."""
        writes = self._writes()
        size = len(pods) // gangs
        for start in range(0, len(pods), size):
            revision = self._next_revision(writes)
            status = PodStatus(conditions=(Condition("PodScheduled", "True", last_transition_us=revision),))
            bound = [
                replace(pod, node_name=f"node-{place % NODES}", resource_version=revision, status=status)
                for place, pod in enumerate(pods[start : start + size])
            ]
            self._put(writes, revision, EventType.MODIFIED, bound)
            writes.unit_removals.add(ObjectKey(POD_GROUP, "default", bound[0].group))
        return self._commit(writes)

    def _writes(self) -> ClusterWrites:
        return ClusterWrites("bench", self._token, self._revision, created=self._revision == 0)

    def _next_revision(self, writes: ClusterWrites) -> int:
        self._revision += 1
        writes.revision = self._revision
        return self._revision

    @staticmethod
    def _put(writes: ClusterWrites, revision: int, event: EventType, pods: list[Pod]) -> None:
        writes.puts.update((pod.key, pod) for pod in pods)
        writes.entries.append(LogEntry(revision, revision, tuple(Change(event, pod) for pod in pods)))

    def _commit(self, writes: ClusterWrites) -> Callable[[], list[Pod]]:
        def run() -> list[Pod]:
            self._store.commit([writes])
            return [pod for pod in writes.puts.values() if isinstance(pod, Pod)]

        return run


class Clock:
    """Wall and process time of what was measured, by name."""

    def __init__(self) -> None:
        self._times: dict[str, list[tuple[float, float]]] = {}

    def measure(self, name: str, commit: Callable[[], list[Pod]]) -> list[Pod]:
        wall, process = time.perf_counter(), time.process_time()
        pods = commit()
        spent = (time.perf_counter() - wall, time.process_time() - process)
        self._times.setdefault(name, []).append(spent)
        return pods

    def report(self, database: str) -> None:
        for name, times in self._times.items():
            wall, process = (sorted(1e3 * one for one in column) for column in zip(*times, strict=True))
            print(  # noqa: T201
                f"{database:12}{name:28}wall {wall[0]:7.1f} ms best {statistics.median(wall):7.1f} median   "
                f"process {process[0]:7.1f} ms best {statistics.median(process):7.1f} median"
            )


def measure(database: str, url: str, rounds: int) -> None:
    """Commit on a fresh store and print."""
    store = open_store(url)
    cluster, clock = Cluster(store), Clock()
    for _ in range(rounds):
        pods = clock.measure("add 10 000 pods", cluster.add(1, 10_000))
        clock.measure("bind 10 000 pods", cluster.bind(1, pods))
        pods = clock.measure("add 64 gangs of 8", cluster.add(64, 8))
        clock.measure("bind 64 gangs of 8", cluster.bind(64, pods))
        pods = clock.measure("add one gang of 8", cluster.add(1, 8))
        clock.measure("bind one gang of 8", cluster.bind(1, pods))
    store.close()
    clock.report(database)


@contextmanager
def _fresh_postgres() -> Iterator[str]:
    with running_server() as server, server.fresh_database() as url:
        yield url


if __name__ == "__main__":
    wanted_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as directory:
        measure("sqlite", f"sqlite:///{directory}/muster.db", wanted_rounds)
    with _fresh_postgres() as fresh:
        measure("postgresql", fresh, wanted_rounds)
