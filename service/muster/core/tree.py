"""The tree that one cycle decides: a root and all below it, reduced to what placement needs.

Built by the engine from live objects, read by the recursion, never changed. Members are counted when it is built.
A pod without a group is a tree too: one leaf with the basic policy whose key is the pod's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from muster.core.decision import Search
from muster.core.preemption_units import DisruptionUnits, EarlierPreemption, PromisedRoom
from muster.model.meta import POD, POD_GROUP, ObjectKey

MOST_GROUPS_A_UNIT = 20_000
MOST_PODS_A_UNIT = 100_000
_LEAF_KINDS = (POD_GROUP, POD)


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Columns of one leaf's pods that may be placed in this cycle, in creation order.

    `ids` are the pods' ordinals (ascending); `signatures` are indexes into the snapshot's signature table.
    """

    ids: tuple[int, ...] = ()
    signatures: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupTree:
    """One group of the hierarchy.

    key: the group, or the pod of a unit without a group.
    is_gang, minimum: the policy; `minimum` is M of semantics (1 for basic).
    topology_key: node label whose one value must hold the whole subtree, None for no constraint.
    admissible: the pre-enqueue answer for this subtree; an inadmissible subtree is never simulated.
    satisfied: a leaf's members that hold already: bound live ones, and succeeded ones while the root's condition is True.
    bound_nodes: names of nodes on which bound members of a leaf run (they pin domains), without leaving pods.
    pods: a leaf's pending pods; children: an inner group's children in creation order.
    """

    key: ObjectKey
    is_gang: bool = False
    minimum: int = 1
    topology_key: str | None = None
    admissible: bool = True
    satisfied: int = 0
    bound_nodes: tuple[str, ...] = ()
    pods: PendingPods = PendingPods()
    children: tuple[GroupTree, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """A leaf holds pods; a CompositePodGroup without children is no leaf."""
        return self.key.kind in _LEAF_KINDS


@dataclass(frozen=True, slots=True)
class Unit:
    """What is queued and decided as one. `priority` and `preemption_policy` are those of the whole tree."""

    root: GroupTree
    priority: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    excluded_nodes: dict[int, frozenset[str]] = field(default_factory=dict)
    """Per pod ordinal: nodes on which a client reported a failed binding (semantics 5.7)."""
    search_budget_share: Fraction = Fraction(1)
    """How much of the profile's search budget this unit may spend, from 0 to 1: less after failed searches."""
    victims: DisruptionUnits | None = None
    """Whom it may preempt; None if that was not looked up, since most cycles do not need it."""
    searched: Search | None = None
    """How the search for it ended on this very snapshot, if it was made already: it is not made twice."""
    promised: PromisedRoom = field(default_factory=PromisedRoom)
    earlier: EarlierPreemption = field(default_factory=EarlierPreemption)

    @property
    def key(self) -> ObjectKey:
        return self.root.key

    @property
    def pod_count(self) -> int:
        root = self.root
        return len(root.pods.ids) if root.is_leaf else sum([len(leaf.pods.ids) for leaf in leaves(root)])


def leaves(group: GroupTree) -> list[GroupTree]:
    """The leaf groups of a subtree, in creation order within each parent."""
    if group.is_leaf:
        return [group]
    return [leaf for child in group.children for leaf in leaves(child)]
