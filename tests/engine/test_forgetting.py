"""Old history goes on being forgotten while values, which are many, take their time; on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from muster.engine import forgetting
from muster.engine.cluster_service import ClusterService
from muster.engine.forgetting import HISTORY_SECONDS
from muster.engine.mutation import Mutation
from muster.engine.ports import OldHistory, UnusedValues
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.store import compaction
from muster.store.store import SqlStore
from tests.engine.started_registry import OVER
from tests.engine.tree_cluster import PROFILE, leaf, pods
from tests.fakes.clock import FakeClock

KEPT_SECONDS = 60


class SlowStore(SqlStore):
    """Takes half a minute to forget a slice of values, and remembers what it forgot one after the other.

    unsearched: revisions that were gone from the log before they were searched for uses of the values.
    """

    def __init__(self, url: str, clock: FakeClock) -> None:
        super().__init__(url)
        self.slices: list[str] = []
        self.unsearched = 0
        self.clock = clock

    def forget_old(self, cluster: str, token: int, old: OldHistory) -> OldHistory | None:
        self.slices.append("history")
        return super().forget_old(cluster, token, old)

    def forget_unused(self, cluster: str, token: int, unused: UnusedValues) -> UnusedValues | None:
        self.slices.append("values")
        self.unsearched += max(0, self.compacted_revision(cluster) - unused.revision)
        self.clock.advance(HISTORY_SECONDS)
        return super().forget_unused(cluster, token, unused)


@pytest.fixture
def store(sqlite_database: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> SlowStore:
    monkeypatch.setattr(compaction, "VALUES_AT_ONCE", 1)
    for name in ("REST_PER_WORK", "LITTLE_REST_PER_WORK"):
        monkeypatch.setattr(forgetting, name, 0.0)
    return SlowStore(sqlite_database, clock)


@pytest.fixture
async def registry(store: SlowStore, clock: FakeClock) -> AsyncIterator[ClusterRegistry]:
    options = EngineOptions(workers=0, log_seconds=KEPT_SECONDS)
    started = ClusterRegistry(store, clock, {PROFILE.name: PROFILE}, NullTelemetry(), options)
    await started.start()
    yield started
    await started.close(OVER)


def gated(count: int) -> list[Pod]:
    """Pods that nobody schedules, each with labels of its own."""
    alike = pods(leaf("any"), count)
    return [replace(each, group="", labels={"own": each.name}, gates=("wait",)) for each in alike]


def write(service: ClusterService, objects: list[Pod]) -> None:
    def step(mutation: Mutation) -> tuple[None, bool]:
        for place, each in enumerate(objects):
            ordinal = (mutation.revision << 20) + place
            stored = replace(each, uid=each.name, ordinal=ordinal, resource_version=mutation.revision)
            mutation.put(stored)
        return None, True

    service.write(step)


def remove(service: ClusterService, objects: list[Pod]) -> None:
    def step(mutation: Mutation) -> tuple[None, bool]:
        for each in objects:
            mutation.remove(each.key)
        return None, True

    service.write(step)


async def test_history_is_forgotten_between_the_values_that_nothing_uses(
    registry: ClusterRegistry, store: SlowStore
) -> None:
    service = registry.services["default"]
    await come_and_gone(service, store.clock)
    write(service, gated(6)[5:])
    await service.durable()

    await registry.compact()

    assert store.slices[:5] == ["history", "values", "values", "values", "history"]
    assert store.slices[5:] == ["values"] * 3
    assert store.compacted_revision("default") == service.cluster.state.revision


async def test_no_history_goes_before_it_has_been_searched_for_uses_of_the_values_that_go(
    registry: ClusterRegistry, store: SlowStore
) -> None:
    service = registry.services["default"]
    gone = await come_and_gone(service, store.clock)
    compacting = asyncio.create_task(registry.compact())
    while "values" not in store.slices:
        await asyncio.sleep(0)
        write(service, gone[:1])
        remove(service, gone[:1])
    write(service, gone)
    await service.durable()
    await compacting

    assert store.unsearched == 0
    assert [each.labels for each in read_again(store, gone)] == [each.labels for each in gone]


async def come_and_gone(service: ClusterService, clock: FakeClock) -> list[Pod]:
    """Pods whose values nothing uses and whose history is old."""
    gone = gated(5)
    write(service, gone)
    remove(service, gone)
    await service.durable()
    clock.advance(KEPT_SECONDS + 1)
    return gone


def read_again(store: SlowStore, pods: list[Pod]) -> list[ClusterObject]:
    """As the store has them."""
    stored = {each.key: each for each in store.load_cluster("default").objects}
    return [stored[each.key] for each in pods]
