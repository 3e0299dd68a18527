"""Units that were placed whole, one after the other in one step, and are written together: a revision for each, in columns.

What `binder.commit_decision` writes of such a unit, for a fraction of it: its pods are bound, its groups are scheduled, and
it leaves the queue. Nobody waits for pods to leave, nothing is nominated or reserved, and no disruption budget counts its
pods, so nothing else follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from muster.core.decision import Decision, DecisionCode, GroupResult, Status
from muster.core.tree import GroupTree, Unit, leaves
from muster.engine.cluster import Cluster
from muster.engine.conditions import SCHEDULED, PodConditions, with_group_condition
from muster.engine.edits import Edits
from muster.engine.hierarchy import unbound_pods
from muster.engine.log_entries import EventType, LogEntry
from muster.engine.ports import (
    AssignmentColumns,
    DecisionRecord,
)
from muster.engine.queueing_hints import EventKind
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import POD, Condition
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, keys_of
from muster.model.variations import alike, variation, varied_all

if TYPE_CHECKING:
    from muster.engine.deciding import Verdict

_bound = varied_all(Pod, "node_name", "resource_version", "status")
_stand_alike = alike(Pod, "status", "generation")
_scheduled: dict[type[AnyGroup], Callable[..., AnyGroup]] = {
    kind: variation(kind, "conditions", "resource_version") for kind in (PodGroup, CompositePodGroup)
}
_columns = variation(AssignmentColumns, "namespace", "nodes", "pods", "uids", "node_index")
_NO_COLUMNS = AssignmentColumns()
_MODIFIED = EventType.MODIFIED
_Standing = tuple[type[AnyGroup], int, tuple[Condition, ...]]


def is_whole(unit: Unit, decision: Decision) -> bool:
    """Whether every pod of the unit has a node, every group holds, and nobody has to go for it."""
    if decision.code is not DecisionCode.SCHEDULED or decision.preemption is not None:
        return False
    assigned = decision.assignments.pods
    result = decision.result
    return bool(assigned) and len(assigned) == unit.pod_count and result is not None and _holds(result)


def _holds(result: GroupResult) -> bool:
    return result.status is Status.SUCCESS and all(map(_holds, result.children))


def is_undisturbed(cluster: Cluster) -> bool:
    """Whether units of the cluster can be written so: nobody has nodes in view, waits for pods to leave, or keeps room."""
    held = cluster.state.nominated or cluster.failed_bindings or cluster.reservations.current
    return not held and cluster.waits.is_empty


def leaves_nothing(cluster: Cluster, unit: Unit) -> bool:
    """Whether the unit is through with the queue once the pods are bound that it has now, and no budget counts them."""
    key = unit.key
    if cluster.budgets.concern(key.namespace):
        return False
    return unbound_pods(cluster.state, key) == (unit.pod_count, 0)


class PlacedUnits:
    """Writes verdicts on units that were placed whole, once; `now_us` is when they are written, all in one step.

    Indexes of pods are brought up to date at the end, for all at once: no unit looks at the pods of another.
    """

    def __init__(self, cluster: Cluster, now_us: int) -> None:
        self._cluster = cluster
        self._now_us = now_us
        self._writes = cluster.writes()
        self._conditions = PodConditions(now_us)
        self._of_groups: dict[_Standing, tuple[Condition, ...]] = {}
        self._before: list[Pod] = []
        self._bound: list[Pod] = []

    def write(self, verdicts: Sequence[Verdict]) -> list[DecisionRecord]:
        """A revision for each, in their order, with its record."""
        cluster = self._cluster
        records = [self._write(verdict) for verdict in verdicts]
        cluster.state.bind(self._bound)
        cluster.feed.pods_bound(self._bound)
        cluster.disruption.pods_bound(self._bound)
        edits = Edits()
        edits.bound(self._before, self._bound)
        cluster.events_happened((EventKind.POD_BOUND,), edits, self._now_us)
        return records

    def _write(self, verdict: Verdict) -> DecisionRecord:
        cluster, unit, decision = self._cluster, verdict.unit, verdict.decision
        revision = cluster.state.revision + 1
        pods, assigned = _pods_of(cluster, unit), decision.assignments
        chosen = [pods[ordinal] for ordinal in assigned.pods]
        bound = self._bound_to(chosen, [assigned.nodes[at] for at in assigned.node_index], revision)
        self._before += chosen
        self._bound += bound
        self._writes.puts.update(zip(keys_of(bound), bound, strict=True))
        changed: list[ClusterObject] = [*bound]
        if unit.key.kind != POD:
            self._write_groups(unit.root, revision, changed)
        cluster.queue.done(unit.key)
        cluster.searches.forget(unit.key)
        cluster.state.revision = revision
        cluster.append(LogEntry(revision, self._now_us, [_MODIFIED] * len(changed), changed))
        record = _record_of(verdict, revision, chosen, self._now_us)
        self._writes.decisions.append(record)
        cluster.remember(record)
        return record

    def _bound_to(self, pods: Sequence[Pod], nodes: list[str], revision: int) -> list[Pod]:
        scheduled, number = self._conditions.scheduled, len(pods)
        if _stand_alike(pods):
            statuses = [scheduled(pods[0].status, pods[0].generation)] * number
        else:
            statuses = [scheduled(pod.status, pod.generation) for pod in pods]
        return _bound(pods, nodes, [revision] * number, statuses)

    def _write_groups(self, tree: GroupTree, revision: int, changed: list[ClusterObject]) -> None:
        """The group and all below it, in the order of `hierarchy.subtree`."""
        state, key = self._cluster.state, tree.key
        group = state.group(key)
        conditions = self._scheduled_conditions(group) if group is not None else ()
        if group is not None and conditions != group.conditions:
            after = _scheduled[type(group)](group, conditions, revision)
            state.put(key, after)
            self._writes.puts[key] = after
            changed.append(after)
        for child in tree.children:
            self._write_groups(child, revision, changed)

    def _scheduled_conditions(self, group: AnyGroup) -> tuple[Condition, ...]:
        """Made once for groups that stand alike."""
        standing = (type(group), group.generation, group.conditions)
        made = self._of_groups.get(standing)
        if made is None:
            us = self._now_us
            told = with_group_condition(group, scheduled=True, reason=SCHEDULED, message="", now_us=us)
            made = self._of_groups[standing] = told.conditions
        return made


def _pods_of(cluster: Cluster, unit: Unit) -> Mapping[int, Pod]:
    """By ordinal, the unit's pods, others of its groups among them."""
    root, state = unit.root, cluster.state
    if root.key.kind == POD:
        pod = state.pod(root.key.namespace, root.key.name)
        return {} if pod is None else {pod.ordinal: pod}
    if root.is_leaf:
        return state.members(root.key.namespace, root.key.name).pods
    found: dict[int, Pod] = {}
    for leaf in leaves(root):
        found.update(state.members(leaf.key.namespace, leaf.key.name).pods)
    return found


def _record_of(verdict: Verdict, revision: int, pods: Sequence[Pod], now_us: int) -> DecisionRecord:
    assigned = verdict.decision.assignments
    columns = _columns(
        _NO_COLUMNS,
        pods[0].namespace,
        assigned.nodes,
        tuple([pod.name for pod in pods]),
        tuple([pod.uid for pod in pods]),
        assigned.node_index,
    )
    return DecisionRecord(
        id=str(revision),
        revision=revision,
        snapshot_revision=verdict.snapshot_revision,
        decision=verdict.decision,
        assignments=columns,
        trace_id=verdict.cycle.trace_id,
        profile=verdict.profile,
        create_us=now_us,
        duration_us=int(verdict.core_seconds * 1_000_000),
        input=verdict.input,
    )
