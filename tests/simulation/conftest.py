"""A service that the tests of a module share; each test has a cluster of its own in it."""

import itertools
from collections.abc import Iterator

import pytest

from tests.endtoend.service import Service
from tests.simulation.asking import Simulated

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with Service(f"sqlite:///{folder / 'muster.db'}", folder / "log") as running:
        yield running


@pytest.fixture
def cluster(service: Service) -> Simulated:
    return Simulated(service, f"cluster-{next(_numbers)}")
