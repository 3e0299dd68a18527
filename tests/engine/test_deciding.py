"""Where a unit is decided, and how often the same work is done for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from muster.core.decide import decide_and_assume
from muster.core.decision import Decision, SearchEnd
from muster.core.framework import Profile
from muster.core.observer import Observer
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.engine.deciding import INLINE_TERMS, Decider, Verdict
from muster.engine.decision_input import input_of
from muster.engine.ports import DecisionInput
from muster.engine.telemetry_port import NullTelemetry
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.group import PodGroup
from muster.model.meta import LabelSelector
from muster.model.pod import Affinity, Container, Pod, PodAffinity, PodAffinityTerm, Resources
from tests.engine.held_pool import HeldPool
from tests.engine.preempting_cluster import CLIENTS_EVICT, SCHEDULED, WAITING, full_cluster, gang, low
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, node, pods
from tests.fakes.clock import FakeClock

LARGE = leaf("large", 4)
OTHER = leaf("other", 4)
LARGE_AND_HIGH = leaf("large-and-high", 4, priority=10)


class Placing:
    """Counts how often a unit is placed in the event loop."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, snapshot: Snapshot, unit: Unit, profile: Profile, observer: Observer) -> Decision:
        self.times += 1
        return decide_and_assume(snapshot, unit, profile, observer)


@dataclass
class Busy:
    """A cluster whose only worker has a unit in work, and another unit that needs the worker too."""

    trees: TreeCluster
    decider: Decider

    @property
    def revision(self) -> int:
        return self.trees.cluster.state.revision

    async def asked(self, group: PodGroup) -> asyncio.Task[Verdict]:
        return await asked(self.decider, self.trees, group)

    def input_now(self, group: PodGroup) -> DecisionInput:
        unit = build_unit(self.trees.cluster, group.key)
        return input_of(self.trees.cluster, unit, PROFILE, self.revision)


@pytest.fixture
async def busy(clock: FakeClock) -> AsyncIterator[Busy]:
    trees, pool = unsearched(), WorkerPool(1)
    some = pods(OTHER, 4)
    trees.apply(OTHER, *sized(some[:2], "3"), *sized(some[2:], "2"))
    made = Busy(trees, Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry()))
    first = await made.asked(LARGE)
    yield made
    await first
    await pool.close()


@pytest.fixture
def placing(monkeypatch: pytest.MonkeyPatch) -> Placing:
    counted = Placing()
    monkeypatch.setattr("muster.engine.deciding.decide_and_assume", counted)
    return counted


async def test_a_unit_that_waits_for_its_search_is_not_placed_greedily_again_until_something_changed(
    placing: Placing, clock: FakeClock
) -> None:
    trees, pool = unsearched(), HeldPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())

    first = await asked(decider, trees)
    second = await asked(decider, trees)
    assert placing.times == 1
    trees.apply(node("another", cpu=1))
    third = await asked(decider, trees)

    assert placing.times == 2
    pool.answer()
    decided = [(await each).decision for each in (first, second, third)]
    assert decided[0] == decided[1]


async def test_a_dry_run_of_a_unit_that_preempts_shares_the_answer_of_its_own_cycle(clock: FakeClock) -> None:
    trees, group = full_cluster()
    pool = WorkerPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())
    unit = build_unit(trees.cluster, group.key)

    first, second = await asyncio.gather(decider.verdict(unit), decider.verdict(unit))
    await pool.close()

    assert first.decision.preemption is not None
    assert second.decision.preemption is first.decision.preemption


async def test_a_unit_that_waits_for_its_worker_is_decided_on_the_state_of_when_it_is_free(
    busy: Busy,
) -> None:
    waiting = await busy.asked(OTHER)
    busy.trees.apply(node("another", cpu=10))

    verdict = await waiting

    assert verdict.snapshot_revision == busy.revision
    assert verdict.input == busy.input_now(OTHER)
    assert "another" in verdict.decision.assignments.nodes
    assert not verdict.is_outdated


async def test_a_tree_that_changes_while_it_waits_for_its_worker_makes_the_answer_outdated(
    busy: Busy,
) -> None:
    waiting = await busy.asked(OTHER)
    busy.trees.apply(*sized(pods(OTHER, 1, first=4), "1"))

    assert (await waiting).is_outdated


async def test_a_unit_that_goes_while_it_waits_for_its_worker_makes_the_answer_outdated(busy: Busy) -> None:
    waiting = await busy.asked(OTHER)
    busy.trees.delete(OTHER, *pods(OTHER, 4), force=True)

    assert (await waiting).is_outdated


