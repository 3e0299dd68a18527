"""Where a benchmark runs: a folder on disk, and stores that sync to it as in production.

Decides how databases are made for a measurement and taken away again. PostgreSQL is started once, when a row first asks
for it, from the wheel that the tests use.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.postgres_server import SETTINGS, PostgresServer, running_server

SQLITE, POSTGRESQL = "sqlite", "postgresql"
DATABASES = (SQLITE, POSTGRESQL)
DURABLE = {"fsync": "on", "full_page_writes": "on"}
"""PostgreSQL's own defaults, which the tests do without."""


@dataclass(eq=False)
class Place:
    """`folder` is empty at first and goes with the place."""

    folder: Path
    _until_the_end: ExitStack
    _postgres: PostgresServer | None = field(default=None, init=False)

    @contextmanager
    def store(self, database: str) -> Iterator[str]:
        """The URL of an empty store of a kind, for as long as it is needed."""
        if database == POSTGRESQL:
            with self._postgres_server().fresh_database() as url:
                yield url
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield f"sqlite:///{folder}/muster.db"

    def _postgres_server(self) -> PostgresServer:
        if self._postgres is None:
            self._postgres = self._until_the_end.enter_context(running_server({**SETTINGS, **DURABLE}))
        return self._postgres


@contextmanager
def opened_place() -> Iterator[Place]:
    """A place in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder, ExitStack() as until_the_end:
        yield Place(Path(folder), until_the_end)
