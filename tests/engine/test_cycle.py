"""Where a unit is decided: here while that is quick, in a worker process as soon as a search may be needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from muster.core.decision import Decision, SearchEnd
from muster.core.framework import Profile
from muster.core.tree import Unit
from muster.engine.array_feed import ArrayFeed
from muster.engine.binder import pods_by_ordinal
from muster.engine.cycle import CycleRunner, CycleTools
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.uncommitted import uncommitted
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerAnswer, WorkerPool
from muster.engine.writer import Writer
from muster.model.group import PodGroup
from muster.model.pod import Pod
from muster.store.store import SqlStore
from tests.dsl import pod
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, node
from tests.fakes.clock import FakeClock

GANG = leaf("gang", 4)


class CountingPool(WorkerPool):
    """One real worker, and how many units it was given."""

    asked = 0

    async def decide(
        self, cluster: str, feed: ArrayFeed, unit: Callable[[], Unit], profile: Profile, *, is_recording: bool
    ) -> WorkerAnswer:
        self.asked += 1
        return await super().decide(cluster, feed, unit, profile, is_recording=is_recording)


class Deciding:
    """A cluster with nodes of four and of six cores, whose units are decided without being committed."""

    def __init__(self, store_url: str, pool: CountingPool) -> None:
        clock, telemetry = FakeClock(), NullTelemetry()
        writer = Writer(SqlStore(store_url), clock, telemetry, lambda _: None, _nothing)
        self.pool = pool
        self.trees = TreeCluster(node("a", cpu=4), node("b", cpu=6))
        tools = CycleTools(clock, {PROFILE.name: PROFILE}, pool, writer, telemetry)
        self.cycles = CycleRunner(self.trees.cluster, tools, lambda _: None, lambda: None)

    async def decide(self, group: PodGroup, *cores: str) -> Decision:
        self.trees.apply(group, *(_member(group, f"p{i}", each) for i, each in enumerate(cores)))
        return (await self.cycles.verdict(build_unit(self.trees.cluster, group.key))).decision


@pytest.fixture
async def deciding(store_url: str) -> AsyncIterator[Deciding]:
    pool = CountingPool(1)
    yield Deciding(store_url, pool)
    await pool.close()


async def test_a_small_gang_that_fits_is_decided_here(deciding: Deciding) -> None:
    decision = await deciding.decide(GANG, "1", "1", "1", "1")

    assert len(decision.assignments.pods) == 4
    assert deciding.pool.asked == 0


async def test_a_small_gang_of_equal_pods_that_does_not_fit_is_decided_here(deciding: Deciding) -> None:
    decision = await deciding.decide(GANG, "3", "3", "3", "3")

    assert decision.search.end is SearchEnd.EXHAUSTED
    assert deciding.pool.asked == 0


async def test_a_small_gang_that_only_a_search_places_is_given_to_a_worker(deciding: Deciding) -> None:
    decision = await deciding.decide(GANG, "3", "3", "2", "2")

    assert decision.search.end is SearchEnd.FOUND
    assert deciding.pool.asked == 1
    assert not deciding.trees.cluster.feed.flush().has_assumptions


async def test_what_was_tried_names_its_pods_though_they_went_while_it_was_decided(
    deciding: Deciding,
) -> None:
    cluster = deciding.trees.cluster
    members = [_member(GANG, f"p{place}", "1") for place in range(4)]
    deciding.trees.apply(GANG, *members)
    unit = build_unit(cluster, GANG.key)
    pods = pods_by_ordinal(cluster, unit)
    verdict = await deciding.cycles.verdict(unit)

    deciding.trees.delete(*members)
    record = uncommitted(cluster, pods, verdict, verdict.decision, 0)

    assert record.assignments.pods == ("p0", "p1", "p2", "p3")


def _member(group: PodGroup, name: str, cores: str) -> Pod:
    made = pod(name, cpu=cores)
    spec = replace(made.spec, scheduler_name=PROFILE.name)
    return replace(made, namespace=group.namespace, group=group.name, spec=spec)


async def _nothing(names: list[str]) -> None:
    """Nothing is written in these tests, so nothing can fail."""
