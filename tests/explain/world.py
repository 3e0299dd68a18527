"""A cluster and a unit that waits in it, as one value: what a help changes is a world with that change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster.core.decision import GroupResult, Reason
from muster.core.explain.circumstances import Circumstances
from muster.core.explain.explain import explain
from muster.core.explain.explanation import Explanation, Help, results_below
from muster.core.explain.what_would_help import what_would_help
from muster.core.framework import Profile
from muster.core.preemption_units import DisruptionUnits, units_of_rows
from muster.core.tree import PendingPods, Unit
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from tests.dsl.groups import GroupPlan, pod
from tests.dsl.preemption import BusyCluster
from tests.dsl.state import state_of


@dataclass(frozen=True)
class Runner:
    """A unit that runs: a pod on each of the nodes, which go together if they are several."""

    name: str
    nodes: tuple[str, ...]
    cpu: str = "1"
    priority: int = 10
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class World:
    """nodes and who runs on them; the plan, which waits. members: nodes on which pods of the plan run already.

    promised: nodes nominated for pods of one cpu of other units. gated: by leaf, pods that gates hold back.
    """

    nodes: tuple[Node, ...]
    plan: GroupPlan | Pod
    runners: tuple[Runner, ...] = ()
    members: tuple[str, ...] = ()
    priority: int = 0
    policy: str = "PreemptLowerPriority"
    excluded: dict[str, list[str]] = field(default_factory=dict)
    promised: tuple[str, ...] = ()
    gated: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    profile: Profile | None = None

    def explained(self) -> Explained:
        """The explanation with its helps; the snapshot must be as before."""
        cluster, unit = self._built(self.policy)
        before = state_of(cluster.snapshot)
        told = explain(cluster.snapshot, unit, cluster.profile, lambda: cluster.below(self.priority))
        known = Circumstances(cluster.potential_victims, cluster.gated_pods(self.gated))
        helps = what_would_help(cluster.snapshot, unit, cluster.profile, told, known)
        assert state_of(cluster.snapshot) == before, "the snapshot is not as it was"
        return Explained(told, helps)

    def schedules(self) -> bool:
        """Whether a cycle that may not preempt schedules the plan."""
        cluster, unit = self._built("Never")
        if not unit.root.admissible:
            return False
        return (
            cluster.schedule(self.plan, preemption_policy="Never", excluded=self.excluded).code == "SCHEDULED"
        )

    def _built(self, policy: str) -> tuple[_Cluster, Unit]:
        cluster = _Cluster(*self.nodes, profile=self.profile)
        for runner in self.runners:
            cluster.run(runner)
        for number, node in enumerate(self.members):
            cluster.runs(pod(f"member-{number}"), node)
        if self.promised:
            cluster.promise(pod("nominated"), *self.promised)
        unit, _ = cluster.unit(self.plan, preemption_policy=policy, excluded=self.excluded)
        return cluster, replace(unit, priority=self.priority, victims=None)


@dataclass(frozen=True)
class Explained:
    """What was told, by names."""

    told: Explanation
    helps: tuple[Help, ...]

    def group(self, name: str) -> GroupResult:
        assert self.told.result is not None
        return next(each for each in results_below(self.told.result) if each.key.name == name)

    def reasons(self, name: str) -> dict[str, Reason]:
        """The first reason of each code of a group, those of its pods included."""
        group = self.group(name)
        found: dict[str, Reason] = {}
        for reason in (*group.reasons, *(each for of in group.pod_reasons.values() for each in of)):
            found.setdefault(reason.code, reason)
        return found

    @property
    def root(self) -> dict[str, Reason]:
        assert self.told.result is not None
        return self.reasons(self.told.result.key.name)

    @property
    def messages(self) -> list[str]:
        return [help_.message for help_ in self.helps]


class _Cluster(BusyCluster):
    """Units of any priority run on it."""

    def run(self, runner: Runner) -> None:
        """A pod alone, or a group that goes whole."""
        options = {"cpu": runner.cpu, "priority": runner.priority, "labels": dict(runner.labels)}
        if len(runner.nodes) == 1:
            self.low_pod(runner.name, *runner.nodes, **options)
        else:
            self.low_group(runner.name, *runner.nodes, **options)

    def below(self, priority: int) -> DisruptionUnits:
        """Whom a unit of this priority may preempt."""
        rows = ((unit.key, unit.priority, unit.start, unit.pods) for unit in self._units)
        victims = self.potential_victims
        return units_of_rows((row for row in rows if row[1] < priority), victims.budgets)

    def gated_pods(self, gated: Mapping[str, tuple[Pod, ...]]) -> dict[ObjectKey, PendingPods]:
        """Of each leaf the pods that gates hold back."""
        return {
            ObjectKey("PodGroup", "default", leaf): PendingPods(
                tuple(self._next() for _ in pods), tuple(map(self._signature, pods))
            )
            for leaf, pods in gated.items()
        }
