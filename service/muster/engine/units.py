"""Builds the tree that a cycle decides from live objects (core.tree): members counted now, never kept.

Of a hierarchy with layout faults, which may have any depth and is never tried, only the root and its leaves are built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import Shortage, held_count, is_initially_scheduled, shortages, subtree
from muster.engine.members import Members, Standing
from muster.engine.nominations import earlier_preemption, promised_room
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import POD, ObjectKey
from muster.model.pod import Pod
from muster.model.priority import PREEMPT_LOWER_PRIORITY


def build_unit(cluster: Cluster, key: ObjectKey) -> Unit:
    """The unit as it is now. Raises KeyError if its root is gone."""
    if key.kind == POD:
        pod = cluster.state.pod(key.namespace, key.name)
        if pod is None:
            raise KeyError(key)
        return _pod_unit(cluster, pod)
    root = cluster.state.group(key)
    if root is None:
        raise KeyError(key)
    if key in cluster.layouts.faults:
        tree = _untried_tree(cluster, root)
    else:
        builder = _Builder(cluster, shortages(cluster.state, root), is_initially_scheduled(root))
        tree = builder.tree(root, is_constrained=False)
    return _unit(cluster, tree, root.spec.priority or 0, root.spec.preemption_policy)


def _pod_unit(cluster: Cluster, pod: Pod) -> Unit:
    if pod.node_name:
        tree = GroupTree(key=pod.key, satisfied=int(pod.is_member))
    else:
        tree = GroupTree(key=pod.key, pods=PendingPods((pod.ordinal,), (cluster.feed.signature_of(pod),)))
    return _unit(cluster, tree, pod.spec.priority or 0, pod.spec.preemption_policy)


def _unit(cluster: Cluster, tree: GroupTree, priority: int, policy: str | None) -> Unit:
    """The tree with what is known of it beside its objects."""
    return Unit(
        root=tree,
        priority=priority,
        preemption_policy=policy or PREEMPT_LOWER_PRIORITY,
        excluded_nodes=_excluded(cluster),
        promised=promised_room(cluster, priority, tree),
        earlier=earlier_preemption(cluster, tree),
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    """short: groups that are not admissible."""

    cluster: Cluster
    short: Mapping[ObjectKey, Shortage]
    root_is_scheduled: bool

    def tree(self, group: AnyGroup, *, is_constrained: bool) -> GroupTree:
        """The group with all below it; `is_constrained`: an ancestor must keep to one domain."""
        spec = group.spec
        is_constrained = is_constrained or spec.topology_key is not None
        if isinstance(group, PodGroup):
            return self._leaf(group, is_constrained=is_constrained)
        children = self.cluster.state.children(group.namespace, group.name)
        return GroupTree(
            key=group.key,
            is_gang=spec.is_gang,
            minimum=spec.required_minimum,
            topology_key=spec.topology_key,
            admissible=group.key not in self.short,
            children=tuple(self.tree(child, is_constrained=is_constrained) for child in children),
        )

    def _leaf(self, group: PodGroup, *, is_constrained: bool) -> GroupTree:
        """Nodes of bound members matter only where they pin a domain."""
        members = self.cluster.state.members(group.namespace, group.name)
        pins = is_constrained and members.counts[Standing.BOUND]
        return GroupTree(
            key=group.key,
            is_gang=group.spec.is_gang,
            minimum=group.spec.required_minimum,
            topology_key=group.spec.topology_key,
            admissible=group.key not in self.short,
            satisfied=held_count(members, root_is_scheduled=self.root_is_scheduled),
            bound_nodes=tuple(pod.node_name for pod in members.of(Standing.BOUND)) if pins else (),
            pods=_pending(self.cluster, members),
        )


def _untried_tree(cluster: Cluster, root: AnyGroup) -> GroupTree:
    groups = (group for group in subtree(cluster.state, root.key) if isinstance(group, PodGroup))
    found = tuple(
        GroupTree(
            key=group.key,
            admissible=False,
            pods=_pending(cluster, cluster.state.members(group.namespace, group.name)),
        )
        for group in groups
    )
    if isinstance(root, PodGroup):
        return found[0]
    return GroupTree(key=root.key, admissible=False, children=found)


def _pending(cluster: Cluster, members: Members) -> PendingPods:
    pods = list(members.of(Standing.PENDING)) if members.counts[Standing.PENDING] else []
    return PendingPods(tuple([pod.ordinal for pod in pods]), tuple(cluster.feed.signatures_of(pods)))


def _excluded(cluster: Cluster) -> dict[int, frozenset[str]]:
    return {ordinal: frozenset(nodes) for ordinal, nodes in cluster.failed_bindings.items()}