async def test_a_unit_whose_last_potential_victim_goes_while_it_waits_is_decided_as_one_that_has_none(
    clock: FakeClock,
) -> None:
    trees, group = full_cluster()
    pool = WorkerPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())
    other, members = gang("other", 3, priority=10)
    trees.apply(other, *members)

    first = asyncio.create_task(decider.verdict(build_unit(trees.cluster, group.key)))
    second = asyncio.create_task(decider.verdict(build_unit(trees.cluster, other.key)))
    await asyncio.sleep(0)
    trees.apply(*(varied_priority(each, 10) for each in low()))
    late = await second
    await first
    again = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, WorkerPool(0), NullTelemetry())
    now = await again.verdict(build_unit(trees.cluster, other.key))
    await pool.close()

    assert late.snapshot_revision == trees.cluster.state.revision
    assert late.decision == now.decision
    assert late.input == now.input


async def test_a_unit_that_waits_for_victims_is_searched_for_room_that_came_free_elsewhere(
    clock: FakeClock,
) -> None:
    trees = TreeCluster(node("n", cpu=10))
    trees.eviction = CLIENTS_EVICT
    trees.apply(*low(10, grace=30, on="n"))
    trees.apply(LARGE_AND_HIGH, *sized(pods(LARGE_AND_HIGH, 2, priority=10), "3"))
    trees.apply(*sized(pods(LARGE_AND_HIGH, 2, first=2, priority=10), "2"))
    waits = trees.cycle()
    assert waits is not None
    assert waits.code is WAITING
    pool = WorkerPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())

    trees.apply(node("four", cpu=4), node("six", cpu=6))
    decision = (await decider.verdict(build_unit(trees.cluster, LARGE_AND_HIGH.key))).decision
    await pool.close()

    assert decision.code is SCHEDULED
    assert decision.search.end is SearchEnd.FOUND


@pytest.mark.parametrize("has_them_itself", [True, False])
async def test_a_pod_whose_place_depends_on_many_terms_is_left_to_a_worker(
    placing: Placing, clock: FakeClock, *, has_them_itself: bool
) -> None:
    trees = TreeCluster(node("n", cpu=10, labels={"host": "n"}))
    many, plain = pods(OTHER, 1)[0], pods(OTHER, 2)[1]
    many, plain = apart_from_many(replace(many, group="")), replace(plain, group="")
    if not has_them_itself:
        trees.apply(replace(many, name="runs", node_name="n"))
        many, plain = replace(plain, labels={"app": "web"}), replace(plain, name="plain", labels={})
    trees.apply(many, plain)
    pool = WorkerPool(1)
    decider = Decider(trees.cluster, clock, {PROFILE.name: PROFILE}, pool, NullTelemetry())

    await decider.verdict(build_unit(trees.cluster, plain.key))
    assert placing.times == 1
    await decider.verdict(build_unit(trees.cluster, many.key))
    await pool.close()

    assert placing.times == 1


def apart_from_many(pod: Pod) -> Pod:
    terms = tuple(
        PodAffinityTerm(LabelSelector({"app": "web"}), topology_key=f"key-{i}")
        for i in range(INLINE_TERMS + 1)
    )
    affinity = Affinity(pod_anti_affinity=PodAffinity(terms))
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def unsearched() -> TreeCluster:
    """Sizes that go together in room only for a search: ten cores for ten, and each pod finds room of its own."""
    trees = TreeCluster(*(node(f"node-{i}", cpu=cpu) for i, cpu in enumerate((4, 4, 2))))
    some = pods(LARGE, 4)
    trees.apply(LARGE, *sized(some[:2], "3"), *sized(some[2:], "2"))
    return trees


def varied_priority(pod: Pod, priority: int) -> Pod:
    return replace(pod, spec=replace(pod.spec, priority=priority))


def sized(some: list[Pod], cpu: str) -> list[Pod]:
    containers = (Container(resources=Resources(requests={"cpu": cpu})),)
    return [replace(each, spec=replace(each.spec, containers=containers)) for each in some]


async def asked(decider: Decider, trees: TreeCluster, group: PodGroup = LARGE) -> asyncio.Task[Verdict]:
    """A verdict that waits for its worker by now."""
    task = asyncio.create_task(decider.verdict(build_unit(trees.cluster, group.key)))
    await asyncio.sleep(0)
    assert not task.done()
    return task
