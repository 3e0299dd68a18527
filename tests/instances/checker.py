"""Judges a placement by an instance alone, with sums of its own: nothing here knows how Muster decides.

A placement is right if no node gives away more than it has, every pod may run where it is, every group that got pods
holds its minimum, up to the root, and every constrained group lies in one domain; and if what it evicts may be evicted
and goes whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tests.instances.instance import GroupPlan, Instance, NodePlan, PodPlan

HARD_EFFECTS = ("NoSchedule", "NoExecute")


def violations(instance: Instance, placements: Mapping[str, str], evicted: Iterable[str] = ()) -> list[str]:
    """What is wrong with placing these pods and evicting those; nothing if it is right."""
    strangers = [
        f"{pod} is not among the pods to place, or {node} no node"
        for pod, node in placements.items()
        if pod not in instance.pods
        or not instance.is_wanted(instance.pods[pod])
        or node not in instance.nodes
    ]
    if strangers:
        return strangers
    outcome = _Outcome(instance, dict(placements), frozenset(evicted))
    return [*outcome.evictions(), *outcome.rooms(), *outcome.hosts(), *outcome.minimums(), *outcome.domains()]


@dataclass
class _Outcome:
    """The cluster as it would be."""

    instance: Instance
    placements: dict[str, str]
    evicted: frozenset[str]

    @cached_property
    def where(self) -> dict[str, str]:
        """The node of every pod that would run."""
        running = {
            pod.name: pod.bound_to
            for pod in self.instance.pods.values()
            if pod.bound_to is not None and pod.name not in self.evicted
        }
        return running | self.placements

    def rooms(self) -> Iterator[str]:
        """Nodes with new pods that give away more than they have of something that the new pods ask for."""
        for name in sorted(set(self.placements.values())):
            node = self.instance.nodes[name]
            here = [self.instance.pods[pod] for pod, where in self.where.items() if where == name]
            new = [pod for pod in here if pod.name in self.placements]
            if len(here) > node.slots:
                yield f"{name} holds {len(here)} pods in {node.slots} slots"
            yield from _overused(node, here, new)

    def hosts(self) -> Iterator[str]:
        """New pods on nodes that their selector or a taint keeps them from."""
        for name, where in self.placements.items():
            pod, node = self.instance.pods[name], self.instance.nodes[where]
            if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
                yield f"{name} selects other nodes than {where}"
            for taint in node.taints:
                if taint.effect in HARD_EFFECTS and not any(t.tolerates(taint) for t in pod.tolerations):
                    yield f"{name} does not tolerate {taint.key} of {where}"

    def minimums(self) -> Iterator[str]:
        """Groups with new pods below them that do not hold, and the root if anything was placed."""
        touched = {
            group.name
            for pod in self.placements
            for group in self.instance.ancestors(self.instance.pods[pod].group)
        }
        for name in sorted(touched):
            group = self.instance.groups[name]
            if self.held(group) < group.minimum:
                yield f"{name} needs {group.minimum} and has {self.held(group)}"

    def held(self, group: GroupPlan) -> int:
        """Members of a leaf that would run, children of a composite that would hold."""
        if group.is_leaf:
            return sum(member.name in self.where for member in self.instance.members(group.name))
        return sum(self.held(child) >= child.minimum for child in self.instance.children(group.name))

    def domains(self) -> Iterator[str]:
        """Constrained groups with new pods that lie in several domains, or on a node without the label."""
        for group in self.instance.groups.values():
            below = [pod for pod in self.where if self._is_below(self.instance.pods[pod], group)]
            if group.topology is None or not any(pod in self.placements for pod in below):
                continue
            nodes = [self.instance.nodes[self.where[pod]] for pod in below]
            values = {node.labels.get(group.topology) for node in nodes}
            if None in values:
                yield f"{group.name} is on nodes without the label {group.topology}"
            if len(values) > 1:
                yield f"{group.name} is in several domains of {group.topology}: {sorted(map(str, values))}"

    def evictions(self) -> Iterator[str]:
        """Evicted pods that do not run, are not of lower priority, or whose unit stays in part."""
        floor = self.instance.groups[self.instance.target].priority
        if self.evicted and not self.instance.may_evict:
            yield "the unit may not evict"
        for name in sorted(self.evicted):
            pod = self.instance.pods.get(name)
            if pod is None or pod.bound_to is None:
                yield f"{name} is evicted and does not run"
                continue
            if self._victim_priority(pod) >= floor:
                yield f"{name} is evicted at priority {self._victim_priority(pod)} for {floor}"
            left = [mate.name for mate in self._unit(pod) if mate.name not in self.evicted]
            if left:
                yield f"{name} is evicted without {', '.join(left)} of its unit"

    def _victim_priority(self, pod: PodPlan) -> int:
        return pod.priority if pod.group is None else self.instance.root(pod.group).priority

    def _unit(self, pod: PodPlan) -> list[PodPlan]:
        """The running pods that are evicted as one with a pod."""
        whole = [group for group in self.instance.ancestors(pod.group) if group.evicted_whole]
        if not whole:
            return [pod]
        running = [each for each in self.instance.pods.values() if each.bound_to is not None]
        return [each for each in running if self._is_below(each, whole[-1])]

    def _is_below(self, pod: PodPlan, group: GroupPlan) -> bool:
        return group in self.instance.ancestors(pod.group)


def _overused(node: NodePlan, here: Iterable[PodPlan], new: Iterable[PodPlan]) -> Iterator[str]:
    used: Counter[str] = Counter()
    for pod in here:
        used.update(pod.requests)
    asked = {resource for pod in new for resource, amount in pod.requests.items() if amount}
    for resource in sorted(asked):
        has = node.allocatable.get(resource, 0)
        if used[resource] > has:
            yield f"{node.name} gives {used[resource]} of {has} {resource}"
