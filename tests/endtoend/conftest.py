"""A service that the tests of a module share, once on each store, and once with a receiver; each test has a cluster of its own in it."""

import contextlib
import itertools
from collections.abc import Iterator

import pytest

from tests.endtoend.cluster import Cluster
from tests.endtoend.collector import Collector, running_collector
from tests.endtoend.service import LOCAL, Service
from tests.postgres_server import PostgresServer

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with contextlib.ExitStack() as until_the_end:
        store = f"sqlite:///{folder / 'muster.db'}"
        arguments: tuple[str, ...] = LOCAL
        if request.param == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            store = until_the_end.enter_context(server.fresh_database())
            arguments = (*LOCAL, "--receiver")
        yield until_the_end.enter_context(Service(store, folder / "log", arguments))


@pytest.fixture
def cluster(service: Service) -> Cluster:
    return Cluster(service, f"cluster-{next(_numbers)}")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector
