"""`kill -9` in the middle of commits leaves a prefix of whole transactions, with all that were acknowledged."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from muster.engine.log_entries import EventType
from muster.engine.ports import StoreUnavailableError
from muster.model.meta import ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.store.store import SqlStore, open_store
from tests.contract.committing_process import GANG_SIZE

ROOT = Path(__file__).parents[2]
ROUNDS = 4
DEADLINE_SECONDS = 20


def _run_and_kill(url: str, acknowledged: int, pause_seconds: float) -> int:
    """Let a process commit some revisions, kill it a moment later; returns the last revision that it acknowledged."""
    roots = os.pathsep.join(str(ROOT / part) for part in (".", "service", "store"))
    command = [sys.executable, "-m", "tests.contract.committing_process", url]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": roots}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        time.sleep(pause_seconds)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    # The last line may have been cut short by the kill.
    return max([acknowledged, *(int(line) for line in lines if line.endswith("\n"))])


def _open_once_free(url: str) -> SqlStore:
    """A server takes a moment to notice that a client is gone."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return open_store(url)
        except StoreUnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _replayed(store: SqlStore) -> tuple[list[int], dict[ObjectKey, ClusterObject]]:
    """The revisions of the log, and the objects that they add up to."""
    entries = store.read_log("main", 0, 1_000_000)
    objects: dict[ObjectKey, ClusterObject] = {}
    for entry in entries:
        for change in entry.changes:
            if change.type is EventType.DELETED:
                del objects[change.object.key]
            else:
                objects[change.object.key] = change.object
    return [entry.revision for entry in entries], objects


def test_killed_commits_leave_a_prefix_of_whole_transactions(store_url: str) -> None:
    acknowledged, chance = 0, random.Random(7)
    for _ in range(ROUNDS):
        acknowledged = _run_and_kill(store_url, acknowledged, chance.uniform(0, 0.3))

        store = _open_once_free(store_url)
        loaded = store.load_cluster("main")
        revisions, objects = _replayed(store)
        store.close()

        assert loaded.revision >= acknowledged
        assert revisions == list(range(1, loaded.revision + 1))
        assert {one.key: one for one in loaded.objects} == objects
        pods = [one for one in loaded.objects if isinstance(one, Pod)]
        assert set(Counter(pod.group for pod in pods).values()) == {GANG_SIZE}
        pending = {pod.group for pod in pods if not pod.node_name}
        assert pending == {unit.key.name for unit in loaded.units}
