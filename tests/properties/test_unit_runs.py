"""Units that are decided and written in runs come out just as by a cycle each: objects, queue, log, decisions, room."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.core.observer import RecordingObserver
from muster.engine.deciding import Decider
from muster.engine.mutation import Mutation
from muster.engine.placed_units import PlacedUnits
from muster.engine.ports import DecisionRecord, QueuedUnit
from muster.engine.telemetry_port import EngineTelemetry, NullTelemetry, StartedCycle
from muster.engine.unit_runs import UnitRuns
from muster.engine.units import build_unit
from muster.engine.worker_pool import WorkerPool
from muster.model.meta import KINDS, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod
from muster.telemetry.cycle_spans import CycleTrace
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods
from tests.fakes.clock import FakeClock

RACK = "rack"
NOBODY = NullTelemetry()
NODES = tuple(node(f"n-{place}", cpu=4, labels={RACK: f"r-{place % 3}"}) for place in range(6))


class CountedCluster(TreeCluster):
    """Gives ordinals of its own, so that two of them are alike."""

    def __init__(self) -> None:
        self._mine = 0
        super().__init__()
        self.apply(*NODES)

    def _created(self, item: ClusterObject, mutation: Mutation) -> ClusterObject:
        self._mine += 1
        return replace(item, uid=f"uid-{self._mine}", ordinal=self._mine, resource_version=mutation.revision)


class RunningCluster(CountedCluster):
    """Takes its units in runs. `in_runs` counts those that were written so."""

    def __init__(self, telemetry: EngineTelemetry = NOBODY) -> None:
        super().__init__()
        self.in_runs = 0
        clock = FakeClock()
        self.cluster.profiles = {PROFILE.name: PROFILE}
        decider = Decider(self.cluster, clock, {PROFILE.name: PROFILE}, WorkerPool(0), telemetry)
        self.runs = UnitRuns(self.cluster, clock, decider, lambda _: False)

    def all_cycles(self) -> None:
        while (row := self.cluster.queue.pop()) is not None:
            self.runs.is_promising = True
            run, left = self.runs.collect(row)
            if run:
                self.in_runs += len(run)
                PlacedUnits(self.cluster, self.now_us).write([placed.verdict for placed in run])
            if left is not None:
                self.by_itself(left.row)

    def by_itself(self, row: QueuedUnit) -> None:
        unit, decision = self.decided(row.key)
        self.commit(unit, decision)


class Recording(NullTelemetry):
    """Hears of every other cycle what the core tells."""

    def __init__(self) -> None:
        self.heard: list[RecordingObserver] = []
        self._started = 0

    def cycle_started(self, cluster: str, unit: ObjectKey, caller: str) -> StartedCycle:
        self._started += 1
        if self._started % 2:
            return super().cycle_started(cluster, unit, caller)
        self.heard.append(RecordingObserver(lambda: 0))
        return CycleTrace("trace", is_recording=True, observer=self.heard[-1])


def everything(of: TreeCluster) -> dict[str, object]:
    """All of it that there is to compare; what a cycle takes in time, and who made it, is left out."""
    cluster, writes = of.cluster, of.cluster.writes()
    snapshot = cluster.feed.flush()
    return {
        "objects": [cluster.state.objects[kind] for kind in KINDS],
        "revision": cluster.state.revision,
        "queue": list(cluster.queue.in_order()),
        "puts": dict(writes.puts),
        "log": writes.entries,
        "decisions": [_told(record) for record in writes.decisions],
        "free": snapshot.nodes.free.tolist(),
        "running": cluster.disruption.running,
        "members": {
            (group, pod.name)
            for _, group in cluster.state.objects["PodGroup"]
            for pod in cluster.state.members("default", group).pods.values()
        },
        "on nodes": {each.name: [pod.name for pod in cluster.state.pods_on(each.name)] for each in NODES},
    }


def _told(record: DecisionRecord) -> tuple[object, ...]:
    return record.id, record.revision, record.snapshot_revision, record.decision, record.assignments


@st.composite
def units(draw: st.DrawFn, number: int) -> list[ClusterObject]:
    """One unit: a pod, a gang, or a tree of two; some cannot be placed, wait for members, or are placed in part."""
    name, kind = f"u-{number}", draw(st.sampled_from(["pod", "gang", "gang", "rack", "tree", "racks"]))
    count, priority = draw(st.integers(1, 5)), draw(st.sampled_from([0, 0, 5]))
    minimum = draw(st.sampled_from([None, count, count, count + 1, 1]))
    if kind == "pod":
        return [replace(pods(leaf(name), 1, priority=priority)[0], group="")]
    if kind in {"gang", "rack"}:
        group = leaf(name, minimum, priority=priority, same=RACK if kind == "rack" else "")
        return [group, *pods(group, count, priority=priority)]
    root = composite(name, draw(st.sampled_from([None, 2])), priority=priority, same="")
    leaves = [
        leaf(f"{name}-{i}", minimum, parent=root, priority=priority, same=RACK if kind == "racks" else "")
        for i in range(2)
    ]
    return [root, *leaves, *(pod for each in leaves for pod in pods(each, count, priority=priority))]


@settings(max_examples=60, deadline=None)
@given(choices=st.data(), rounds=st.integers(1, 4))
def test_runs_come_to_what_a_cycle_each_comes_to(choices: st.DataObject, rounds: int) -> None:
    single, running = CountedCluster(), RunningCluster()
    number = 0
    for _ in range(rounds):
        together: list[ClusterObject] = []
        for _ in range(choices.draw(st.integers(1, 5))):
            together += choices.draw(units(number))
            number += 1
        gone = choices.draw(st.lists(st.sampled_from(pods_of(single)), max_size=3)) if number > 5 else []
        for each in (single, running):
            each.delete(*gone)
            each.apply(*together)
        single.cycles()
        running.all_cycles()

        assert everything(single) == everything(running)


def test_gangs_that_fit_are_taken_in_one_run() -> None:
    running = RunningCluster()
    for number in range(4):
        group = leaf(f"gang-{number}", 3)
        running.apply(group, *pods(group, 3))

    running.all_cycles()

    assert running.in_runs == 4
    assert len(running.bound()) == 12


def gangs(count: int, pods_each: int) -> list[ClusterObject]:
    groups = [leaf(f"gang-{number:02}", pods_each, template="t") for number in range(count)]
    return [*groups, *(pod for group in groups for pod in pods(group, pods_each))]


def tree(name: str, minimum: int | None, pods_each: int) -> list[ClusterObject]:
    """A tree of two groups of which one pod each is no part of the minimum."""
    root = composite(name, minimum, template="t")
    leaves = [leaf(f"{name}-{place}", pods_each - 1, parent=root) for place in range(2)]
    return [root, *leaves, *(pod for each in leaves for pod in pods(each, pods_each))]


def trees(count: int, minimum: int | None, pods_each: int) -> list[ClusterObject]:
    return [each for number in range(count) for each in tree(f"tree-{number:02}", minimum, pods_each)]


def alone(count: int) -> list[ClusterObject]:
    return [replace(pod, group="") for pod in pods(leaf("pod"), count)]


@pytest.mark.parametrize(
    ("units", "fitting"),
    [
        pytest.param(gangs(8, 3), 8, id="all fit"),
        pytest.param(gangs(12, 3), 8, id="the ninth of twelve gangs does not fit"),
        pytest.param(gangs(7, 5), 4, id="a part of the fifth gang would fit"),
        pytest.param([*gangs(4, 3), *alone(20)], 21, id="pods, then gangs"),
        pytest.param(alone(40), 24, id="pods until the nodes are full"),
        pytest.param(trees(4, 2, 3), 4, id="trees that fit"),
        pytest.param(trees(7, 2, 2), 6, id="the last of seven trees does not fit"),
        pytest.param(trees(5, None, 3), 4, id="basic trees, the last of which does not fit"),
        pytest.param(trees(4, 1, 4), 3, id="a part of the fourth tree would fit"),
        pytest.param([*trees(2, 2, 3), *gangs(3, 3), *alone(9)], 12, id="trees, then gangs and pods"),
    ],
)
def test_equal_units_are_placed_together_for_as_long_as_they_fit(
    units: list[ClusterObject], fitting: int
) -> None:
    single, running = CountedCluster(), RunningCluster()
    for each in (single, running):
        each.apply(*units)
    single.cycles()
    running.all_cycles()

    assert everything(running) == everything(single)
    assert running.in_runs == fitting


def test_of_equal_units_those_that_are_traced_are_told_of() -> None:
    telemetry = Recording()
    single, running = CountedCluster(), RunningCluster(telemetry)
    for each in (single, running):
        each.apply(*gangs(8, 3))
    single.cycles()
    running.all_cycles()

    assert everything(running) == everything(single)
    assert running.in_runs == 8
    assert sum(bool(each.events) for each in telemetry.heard) == 4


def test_a_unit_whose_search_failed_may_spend_less_than_the_equal_one_before_it() -> None:
    running = RunningCluster()
    running.apply(*gangs(4, 3))
    cluster = running.cluster
    failed = build_unit(cluster, leaf("gang-02").key)
    cluster.searches.found_nothing(failed, cluster.feed.flush(), PROFILE)
    first = cluster.queue.pop() or pytest.fail("no gang is active")

    run, _ = running.runs.collect(first)

    assert [placed.verdict.input.budget_share for placed in run] == ["1", "1", "1/4", "1"]


def pods_of(cluster: TreeCluster) -> list[ClusterObject]:
    found = [pod for pod in cluster.cluster.state.objects["Pod"].values() if isinstance(pod, Pod)]
    return list(found) or list(NODES[:1])
