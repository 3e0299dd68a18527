"""The objects of one cluster with the indexes that every question needs. Knows nothing of SQL, time or queues.

It is the mirror of the store plus what is being written: callers that answer clients wait until the revision that
they saw is durable. Changed by `put` and `remove` alone, which keep all indexes right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat
from operator import attrgetter
from typing import cast

from muster.engine.members import Members
from muster.engine.offered_resources import OfferedResources
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, KINDS, POD, POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod

Name = tuple[str, str]
NAME_OF_GROUP = attrgetter("namespace", "group")
_NAME_OF = attrgetter("namespace", "name")
_NOMINATION_OF, _OWNERS_OF = attrgetter("status.nominated_node_name"), attrgetter("owner_references")
_NO_MEMBERS = Members(frozenset())


class ClusterState:
    """`revision` is that of the newest write in it. Names are (namespace, name); `scheduler_names` are those of our profiles.

    `nominated`: by ordinal, pods that have a node in view and none yet. Not to be changed by others.
    """

    def __init__(self, name: str, scheduler_names: frozenset[str], revision: int = 0) -> None:
        self.scheduler_names = scheduler_names
        self.name = name
        self.revision = revision
        self._pods: dict[Name, Pod] = {}
        self.nominated: dict[int, Pod] = {}
        self.objects: dict[str, dict[Name, ClusterObject]] = {kind: {} for kind in KINDS}
        self.objects[POD] = cast("dict[Name, ClusterObject]", self._pods)
        self.offered_resources = OfferedResources()
        self._members: dict[Name, Members] = {}
        self._children: dict[Name, dict[ObjectKey, AnyGroup]] = {}
        self._of_workload: defaultdict[Name, dict[ObjectKey, None]] = defaultdict(dict)
        self._on_node: defaultdict[str, dict[int, Pod]] = defaultdict(dict)
        self._dependents: defaultdict[str, dict[ObjectKey, None]] = defaultdict(dict)

    def get(self, key: ObjectKey) -> ClusterObject | None:
        return self.objects[key.kind].get((key.namespace, key.name))

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    def pods(self) -> Iterable[Pod]:
        """All pods, in order of arrival."""
        return self._pods.values()

    def has_any_pod(self, namespace: str, names: Sequence[str]) -> bool:
        """Whether one of the pods exists."""
        return not self._pods.keys().isdisjoint(zip(repeat(namespace), names, strict=False))

    def group(self, key: ObjectKey) -> AnyGroup | None:
        found = self.get(key)
        return found if isinstance(found, PodGroup | CompositePodGroup) else None

    def members(self, namespace: str, group: str) -> Members:
        """Pods that name the PodGroup, whether it exists or not. Not to be changed by the caller."""
        return self._members.get((namespace, group), _NO_MEMBERS)

    def children(self, namespace: str, composite: str) -> list[AnyGroup]:
        """Groups that name the CompositePodGroup as their parent, in creation order, then name, then kind."""
        found = self._children.get((namespace, composite), {})
        return sorted(found.values(), key=lambda group: (group.ordinal, group.name, type(group).__name__))

    def groups_of_workload(self, namespace: str, workload: str) -> list[ObjectKey]:
        """Groups that refer to the Workload, whether it exists or not, in order of arrival."""
        return list(self._of_workload.get((namespace, workload), ()))

    def pods_on(self, node_name: str) -> list[Pod]:
        """Bound pods of a node, in creation order, finished ones included."""
        return [pod for _, pod in sorted(self._on_node.get(node_name, {}).items())]

    def dependents(self, uid: str) -> list[ObjectKey]:
        """Objects that name this uid as an owner, in order of arrival."""
        return list(self._dependents.get(uid, ()))

    def put_pod(self, key: ObjectKey, new: Pod) -> Pod | None:
        """As `put`, for a pod."""
        name = key[1:]
        old: Pod | None = self._pods.get(name)
        self._pods[name] = new
        if new.group:
            members = self._members.get((new.namespace, new.group))
            if members is None:
                members = self._members[new.namespace, new.group] = Members(self.scheduler_names)
            members.put(new)
        if old is not None and old.node_name and old.node_name != new.node_name:
            self._take_off_node(old)
        if new.node_name:
            self._on_node[new.node_name][new.ordinal] = new
        if new.status.nominated_node_name and is_nominated(new):
            self.nominated[new.ordinal] = new
        elif self.nominated:
            self.nominated.pop(new.ordinal, None)
        if new.owner_references or (old is not None and old.owner_references):
            self._index_owners(key, old, new)
        return old

    def add_pods(self, new: Sequence[Pod]) -> None:
        """As `put_pod`, for pods that did not exist and have no node."""
        self._pods.update(zip(map(_NAME_OF, new), new, strict=True))
        for pod in new if any(map(_NOMINATION_OF, new)) else ():
            if is_nominated(pod):
                self.nominated[pod.ordinal] = pod
        for pod in new if any(map(_OWNERS_OF, new)) else ():
            self._index_owners(pod.key, None, pod)
        for (namespace, group), pods in groupby(new, key=NAME_OF_GROUP):
            if group:
                members = self._members.get((namespace, group))
                if members is None:
                    members = self._members[namespace, group] = Members(self.scheduler_names)
                members.add(list(pods))

    def load_pods(self, stored: Sequence[Pod]) -> None:
        """As `put_pod`, for all pods of a store, into a state that holds none."""
        self.add_pods(stored)
        for pod in stored:
            if pod.node_name:
                self._on_node[pod.node_name][pod.ordinal] = pod

    def bind(self, bound: Sequence[Pod]) -> None:
        """As `put_pod`, for pods that were pending and differ by node and status alone."""
        self._pods.update(zip(map(_NAME_OF, bound), bound, strict=True))
        on_node = self._on_node
        for pod in bound:
            on_node[pod.node_name][pod.ordinal] = pod
        for pod in bound if self.nominated else ():
            self.nominated.pop(pod.ordinal, None)
        for (namespace, group), members in groupby(bound, key=NAME_OF_GROUP):
            if group:
                self._members[namespace, group].bind(list(members))

    def put(self, key: ObjectKey, new: ClusterObject) -> ClusterObject | None:
        """Add or replace an object; returns its earlier state."""
        if isinstance(new, Pod):
            return self.put_pod(key, new)
        objects = self.objects[key.kind]
        name = (key.namespace, key.name)
        old = objects.get(name)
        objects[name] = new
        if isinstance(new, Node):
            self.offered_resources.node_changed(cast("Node | None", old), new)
        elif isinstance(new, PodGroup | CompositePodGroup):
            parent = new.spec.parent_composite_pod_group_name
            if parent:
                self._children.setdefault((new.namespace, parent), {})[key] = new
            if old is None and new.spec.workload_ref is not None:
                self._of_workload[new.namespace, new.spec.workload_ref.workload_name][key] = None
        if new.owner_references or (old is not None and old.owner_references):
            self._index_owners(key, old, new)
        return old

    def remove(self, key: ObjectKey) -> ClusterObject:
        """Take an object out; returns its last state. Raises KeyError for an unknown one."""
        old = self.objects[key.kind].pop((key.namespace, key.name))
        if isinstance(old, Pod):
            self._unindex_pod(old)
        elif isinstance(old, PodGroup | CompositePodGroup):
            self._unindex_group(key, old)
        elif isinstance(old, Node):
            self.offered_resources.node_changed(old, None)
        if old.owner_references:
            self._index_owners(key, old, None)
        return old

    def _unindex_pod(self, old: Pod) -> None:
        if old.group:
            members = self._members[old.namespace, old.group]
            members.remove(old)
            if not members.pods:
                del self._members[old.namespace, old.group]
        if old.node_name:
            self._take_off_node(old)
        self.nominated.pop(old.ordinal, None)

    def _take_off_node(self, pod: Pod) -> None:
        on_node = self._on_node[pod.node_name]
        del on_node[pod.ordinal]
        if not on_node:
            del self._on_node[pod.node_name]

    def _unindex_group(self, key: ObjectKey, old: AnyGroup) -> None:
        parent = old.spec.parent_composite_pod_group_name
        if parent:
            siblings = self._children[old.namespace, parent]
            del siblings[key]
            if not siblings:
                del self._children[old.namespace, parent]
        if old.spec.workload_ref is not None:
            workload = (old.namespace, old.spec.workload_ref.workload_name)
            del self._of_workload[workload][key]
            if not self._of_workload[workload]:
                del self._of_workload[workload]

    def _index_owners(self, key: ObjectKey, old: ClusterObject | None, new: ClusterObject | None) -> None:
        for reference in new.owner_references if new is not None else ():
            self._dependents[reference.uid][key] = None
        kept = {reference.uid for reference in new.owner_references} if new is not None else set()
        lost = {reference.uid for reference in old.owner_references} - kept if old is not None else set()
        for uid in lost:
            dependents = self._dependents[uid]
            dependents.pop(key, None)
            if not dependents:
                del self._dependents[uid]


def is_nominated(pod: Pod) -> bool:
    """Whether the pod has a node in view, and none yet."""
    return bool(pod.status.nominated_node_name) and not pod.node_name and pod.is_member


def group_key_of(pod: Pod) -> ObjectKey:
    """The PodGroup that the pod names."""
    return ObjectKey(POD_GROUP, pod.namespace, pod.group)


def parent_key_of(group: AnyGroup) -> ObjectKey | None:
    """The CompositePodGroup that the group names as its parent; None for a root."""
    parent = group.spec.parent_composite_pod_group_name
    return ObjectKey(COMPOSITE_POD_GROUP, group.namespace, parent) if parent else None
