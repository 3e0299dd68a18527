"""A cluster whose running pods may be evicted for what is scheduled, and what a test reads off such a decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.core.decision import Assignments, Decision, Preemption, Search
from muster.core.deltas import PodsBound
from muster.core.framework import Profile
from muster.core.preemption.record import MOST_REPRIEVED
from muster.core.preemption_units import (
    DisruptionBudgets,
    DisruptionUnits,
    EarlierPreemption,
    PromisedRoom,
    units_of_rows,
)
from muster.core.tree import Unit
from muster.model.meta import COMPOSITE_POD_GROUP, POD, POD_DISRUPTION_BUDGET, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.pod import Pod
from tests.dsl.cluster import Cluster, Result
from tests.dsl.groups import NAMESPACE, GroupPlan, pod

PRIORITY = 100


class Preempted(Result):
    """What `schedule` gave, with victims and nominations by name."""

    @property
    def preemption(self) -> Preemption:
        assert self.decision.preemption is not None
        return self.decision.preemption

    @property
    def victims(self) -> list[str]:
        """Units that go, most important first; none if preemption was not tried."""
        preemption = self.decision.preemption
        return [item.unit.name for item in preemption.victims] if preemption is not None else []

    @property
    def fates(self) -> dict[str, str]:
        """Why the others stay."""
        return {item.unit.name: item.fate.value for item in self.preemption.reprieved}

    @property
    def nominated(self) -> dict[str, str]:
        """Pod name to node name."""
        nominated = self.preemption.nominations
        return {
            self.pod_names[pod]: nominated.nodes[place]
            for pod, place in zip(nominated.pods, nominated.node_index, strict=True)
        }


@dataclass
class _Unit:
    key: ObjectKey
    priority: int
    start: int
    pods: tuple[int, ...]


class BusyCluster(Cluster):
    """Units of lower priority run on it; what is scheduled has priority 100 and may evict them."""

    def __init__(self, *nodes: Node | list[Node], profile: Profile | None = None) -> None:
        super().__init__(*nodes, profile=profile)
        self._units: list[_Unit] = []
        self._budgets: list[tuple[str, int, tuple[int, ...]]] = []
        self._promised: list[tuple[int, str]] = []
        self.earlier = EarlierPreemption()
        self.knows_victims = True
        self.searched: Search | None = None

    def low_pod(self, name: str, *node: str, **options: object) -> None:
        """A unit of one pod on the node."""
        assert len(node) == 1
        self._run(POD, name, node, **options)

    def low_group(self, name: str, *nodes: str, **options: object) -> None:
        """A PodGroup that goes whole, with a pod on each of the nodes."""
        self._run(POD_GROUP, name, nodes, **options)

    def low_tree(self, name: str, *nodes: str, **options: object) -> None:
        """A CompositePodGroup that goes whole, with a pod on each of the nodes."""
        self._run(COMPOSITE_POD_GROUP, name, nodes, **options)

    def _run(self, kind: str, name: str, nodes: tuple[str, ...], **options: object) -> None:
        priority, start = options.pop("priority", 10), options.pop("start", 0)
        assert isinstance(priority, int)
        assert isinstance(start, int)
        ids = self._bind(pod(name, **options), nodes)  # type: ignore[arg-type]
        self._units.append(_Unit(ObjectKey(kind, NAMESPACE, name), priority, start, ids))

    def leaves(self, item: Pod, *nodes: str) -> tuple[int, ...]:
        """Such a pod is leaving each of the nodes; their ordinals."""
        return self._bind(item, nodes, leaving=True)

    def budget(self, name: str, allowed: int, *units: str) -> None:
        """A budget that selects all pods of the units."""
        pods = tuple(of for unit in self._units if unit.key.name in units for of in unit.pods)
        self._budgets.append((name, allowed, pods))

    def promise(self, item: Pod, *nodes: str) -> None:
        """Nodes are nominated for such pods of a unit that is not lower."""
        signature = self._signature(item)
        self._promised += [(signature, node) for node in nodes]

    @property
    def potential_victims(self) -> DisruptionUnits:
        budgets = DisruptionBudgets(
            keys=tuple(ObjectKey(POD_DISRUPTION_BUDGET, NAMESPACE, name) for name, _, _ in self._budgets),
            allowed=tuple(allowed for _, allowed, _ in self._budgets),
            pods=tuple(pods for _, _, pods in self._budgets),
        )
        rows = [(unit.key, unit.priority, unit.start, unit.pods) for unit in self._units]
        return units_of_rows(rows, budgets)

    def unit(self, plan: GroupPlan | Pod, **options: object) -> tuple[Unit, dict[int, str]]:
        """The plan with whom it may evict. nominated: pod name to node, by an earlier decision."""
        policy = options.pop("preemption_policy", "PreemptLowerPriority")
        nominated = options.pop("nominated", {})
        assert isinstance(policy, str)
        assert isinstance(nominated, dict)
        unit, names = super().unit(plan, **options)
        ids = tuple(number for number, name in names.items() if name in nominated)
        nodes = tuple(sorted(set(nominated.values())))
        index = tuple(nodes.index(nominated[names[number]]) for number in ids)
        unit = replace(
            unit,
            priority=PRIORITY,
            preemption_policy=policy,
            victims=self.potential_victims if self.knows_victims else None,
            searched=self.searched,
            promised=PromisedRoom(
                tuple(signature for signature, _ in self._promised), tuple(node for _, node in self._promised)
            ),
            earlier=replace(self.earlier, nominations=Assignments(ids, nodes, index)),
        )
        return unit, names

    def preempt(self, plan: GroupPlan | Pod, **options: object) -> Preempted:
        """As `schedule`; what it returns is read as a preemption."""
        result = self.schedule(plan, **options)
        self._check(result.decision)
        return Preempted(result.decision, result.pod_names, result.events)

    def _check(self, decision: Decision) -> None:
        """What must hold of every preemption: whole units, each once, and nothing bound beside it."""
        preemption = decision.preemption
        if preemption is None or not preemption.nominations.pods:
            return
        known = {unit.key: unit.pods for unit in self._units}
        fates = (*preemption.victims, *preemption.reprieved)
        assert all(item.pods == known[item.unit] for item in fates), "half a unit"
        assert len({item.unit for item in fates}) == len(fates), "a unit with two fates"
        told = len(preemption.victims) + min(len(known) - len(preemption.victims), MOST_REPRIEVED)
        assert len(fates) == told, "a unit without a fate"
        assert not (preemption.victims and decision.assignments.pods), "bound beside an eviction"

    def _bind(self, item: Pod, nodes: tuple[str, ...], *, leaving: bool = False) -> tuple[int, ...]:
        signature = self._signature(item)
        ids = tuple(self._next() for _ in nodes)
        self.snapshot.apply(PodsBound(ids, (signature,) * len(ids), nodes, leaving=leaving))
        return ids
