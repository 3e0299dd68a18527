"""Fixtures that any test may ask for: stores of both kinds and a clock.

PostgreSQL is a real server that each test process starts once. Where it cannot run, its tests are skipped, and
fail instead if MUSTER_REQUIRE_POSTGRES is 1, so that no pipeline is green without it.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.clock import FakeClock
from tests.postgres_server import PostgresServer, PostgresUnavailableError, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with contextlib.ExitStack() as until_the_end:
        try:
            server = until_the_end.enter_context(running_server())
        except PostgresUnavailableError as reason:
            refuse = pytest.fail if os.environ.get("MUSTER_REQUIRE_POSTGRES") == "1" else pytest.skip
            refuse(f"no PostgreSQL: {reason}")
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a server's maintenance database; `postgres_database` is what a store is put into."""
    return postgres_server.url()


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database of the test's own."""
    with postgres_server.fresh_database() as url:
        yield url


@pytest.fixture
def sqlite_database(tmp_path: Path) -> str:
    """The URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'muster.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, once of each kind."""
    fixture = {"sqlite": "sqlite_database", "postgresql": "postgres_database"}[request.param]
    return str(request.getfixturevalue(fixture))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
