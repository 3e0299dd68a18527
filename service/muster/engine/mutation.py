"""One revision in the making: puts and removals, and all that follows from them, as one atomic step.

`finish` settles what the writes entail, in this order: protected groups that nothing holds any more go; pods and
groups move between the pending structures and the queue; layouts of changed trees are checked; units are gated,
activated or leave; waits of preempting units end; waiting units that an event may help are woken; budgets say what
they come to; the log entry is made. A mutation that changed nothing makes no revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import cast

from muster.engine.cluster import Cluster
from muster.engine.cluster_state import NAME_OF_GROUP, group_key_of, is_nominated, parent_key_of
from muster.engine.conditions import PodConditions
from muster.engine.edits import Edits
from muster.engine.hierarchy import Root
from muster.engine.nominations import settle_waits
from muster.engine.queueing_hints import EventKind, node_events
from muster.engine.settlement import settle_deletions, settle_layouts, settle_pending, settle_units
from muster.model.disruption import PodDisruptionBudget
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import POD_GROUP, ObjectKey
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodStatus, keys_of
from muster.model.priority import PriorityClass
from muster.model.run_time import max_run_time_seconds
from muster.model.variations import alike, varied, varied_all
from muster.model.workload import Workload

_bound = varied_all(Pod, "node_name", "resource_version", "status")
_are_told_alike = alike(Pod, "status", "generation")


class Mutation:
    """`revision` and `now_us` are what all objects of this revision carry. Must be finished in the same loop step.

    touched_pods: pods that concern their unit, each with its group. restructured: groups that came or went;
    regrouped: those, their parents, and groups marked for deletion. Found while settling: `roots` of touched groups,
    `reshaped` units, whose tree got or lost groups or whose layout got other faults.
    """

    def __init__(self, cluster: Cluster, now_us: int) -> None:
        self.cluster = cluster
        self.state = cluster.state
        self.revision = cluster.state.revision + 1
        self.now_us = now_us
        self.pod_conditions = PodConditions(now_us)
        self.edits = Edits()
        self.touched_groups: dict[ObjectKey, None] = {}
        self.restructured: dict[ObjectKey, None] = {}
        self.regrouped: dict[ObjectKey, None] = {}
        self.touched_workloads: dict[ObjectKey, None] = {}
        self.roots: dict[ObjectKey, Root] = {}
        self.reshaped: dict[ObjectKey, None] = {}
        self.touched_pods: dict[ObjectKey, ObjectKey | None] = {}
        self.settled_units: set[ObjectKey] = set()
        self.events: dict[EventKind, None] = {}
        self._last_event: EventKind | None = None

    def put(self, new: ClusterObject) -> None:
        """Write an object that carries this revision already."""
        if isinstance(new, Pod):
            self._put_pod(new)
            return
        key = new.key
        old = self._store(key, new)
        if isinstance(new, Node):
            self._node_event(old if isinstance(old, Node) else None, new)
        elif isinstance(new, PodGroup | CompositePodGroup):
            self._put_group(old if isinstance(old, PodGroup | CompositePodGroup) else None, new)
        elif isinstance(new, Workload):
            self.touched_workloads[key] = None
        elif isinstance(new, PriorityClass):
            self.cluster.refresh_priority_classes()
        elif isinstance(new, PodDisruptionBudget):
            self.cluster.budgets.put(new)

    def _put_group(self, old: AnyGroup | None, new: AnyGroup) -> None:
        if old is None or _concerns_its_unit(old, new):
            self._touch_group(new.key, new, restructured=old is None)
        if old is not None and old.deletion_us != new.deletion_us:
            self.regrouped[new.key] = None

    def _put_pod(self, new: Pod) -> None:
        key = new.key
        old = self.state.put_pod(key, new)
        self.edits.note(key, old, new)
        self.cluster.budgets.pod_changed(old, new)
        if new.node_name or (old is not None and old.node_name):
            self._pod_event(old, new)
        if old is None or _concerns_its_unit(old, new):
            self._touch_pod(key, new)

    def add(self, new: Sequence[Pod | AnyGroup]) -> None:
        """Write groups, and pods that wait for a node, which did not exist: as `put` of each, for a fraction of it."""
        self.edits.came(new)
        self.state.add_pods([each for each in new if type(each) is Pod])
        for each in new:
            if type(each) is not Pod:
                self.state.put(each.key, each)
        for kind, some in groupby(new, key=type):
            if kind is Pod:
                self._touch_new_pods(cast("Iterator[Pod]", some))
            else:
                for group in cast("Iterator[AnyGroup]", some):
                    self._touch_group(group.key, group, restructured=True)

    def _touch_new_pods(self, new: Iterable[Pod]) -> None:
        budgets = self.cluster.budgets
        for (namespace, name), pods in groupby(new, key=NAME_OF_GROUP):
            group = ObjectKey(POD_GROUP, namespace, name) if name else None
            if group is not None:
                self.touched_groups[group] = None
            came = list(pods)
            self.touched_pods.update(dict.fromkeys(keys_of(came), group))
            for pod in came if budgets.concern(namespace) else ():
                budgets.pod_changed(None, pod)

    def bind(self, pods: Sequence[Pod], nodes: Iterable[str]) -> None:
        """Write that pending pods got these nodes, as a decision on their unit says, which settles the unit itself.

        What `put` of each would do, for a fraction of it: nothing else about the pods differs, no other unit is concerned.
        """
        if pods:
            chosen = list(nodes)
            statuses = self._statuses_on(chosen, pods)
            bound = _bound(pods, chosen, [self.revision] * len(pods), statuses)
            self.edits.bound(pods, bound)
            budgets = self.cluster.budgets
            for namespace in {pod.namespace for pod in bound}:
                for old, new in zip(pods, bound, strict=True) if budgets.concern(namespace) else ():
                    if new.namespace == namespace:
                        budgets.pod_changed(old, new)
            self.state.bind(bound)
            self.cluster.feed.pods_bound(bound)
            self.cluster.disruption.pods_bound(bound)
            self.note(EventKind.POD_BOUND)

    def _statuses_on(self, nodes: Sequence[str], pods: Sequence[Pod]) -> list[PodStatus]:
        """Those of the pods once they have these nodes. Mostly one for all: pods of a gang came together."""
        first = pods[0]
        if first.status.nominated_node_name or not _are_told_alike(pods):
            return list(map(self._status_on, nodes, pods))
        return [self.pod_conditions.scheduled(first.status, first.generation)] * len(pods)

    def _status_on(self, node: str, pod: Pod) -> PodStatus:
        """That of the pod once it has the node."""
        status = self.pod_conditions.scheduled(pod.status, pod.generation)
        if not status.nominated_node_name:
            return status
        if status.nominated_node_name != node:
            self.note(EventKind.NOMINATION_CLEARED)
        return self.pod_conditions.without_nomination(status)

    def restate(self, new: Pod | AnyGroup) -> None:
        """Write an object of which the conditions alone changed: no unit is concerned by it."""
        self._store(new.key, new)
        if isinstance(new, Pod) and new.node_name:
            self.cluster.disruption.pod_changed(new, new)

    def remove(self, key: ObjectKey) -> None:
        """Take an object out for good."""
        old = self.state.remove(key)
        self.edits.note(key, old, None)
        if isinstance(old, Pod):
            self.cluster.budgets.pod_changed(old, None)
            self._pod_event(old, None)
            self._touch_pod(key, old)
            self.cluster.set_pending_member(key, None)
            self.cluster.failed_bindings.pod_gone(old.ordinal)
        elif isinstance(old, Node):
            self._node_event(old, None)
        elif isinstance(old, PodGroup | CompositePodGroup):
            self._touch_group(key, old, restructured=True)
        elif isinstance(old, Workload):
            self.touched_workloads[key] = None
        elif isinstance(old, PriorityClass):
            self.cluster.refresh_priority_classes()
        elif isinstance(old, PodDisruptionBudget):
            self.cluster.budgets.remove(key)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Restate a pod if its status changed."""
        if status is not pod.status:
            self.restate(varied(pod, status=status, resource_version=self.revision))

    def set_group(self, group: AnyGroup, changed: AnyGroup) -> None:
        """Restate a group if its conditions changed."""
        if changed is not group:
            self.restate(varied(changed, resource_version=self.revision))

    def finish(self) -> bool:
        """Settle, log, and hand over to the writer; False if nothing was written."""
        settle_deletions(self)
        settle_pending(self)
        settle_layouts(self)
        settle_units(self)
        settle_waits(self)
        self._restate_budgets()
        self.cluster.events_happened(self.events, self.edits, self.now_us)
        if not self.edits.changes_anything():
            return False
        self.commit()
        return True

    def commit(self) -> None:
        """Make the revision: the log entry and the final states of its objects."""
        entry = self.edits.write(self.cluster.writes(), self.revision, self.now_us)
        self.state.revision = self.revision
        self.cluster.append(entry)

    def _store(self, key: ObjectKey, new: ClusterObject) -> ClusterObject | None:
        old = self.state.put(key, new)
        self.edits.note(key, old, new)
        return old

    def _restate_budgets(self) -> None:
        """Budgets say what they come to after this revision."""
        for changed in self.cluster.budgets.take_changed():
            restated = varied(changed, resource_version=self.revision)
            self._store(restated.key, restated)
            self.cluster.budgets.restated(restated)

    def _pod_event(self, old: Pod | None, new: Pod | None) -> None:
        event = self.cluster.feed.pod_changed(old, new)
        self.note(event)
        self.cluster.disruption.pod_changed(old, new)
        if old is not None and event is EventKind.POD_FREED:
            self.cluster.waits.pod_gone(old.ordinal)
        if old is not None and is_nominated(old) and (new is None or not new.is_member):
            self.note(EventKind.NOMINATION_CLEARED)
        if new is not None and (new.deletion_us is not None or (old is not None and old.is_leaving)):
            self.cluster.note_leaving(new)
        elif new is None and old is not None:
            self.cluster.leaving_until.pop(old.ordinal, None)

    def _node_event(self, old: Node | None, new: Node | None) -> None:
        """A node that changed may be tried again by pods whose binding to it failed."""
        if not self.cluster.feed.node_changed(old, new):
            return
        for event in node_events(old, new):
            self.note(event)
        node = new or old
        if node is not None:
            self.cluster.failed_bindings.node_changed(node.name)

    def _touch_pod(self, key: ObjectKey, pod: Pod) -> None:
        group = group_key_of(pod) if pod.group else None
        self.touched_pods[key] = group
        if group is not None:
            self.touched_groups[group] = None

    def _touch_group(self, key: ObjectKey, group: AnyGroup, *, restructured: bool) -> None:
        self.touched_groups[key] = None
        parent = parent_key_of(group)
        if parent is not None:
            self.touched_groups[parent] = None
        if restructured:
            self.restructured[key] = None
            self.regrouped.update(dict.fromkeys((key,) if parent is None else (key, parent)))

    def note(self, event: EventKind | None) -> None:
        """Something happened that waiting units may be helped by."""
        if event is not None and event is not self._last_event:
            self.events[event] = None
            self._last_event = event


def _concerns_its_unit(old: Pod | AnyGroup, new: Pod | AnyGroup) -> bool:
    """Whether queue or placement read something that differs: a note in an annotation resets no backoff."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        own = (old.gates, old.node_name, old.status.phase) != (new.gates, new.node_name, new.status.phase)
        if own or old.labels != new.labels or _declares_another_run_time(old, new):
            return True
    return old.spec != new.spec or old.deletion_us != new.deletion_us


def _declares_another_run_time(old: Pod, new: Pod) -> bool:
    """Of a pod that waits: it may be let into reserved room now, or not any more."""
    if old.annotations is new.annotations or new.node_name:
        return False
    return max_run_time_seconds(old) != max_run_time_seconds(new)
