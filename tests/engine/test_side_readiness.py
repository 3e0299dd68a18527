"""Which clusters the side worker is made ready for: large ones that are quiet, as far as there is room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.engine import side_readiness
from muster.engine.cluster import Cluster
from muster.engine.cluster_service import ClusterService
from muster.engine.side_readiness import QUIET_LOOKS, QUIET_REVISIONS, SideReadiness
from muster.engine.side_worker import SideWorker, SideWorkerFailedError
from tests.engine.small_cluster import SmallCluster, node


class FakeSide:
    """Remembers for whom it was made ready; breaks on one of them."""

    def __init__(self, broken: str = "") -> None:
        self.ready: list[str] = []
        self.tried: list[str] = []
        self._broken = broken

    async def make_ready(self, cluster: Cluster) -> None:
        self.tried.append(cluster.name)
        if cluster.name == self._broken:
            raise SideWorkerFailedError("it died")
        self.ready.append(cluster.name)


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_readiness, "LEAST_OBJECTS", 2)
    monkeypatch.setattr(side_readiness, "MOST_OBJECTS", 7)


def _clusters(**sizes: int) -> dict[str, Cluster]:
    made = {name: SmallCluster(*(node(f"n{i}") for i in range(size))).cluster for name, size in sizes.items()}
    for name, cluster in made.items():
        cluster.name = name
    return made


def _readiness(side: FakeSide, clusters: dict[str, Cluster]) -> SideReadiness:
    services: Any = {name: SimpleNamespace(cluster=cluster) for name, cluster in clusters.items()}
    return SideReadiness(cast("SideWorker", side), cast("dict[str, ClusterService]", services))


async def test_it_is_ready_for_the_large_ones_the_largest_first_within_its_room() -> None:
    side = FakeSide()

    await _readiness(side, _clusters(small=1, two=2, three=3, four=4)).catch_up()

    assert side.ready == ["four", "three"]


async def test_a_cluster_that_is_being_written_waits_until_it_has_been_quiet_for_a_while() -> None:
    side, clusters = FakeSide(), _clusters(two=2)
    readiness = _readiness(side, clusters)

    for _ in range(2):  # a stream that pauses for less than that
        clusters["two"].state.revision += QUIET_REVISIONS + 1
        for _ in range(QUIET_LOOKS):
            await readiness.catch_up()
    while_written = list(side.ready)
    await readiness.catch_up()

    assert (while_written, side.ready) == ([], ["two"])


async def test_a_cluster_that_it_fails_for_is_left_to_its_questions_and_the_next_is_made_ready() -> None:
    side = FakeSide(broken="four")
    readiness = _readiness(side, _clusters(three=3, four=4))

    await readiness.catch_up()
    await readiness.catch_up()

    assert (side.ready, side.tried) == (["three", "three"], ["four", "three", "three"])
