"""Checkpoints of an SQLite database beside its writer, whose commits would take tens of milliseconds with them.

What the log holds is copied into the database every second in which something was committed: a passive checkpoint,
which waits for nobody and for which nobody waits. The log begins anew only after one that copied all of it, so what was
committed meanwhile is copied at once, a few times over. A log that was never copied as a whole for long is left to the
writer, which does it in a commit. A commit waits for the disk as long as a checkpoint has it, some 20 ms, so one begins
right behind a commit if another comes soon: those who were answered by it have to call again before the next.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress

PAUSE_SECONDS = 1.0
COMMIT_SECONDS = 0.25
"""For how long the end of a commit is waited for."""
MOST_IN_A_ROW = 4


class Checkpoints:
    """Of the database file `path`, from `start` to `stop`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._written = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; the database exists and has a write-ahead log."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="muster-checkpoints", daemon=True)
        self._thread.start()

    def written(self) -> None:
        """Something was committed. For any thread."""
        self._written.set()

    def stop(self) -> None:
        """End, once a checkpoint that is being made is done."""
        self._stopping.set()
        self._written.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            while not self._stopping.wait(PAUSE_SECONDS):
                self._written.wait()
                self._written.clear()
                if not self._stopping.is_set():
                    self._written.wait(COMMIT_SECONDS)
                for _ in range(MOST_IN_A_ROW):
                    self._written.clear()
                    # Where the disk is full or the file gone, the writer's next commit says so.
                    with suppress(sqlite3.Error):
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    if not self._written.is_set():
                        break
