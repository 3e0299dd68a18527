"""Whether the groups of a decision still keep to one domain each, as nodes are labelled now (semantics 5.4, 5.7).

Asked before a commit if something changed since the snapshot; what filters say of each pod is `core.recheck`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.core.decision import Assignments
from muster.core.node_table import NodeTable
from muster.core.tree import GroupTree, Unit
from muster.engine.cluster import Cluster
from muster.engine.members import Standing


def domains_hold(cluster: Cluster, unit: Unit, nodes: NodeTable, assigned: Assignments) -> bool:
    """Whether each constrained group that gets pods has all it runs and gets in one domain of its label.

    `nodes` as they are now. Leaving pods and nodes that are gone pin nothing.
    """
    if not _is_constrained(unit.root):
        return True
    names = map(assigned.nodes.__getitem__, assigned.node_index)
    return (
        _Recheck(cluster, nodes, dict(zip(assigned.pods, names, strict=True))).names_of(unit.root) is not None
    )


def _is_constrained(group: GroupTree) -> bool:
    return group.topology_key is not None or any(map(_is_constrained, group.children))


@dataclass(frozen=True, slots=True)
class _Names:
    """Nodes of a subtree; gains: a pod is assigned in it."""

    names: frozenset[str]
    gains: bool


@dataclass(frozen=True, slots=True)
class _Recheck:
    cluster: Cluster
    nodes: NodeTable
    placed: Mapping[int, str]

    def names_of(self, group: GroupTree) -> _Names | None:
        """What the subtree uses; None if a group in it is torn between domains."""
        if group.is_leaf:
            found = self._leaf(group)
        else:
            below = [self.names_of(child) for child in group.children]
            parts = [part for part in below if part is not None]
            if len(parts) < len(below):
                return None
            names: frozenset[str] = frozenset().union(*(part.names for part in parts))
            found = _Names(names, any(part.gains for part in parts))
        if (
            found.gains
            and group.topology_key is not None
            and not self._is_one(group.topology_key, found.names)
        ):
            return None
        return found

    def _leaf(self, group: GroupTree) -> _Names:
        gained = self.placed.keys() & group.pods.ids
        members = self.cluster.state.members(group.key.namespace, group.key.name)
        running = {pod.node_name for pod in members.of(Standing.BOUND)}
        return _Names(frozenset(running.union(self.placed[ordinal] for ordinal in gained)), bool(gained))

    def _is_one(self, key: str, names: frozenset[str]) -> bool:
        slots = self.nodes.slots_of([name for name in names if self.nodes.slot(name) is not None])
        codes = set(self.nodes.column(key).codes[slots].tolist())
        return len(codes) <= 1 and min(codes, default=0) >= 0
