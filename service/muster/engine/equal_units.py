"""Units of one run that are equal but for their names: what was found of the first holds for those that follow it.

Pods by themselves, gangs and trees, all of whose pods are pending. Nothing but what is assumed differs from one unit of a
run to the next, so all that is looked up for a unit follows from the shape of its tree, the specs of its groups and its
pods' signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from muster.core.equal_pods import most_together
from muster.core.framework import Profile
from muster.core.pod_placement import placer_of
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine.cluster import Cluster
from muster.engine.members import Standing, standing
from muster.model.group import AnyGroup
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod
from muster.model.variations import variation

_of_spec = attrgetter("scheduling_policy", "topology", "disruption_mode", "priority", "preemption_policy")
"""What a cycle reads of a group's spec, besides its place in the tree."""
_with_pods = variation(GroupTree, "key", "pods")
_with_children = variation(GroupTree, "key", "children")
_with_root = variation(Unit, "root")


class EqualUnits:
    """Those of one run. `profile`: that of the unit which was noted last; there is none before."""

    profile: Profile

    def __init__(self, cluster: Cluster, snapshot: Snapshot) -> None:
        self._cluster = cluster
        self._snapshot = snapshot
        self._noted: Unit | None = None
        self._unit: Unit | None = None
        self._specs: dict[ObjectKey, tuple[object, ...]] = {}

    def note(self, unit: Unit, profile: Profile) -> None:
        """The unit, which has pods to place, may be part of the run; units that follow are compared to it.

        Most units that come by themselves are followed by none, so it is looked at only once it is asked about.
        """
        self.profile = profile
        self._noted = unit

    def most(self) -> int:
        """How many of them may be placed together."""
        unit = self._compared()
        return most_together(unit, self._snapshot, placer_of(self._snapshot, self.profile)) if unit else 0

    def _compared(self) -> Unit | None:
        """The unit that others are compared to, if there is one."""
        unit, self._noted = self._noted, None
        if unit is not None:
            self._specs.clear()
            self._note_specs(unit.root)
            self._unit = unit if self._equal(unit.root, unit.key) is not None else None
        return self._unit

    def _note_specs(self, tree: GroupTree) -> None:
        group = self._cluster.state.group(tree.key)
        if group is not None:
            self._specs[tree.key] = _of_spec(group.spec)
        for child in tree.children:
            self._note_specs(child)

    def unit(self, key: ObjectKey) -> Unit | None:
        """The unit, if it is equal to the one that was noted; None says nothing about it."""
        last = self._compared()
        tree = self._equal(last.root, key) if last is not None else None
        return None if last is None or tree is None else _with_root(last, tree)

    def _equal(self, last: GroupTree, key: ObjectKey) -> GroupTree | None:
        """What is built of a group or pod that is equal to this one, which is noted."""
        if key.kind != last.key.kind:
            return None
        if key.kind == POD:
            return self._equal_leaf(last, key, self._alone(key))
        group = self._cluster.state.group(key)
        if group is None or group.deletion_us is not None or _of_spec(group.spec) != self._specs[last.key]:
            return None
        return self._equal_leaf(last, key, self._members(group)) if last.is_leaf else self._inner(last, group)

    def _inner(self, last: GroupTree, group: AnyGroup) -> GroupTree | None:
        children = self._cluster.state.children(group.namespace, group.name)
        if len(children) != len(last.children):
            return None
        found: list[GroupTree] = []
        for before, child in zip(last.children, children, strict=True):
            tree = self._equal(before, child.key)
            if tree is None:
                return None
            found.append(tree)
        return _with_children(last, group.key, tuple(found))

    def _equal_leaf(self, last: GroupTree, key: ObjectKey, pods: Sequence[Pod]) -> GroupTree | None:
        signatures = last.pods.signatures
        if not pods or tuple(self._cluster.feed.signatures_of(pods)) != signatures:
            return None
        return _with_pods(last, key, PendingPods(tuple([pod.ordinal for pod in pods]), signatures))

    def _alone(self, key: ObjectKey) -> Sequence[Pod]:
        """The pod, if it is pending."""
        state = self._cluster.state
        pod = state.pod(key.namespace, key.name)
        is_pending = pod is not None and standing(pod, state.scheduler_names) is Standing.PENDING
        return (pod,) if pod is not None and is_pending else ()

    def _members(self, group: AnyGroup) -> Sequence[Pod]:
        """The group's pods in creation order, if all are pending."""
        members = self._cluster.state.members(group.namespace, group.name)
        pods = members.pods
        return [pods[each] for each in sorted(pods)] if members.counts[Standing.PENDING] == len(pods) else ()
