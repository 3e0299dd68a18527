"""A storm: units of all priorities and sizes on a full cluster, clients that evict late, twice or never, and restarts.

What is evicted comes again and wants its room back.

After every step: no node holds more than it can, a group that goes whole is never evicted in part, and whoever was
evicted went for somebody of higher priority. In the end the highest units are all placed, after a bounded number of
evictions.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

import pytest

from muster.core.decision import DecisionCode
from muster.engine.api import PodReport, Removed, ReportCall
from muster.engine.eviction import Eviction
from muster.engine.mutation import Mutation
from muster.engine.reports import report
from muster.model.group import PodGroup
from muster.model.pod import Pod, PodStatus
from tests.engine.tree_cluster import TreeCluster, leaf, node, pods

NODES, CORES = 20, 8
UNITS = 200
TOP = 100
TIMEOUT_SECONDS = 5


@dataclass
class Storm:
    chance: random.Random
    cluster: TreeCluster
    sizes: dict[str, int] = field(default_factory=dict)
    evicted: Counter[str] = field(default_factory=Counter)

    def arrive(self, number: int) -> None:
        """A gang of random size and priority; some are disrupted as a whole. A few at the top never lose."""
        top = number % 20 == 0
        priority = TOP if top else self.chance.randrange(10)
        size = self.chance.randint(1, 6)
        group = leaf(f"unit-{number}", size, priority=priority, whole=self.chance.random() < 0.5)
        self.sizes[group.name] = size
        self.cluster.apply(group, *pods(group, size, priority=priority))

    def clients(self) -> None:
        """Clients report some of the pods that leave as removed, some twice; their controllers make new ones."""
        known = self.cluster.cluster.disruption.leaving.values()
        gone = [pod for pod in known if not is_stuck(pod) and self.chance.random() < 0.6]
        call = ReportCall("default", [PodReport("default", pod.name, pod.uid, Removed()) for pod in gone])

        def removed(mutation: Mutation) -> None:
            report(mutation, call, clients_evict=True)

        for _ in range(self.chance.randint(1, 2)):
            self.cluster.change(removed)
        self.cluster.apply(
            *(replace(pod, node_name="", deletion_us=None, status=PodStatus()) for pod in gone)
        )

    def decide(self) -> None:
        """All active units, one by one, looked at after each."""
        for _ in range(500):
            decision = self.cluster.cycle()
            if decision is None:
                return
            preemption = decision.preemption
            if decision.code is DecisionCode.WAITING_FOR_PREEMPTION and preemption is not None:
                mine = self.priority_of(decision.unit.name)
                for victim in preemption.victims:
                    assert victim.priority < mine
                    self.evicted[decision.unit.name] += len(victim.pods)
            self.look()
        raise AssertionError("the queue does not come to rest")

    def priority_of(self, unit: str) -> int:
        group = self.cluster.get(leaf(unit))
        assert isinstance(group, PodGroup)
        return group.spec.priority or 0

    def look(self) -> None:
        used: Counter[str] = Counter()
        leaving: defaultdict[str, set[bool]] = defaultdict(set)
        bound: Counter[str] = Counter()
        for pod in self.cluster.cluster.state.objects["Pod"].values():
            assert isinstance(pod, Pod)
            if pod.node_name:
                used[pod.node_name] += 1
                leaving[pod.group].add(pod.is_leaving)
                bound[pod.group] += 1
        assert max(used.values(), default=0) <= CORES
        for group, states in leaving.items():
            whole = self.cluster.get(leaf(group))
            assert isinstance(whole, PodGroup)
            if whole.spec.is_disrupted_whole:
                assert len(states) == 1, f"{group} was evicted in part"

    def unplaced_at_the_top(self) -> set[str]:
        state = self.cluster.cluster.state
        waiting = (pod for pod in state.objects["Pod"].values() if isinstance(pod, Pod) and not pod.node_name)
        return {pod.group for pod in waiting if pod.spec.priority == TOP}


def is_stuck(pod: Pod) -> bool:
    """A pod in fifty never leaves."""
    return pod.ordinal % 50 == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_ends_with_the_highest_units_placed(seed: int) -> None:
    storm = Storm(
        random.Random(seed),
        TreeCluster(*(replace(node(f"n{i}", cpu=CORES), ordinal=i + 1) for i in range(NODES))),
    )
    storm.cluster.eviction = Eviction(by_clients=True, timeout_seconds=TIMEOUT_SECONDS)
    for number in range(UNITS):
        storm.arrive(number)
        storm.decide()
        if storm.chance.random() < 0.5:
            storm.clients()
            storm.decide()
        if storm.chance.random() < 0.05:
            storm.cluster = storm.cluster.restarted()
        storm.cluster.later(storm.chance.random())
        storm.decide()

    for _ in range(60):
        storm.clients()
        storm.decide()
        storm.cluster.later(TIMEOUT_SECONDS)
        storm.decide()

    total = sum(storm.evicted.values())
    print(f"seed {seed}: {total} pods evicted for {len(storm.evicted)} units")  # noqa: T201 - shown with -s
    assert storm.unplaced_at_the_top() == set()
    assert total <= sum(storm.sizes.values())
