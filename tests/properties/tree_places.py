"""Whether a tree that waits could have pods placed now, found by trying everything; from objects alone, for small clusters.

Pods of one leaf are equal and ask for cores alone. Knows nothing of preemption: what runs stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from muster.engine.cluster_state import ClusterState
from muster.model.group import AnyGroup, PodGroup
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.resources import pod_requests
from tests.properties.tree_engine import below, children_of, held_pods, holds, members_of

Free = Mapping[str, int]


@dataclass(frozen=True)
class Places:
    """`free` milli-cores by node; `admits` says whether a node admits a pod that waits, room aside."""

    state: ClusterState
    free: Free
    admits: Callable[[Node, Pod], bool]

    def could_grow(self, root: AnyGroup) -> bool:
        """Whether some pods of the tree that wait fit, so that its minimums are met."""
        nodes = frozenset(self.free)
        if holds(self.state, root):
            return self._takes_more(root, nodes)
        return next(self._minimums(root, nodes, self.free), None) is not None

    def has_room(self, pod: Pod) -> bool:
        """Whether a node that admits the pod has room for it."""
        cpu = pod_requests(pod.spec)["cpu"]
        return any(free >= cpu and self.admits(self._node(name), pod) for name, free in self.free.items())

    def domains(self, group: AnyGroup, nodes: frozenset[str]) -> list[frozenset[str]]:
        """Those that the group may use inside others: the one that members pin, none if they are apart."""
        key = group.spec.topology_key
        if key is None:
            return [nodes]
        found: dict[str, set[str]] = {}
        for name in nodes:
            value = self._node(name).labels.get(key)
            if value is not None:
                found.setdefault(value, set()).add(name)
        pins = {pod.node_name for each in below(self.state, group) for pod in self._bound(each)}
        return [frozenset(inside) for inside in found.values() if pins <= inside]

    def _takes_more(self, group: AnyGroup, nodes: frozenset[str]) -> bool:
        """For a group that holds: whether a further pod fits, or the minimum of a leaf that does not hold yet."""
        if group.deletion_us is not None:
            return False
        for domain in self.domains(group, nodes):
            if isinstance(group, PodGroup):
                if next(self._spread(group, domain, self.free, 1), None) is not None:
                    return True
                continue
            for child in children_of(self.state, group):
                if holds(self.state, child):
                    grows = self._takes_more(child, domain)
                else:
                    grows = isinstance(child, PodGroup) and any(self._minimums(child, domain, self.free))
                if grows:
                    return True
        return False

    def _minimums(self, group: AnyGroup, nodes: frozenset[str], free: Free) -> Iterator[Free]:
        """The room left after each way to meet the minimums of a group."""
        if holds(self.state, group):
            yield free
            return
        if group.deletion_us is not None:
            return
        for domain in self.domains(group, nodes):
            if isinstance(group, PodGroup):
                missing = group.spec.required_minimum - held_pods(self.state, group)
                yield from self._spread(group, domain, free, missing)
            else:
                yield from self._of_children(group, domain, free)

    def _of_children(self, group: AnyGroup, domain: frozenset[str], free: Free) -> Iterator[Free]:
        children = children_of(self.state, group)
        short = [child for child in children if not holds(self.state, child)]
        missing = group.spec.required_minimum - (len(children) - len(short))
        for chosen in combinations(short, max(0, missing)):
            yield from self._all_of(list(chosen), domain, free)

    def _all_of(self, groups: list[AnyGroup], domain: frozenset[str], free: Free) -> Iterator[Free]:
        if not groups:
            yield free
            return
        for left in self._minimums(groups[0], domain, free):
            yield from self._all_of(groups[1:], domain, left)

    def _spread(self, group: PodGroup, domain: frozenset[str], free: Free, number: int) -> Iterator[Free]:
        """The room left after each way to place so many of the leaf's pods."""
        members = [pod for pod in members_of(self.state, group) if pod.is_member and not pod.node_name]
        waiting = [pod for pod in members if not pod.gates]
        held_back = len(waiting) < len(members) and not holds(self.state, group)
        if held_back or not waiting or len(waiting) < number:
            return
        pod = waiting[0]
        able = [name for name in sorted(domain) if self.admits(self._node(name), pod)]
        yield from _ways(able, number, pod_requests(pod.spec)["cpu"], free)

    def _bound(self, group: AnyGroup) -> list[Pod]:
        return [pod for pod in members_of(self.state, group) if pod.node_name and pod.is_member]

    def _node(self, name: str) -> Node:
        found = self.state.objects["Node"]["", name]
        assert isinstance(found, Node)
        return found


def _ways(nodes: list[str], number: int, cpu: int, free: Free) -> Iterator[Free]:
    """The room left after each way to spread equal pods over nodes."""
    if not number:
        yield free
        return
    if not nodes:
        return
    first, *others = nodes
    for here in range(min(number, max(0, free[first]) // cpu), -1, -1):
        yield from _ways(others, number - here, cpu, {**free, first: free[first] - here * cpu})
