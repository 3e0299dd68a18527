"""Units of one run that are equal but for their names: what was found of the first holds for those that follow it.

Only pods by themselves, and groups without a tree, all of whose pods are pending. Nothing but what is assumed differs from
one unit of a run to the next, so all that is looked up for a unit follows from its group's spec and its pods' signatures.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.core.equal_pods import most_together
from muster.core.framework import Profile
from muster.core.pod_placement import placer_of
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine.cluster import Cluster
from muster.engine.members import Standing, standing
from muster.model.group import GroupSpec, PodGroup
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod
from muster.model.variations import variation

_with_key = variation(GroupTree, "key", "pods")
_with_root = variation(Unit, "root")


class EqualUnits:
    """Those of one run. `profile`: that of the unit which was noted last; there is none before.

    most: how many of them may be placed together.
    """

    profile: Profile

    def __init__(self, cluster: Cluster, snapshot: Snapshot) -> None:
        self._cluster = cluster
        self._snapshot = snapshot
        self.most = 0
        self._unit: Unit | None = None
        self._spec: GroupSpec | None = None

    def note(self, unit: Unit, profile: Profile) -> None:
        """The unit, which has pods to place, may be part of the run; units that follow are compared to it."""
        group = self._cluster.state.group(unit.key) if unit.key.kind != POD else None
        self._spec = None if group is None else group.spec
        self._unit = unit if self._pods_of(unit.key) else None
        self.profile = profile
        is_compared = self._unit is not None
        placer = placer_of(self._snapshot, profile)
        self.most = most_together(unit, self._snapshot, placer) if is_compared else 0

    def unit(self, key: ObjectKey) -> Unit | None:
        """The unit, if it is equal to the one that was noted; None says nothing about it."""
        last = self._unit
        if last is None or key.kind != last.key.kind:
            return None
        pods, signatures = self._pods_of(key), last.root.pods.signatures
        if not pods or tuple(self._cluster.feed.signatures_of(pods)) != signatures:
            return None
        ids = tuple([pod.ordinal for pod in pods])
        return _with_root(last, _with_key(last.root, key, PendingPods(ids, signatures)))

    def _pods_of(self, key: ObjectKey) -> Sequence[Pod]:
        """The unit's pods in creation order, if all are pending, and the group has the same spec."""
        state = self._cluster.state
        if key.kind == POD:
            pod = state.pod(key.namespace, key.name)
            is_pending = pod is not None and standing(pod, state.scheduler_names) is Standing.PENDING
            return (pod,) if pod is not None and is_pending else ()
        group = state.group(key)
        if not isinstance(group, PodGroup) or group.deletion_us is not None or group.spec != self._spec:
            return ()
        members = state.members(key.namespace, key.name)
        pods = members.pods
        return [pods[each] for each in sorted(pods)] if members.counts[Standing.PENDING] == len(pods) else ()
