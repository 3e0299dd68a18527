"""What the tree and the snapshot do not show of a unit: who could go for it, and what holds its groups back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.core.preemption_units import DisruptionUnits
from muster.core.tree import GroupTree, PendingPods
from muster.model.meta import ObjectKey
from muster.model.variations import varied


@dataclass(frozen=True, slots=True)
class Circumstances:
    """others: all that runs beside the unit, whatever its priority.

    gated: pods that scheduling gates hold back, by their leaf. barred: groups in which nothing new is scheduled, since
    they or a group above them are being deleted.
    """

    others: DisruptionUnits = field(default_factory=DisruptionUnits)
    gated: Mapping[ObjectKey, PendingPods] = field(default_factory=dict)
    barred: frozenset[ObjectKey] = frozenset()

    def admitted(self, tree: GroupTree) -> GroupTree:
        """The tree with pre-enqueue answered anew for every group (semantics 4)."""
        children = tuple(map(self.admitted, tree.children))
        return varied(tree, children=children, admissible=self._is_admissible(tree, children))

    def _is_admissible(self, group: GroupTree, children: tuple[GroupTree, ...]) -> bool:
        if group.key in self.barred:
            return False
        if not group.is_leaf:
            return sum(child.admissible for child in children) >= group.minimum
        if group.satisfied >= group.minimum:
            return True
        return group.key not in self.gated and group.satisfied + len(group.pods.ids) >= group.minimum
