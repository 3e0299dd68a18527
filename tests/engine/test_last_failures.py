"""A unit that an event woke and that is no better off waits on without a cycle; one that is better off has its cycle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from muster.engine.cluster_service import ClusterService
from muster.engine.errors import Refusal
from muster.engine.last_failures import LastFailures
from muster.engine.mutation import Mutation
from muster.engine.ports import QueuedUnit, UnitState
from muster.engine.registry import ClusterRegistry, EngineOptions
from muster.engine.telemetry_port import NullTelemetry
from muster.model.meta import LabelSelector
from muster.model.objects import ClusterObject
from muster.model.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from muster.store.store import SqlStore
from tests import dsl
from tests.engine.queue_worlds import APART, busy, ours
from tests.engine.tree_cluster import PROFILE, leaf, node, pods
from tests.fakes.clock import FakeClock

GANG = leaf("gang", 4, workload="")
AWAY_FROM_ALL = Affinity(
    pod_anti_affinity=PodAffinity((PodAffinityTerm(label_selector=LabelSelector(), topology_key="zone"),))
)
RACKED = leaf("gang", 4, workload="", same="rack")


class Moves(NullTelemetry):
    """Which moves into UNSCHEDULABLE were told."""

    def __init__(self) -> None:
        self.causes: list[str] = []

    def queue_moved(self, state: str, event: str, units: int) -> None:
        if state == UnitState.UNSCHEDULABLE.name:
            self.causes += [event] * units


class Waiting:
    """A gang that failed twice, and what the cycles make of it afterwards."""

    def __init__(self, service: ClusterService, clock: FakeClock, moves: Moves) -> None:
        self._service = service
        self._clock = clock
        self._moves = moves
        self._ordinal = 0

    @property
    def row(self) -> QueuedUnit:
        return self._service.cluster.queue.rows[GANG.key]

    @property
    def remembered(self) -> LastFailures:
        return self._service.cluster.failures

    def apply(self, *objects: ClusterObject) -> None:
        def put(mutation: Mutation) -> tuple[None, bool]:
            for each in objects:
                self._ordinal += 1
                mutation.put(
                    replace(each, uid=each.name, ordinal=self._ordinal, resource_version=mutation.revision)
                )
            return None, True

        self._service.write(put)

    def remove(self, *objects: ClusterObject) -> None:
        def take(mutation: Mutation) -> tuple[None, bool]:
            for each in objects:
                mutation.remove(each.key)
            return None, True

        self._service.write(take)

    async def failed_twice(self, *objects: ClusterObject) -> None:
        self.apply(*objects)
        await self.rest()
        self._service.cluster.queue.bring_forward(GANG.key)
        await self.rest()
        assert self.row.attempts == 2

    async def rest(self) -> None:
        self._service.cycles.wake()
        for _ in range(20):
            await asyncio.sleep(0)

    async def tried(self) -> list[str]:
        """How the unit came to wait again, once its backoff is over."""
        self._moves.causes.clear()
        self._clock.advance(61)
        self._service._tick()
        await self.rest()
        return self._moves.causes


@pytest.fixture
async def waiting(sqlite_database: str, clock: FakeClock) -> AsyncIterator[Waiting]:
    moves = Moves()
    registry = ClusterRegistry(
        SqlStore(sqlite_database), clock, {PROFILE.name: PROFILE}, moves, EngineOptions(workers=0)
    )
    await registry.start()
    yield Waiting(registry.services["default"], clock, moves)
    await registry.close(Refusal("SERVER_DRAINING", "the test is over"))


def small(name: str, on: str, *, cpu: str = "1", priority: int = 0) -> Pod:
    return replace(ours(dsl.pod(cpu=cpu, priority=priority), on=on), name=name)


async def test_room_that_was_given_back_and_taken_again_makes_no_cycle(waiting: Waiting) -> None:
    passing = small("passing", "n")
    await waiting.failed_twice(node("n", cpu=4), passing, GANG, *pods(GANG, 4))

    waiting.remove(passing)
    waiting.apply(small("next", "n"))

    assert await waiting.tried() == ["UnchangedFailure"]
    assert (waiting.row.state, waiting.row.attempts) == (UnitState.UNSCHEDULABLE, 3)


async def test_room_that_moved_to_another_node_makes_none_for_equal_pods_that_may_run_anywhere(
    waiting: Waiting,
) -> None:
    passing, nodes = small("passing", "n"), [node(name, cpu=2) for name in ("n", "m")]
    await waiting.failed_twice(*nodes, passing, GANG, *pods(GANG, 4))

    waiting.remove(passing)
    waiting.apply(small("next", "m"))

    assert await waiting.tried() == ["UnchangedFailure"]


async def test_room_that_moved_to_another_node_makes_one_for_a_gang_of_one_rack(waiting: Waiting) -> None:
    passing = small("passing", "n")
    nodes = [node(name, cpu=4, labels={"rack": name}) for name in ("n", "m")]
    staying = [small(f"stays-{name}", name) for name in ("n", "m")]
    await waiting.failed_twice(*nodes, *staying, passing, RACKED, *pods(RACKED, 4))

    waiting.remove(passing)
    waiting.apply(small("next", "m"))

    assert await waiting.tried() == ["ScheduleAttemptFailure"]


async def test_more_room_that_is_not_enough_makes_one_and_is_then_what_is_compared_with(
    waiting: Waiting,
) -> None:
    first, second = small("first", "n"), small("second", "n")
    await waiting.failed_twice(node("n", cpu=4), first, second, GANG, *pods(GANG, 4))

    waiting.remove(first)
    more = list(await waiting.tried())
    waiting.remove(second)
    waiting.apply(second)

    assert more == ["ScheduleAttemptFailure"]
    assert await waiting.tried() == ["UnchangedFailure"]


async def test_pods_of_lower_priority_in_the_place_of_equal_ones_make_a_cycle(waiting: Waiting) -> None:
    """They may be preempted: the room counts that is to be had without them."""
    high = leaf("gang", 4, workload="", priority=5)
    equal = small("equal", "n", priority=5)
    await waiting.failed_twice(node("n", cpu=4), equal, high, *pods(high, 4, priority=5))

    waiting.remove(equal)
    waiting.apply(small("low", "n", priority=1))
    await waiting.tried()
    await waiting.rest()

    assert GANG.key not in waiting._service.cluster.queue.rows


async def test_a_changed_node_makes_a_cycle(waiting: Waiting) -> None:
    passing = small("passing", "n")
    await waiting.failed_twice(node("n", cpu=4), passing, GANG, *pods(GANG, 4))

    waiting.apply(node("n", cpu=4, labels={"disk": "ssd"}))

    assert await waiting.tried() == ["ScheduleAttemptFailure"]


async def test_events_that_are_of_no_use_again_and_again_do_not_put_the_safety_net_off(
    waiting: Waiting,
) -> None:
    passing = small("passing", "n")
    await waiting.failed_twice(node("n", cpu=4), passing, GANG, *pods(GANG, 4))
    causes: list[str] = []

    for _ in range(5):
        waiting.remove(passing)
        waiting.apply(passing)
        causes += await waiting.tried()

    assert causes == ["UnchangedFailure"] * 4 + ["ScheduleAttemptFailure"]


async def test_the_safety_net_makes_a_cycle_whatever_is_remembered(waiting: Waiting) -> None:
    await waiting.failed_twice(node("n", cpu=3), GANG, *pods(GANG, 4))
    waiting._clock.advance(240)

    assert await waiting.tried() == ["ScheduleAttemptFailure"]


async def test_a_unit_whose_pods_changed_has_its_cycle(waiting: Waiting) -> None:
    await waiting.failed_twice(node("n", cpu=3), GANG, *pods(GANG, 4))
    waiting._moves.causes.clear()

    waiting.apply(*pods(GANG, 1, first=4))
    await waiting.rest()

    assert waiting._moves.causes == ["ScheduleAttemptFailure"]


@pytest.mark.parametrize("reads", ["its own term", "a term of another", "a port"])
async def test_nothing_is_remembered_where_more_than_room_decides(waiting: Waiting, reads: str) -> None:
    member = dsl.pod(cpu="9")
    around: list[ClusterObject] = [node("n", cpu=4)]
    if reads == "its own term":
        member = dsl.pod(cpu="9", affinity=APART)
    elif reads == "a port":
        member = dsl.pod(cpu="9", host_port=80)
    else:
        around.append(busy("1", affinity=AWAY_FROM_ALL))
    members = [replace(ours(member, group="gang"), name=f"gang-{i}") for i in range(4)]

    await waiting.failed_twice(*around, GANG, *members)

    assert len(waiting.remembered) == 0
