"""A store whose transactions a test counts, holds and refuses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from muster.engine.ports import ClusterWrites, StoreUnavailableError
from muster.store.store import SqlStore

SOON = 10


class CountingStore(SqlStore):
    """Remembers how many revisions each transaction had."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.revisions: list[int] = []

        self.may_commit = threading.Event()
        self.may_commit.set()
        self.refuses = False
        self._committing = threading.Event()

    def forget(self) -> None:
        """Count from here."""
        self.revisions.clear()
        self._committing.clear()

    async def until_committing(self) -> None:
        """Return once a transaction is on its way."""
        await asyncio.to_thread(self._committing.wait, SOON)

    def commit(self, writes: Sequence[ClusterWrites]) -> None:
        self._committing.set()
        self.may_commit.wait(SOON)
        if self.refuses:
            raise StoreUnavailableError("full")
        super().commit(writes)
        self.revisions.append(sum(len(each.entries) for each in writes))
