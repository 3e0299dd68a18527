"""Builds the tree that a cycle decides from live objects (core.tree): members counted now, never kept."""

from __future__ import annotations

from muster.core.tree import GroupTree, PendingPods, Unit
from muster.engine.cluster import Cluster
from muster.engine.hierarchy import held_count, is_initially_scheduled, shortage
from muster.engine.members import Standing
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
    tree = _group_tree(cluster, root, root_is_scheduled=is_initially_scheduled(root))
    return Unit(
        root=tree,
        priority=root.spec.priority or 0,
        preemption_policy=root.spec.preemption_policy or PREEMPT_LOWER_PRIORITY,
        excluded_nodes=_excluded(cluster),
    )


def _pod_unit(cluster: Cluster, pod: Pod) -> Unit:
    columns = PendingPods((pod.ordinal,), (cluster.feed.signature_of(pod),))
    return Unit(
        root=GroupTree(key=pod.key, pods=columns),
        priority=pod.spec.priority or 0,
        preemption_policy=pod.spec.preemption_policy or PREEMPT_LOWER_PRIORITY,
        excluded_nodes=_excluded(cluster),
    )


def _group_tree(cluster: Cluster, group: AnyGroup, *, root_is_scheduled: bool) -> GroupTree:
    state = cluster.state
    admissible = shortage(state, group, root_is_scheduled=root_is_scheduled) is None
    spec = group.spec
    if isinstance(group, PodGroup):
        return _leaf(cluster, group, admissible=admissible, root_is_scheduled=root_is_scheduled)
    children = state.children(group.namespace, group.name)
    return GroupTree(
        key=group.key,
        is_gang=spec.is_gang,
        minimum=spec.required_minimum,
        topology_key=spec.topology_key,
        admissible=admissible,
        children=tuple(_group_tree(cluster, c, root_is_scheduled=root_is_scheduled) for c in children),
    )


def _leaf(cluster: Cluster, group: PodGroup, *, admissible: bool, root_is_scheduled: bool) -> GroupTree:
    members = cluster.state.members(group.namespace, group.name)
    pending = list(members.of(Standing.PENDING))
    bound = members.counts[Standing.BOUND]
    return GroupTree(
        key=group.key,
        is_gang=group.spec.is_gang,
        minimum=group.spec.required_minimum,
        topology_key=group.spec.topology_key,
        admissible=admissible,
        satisfied=held_count(members, root_is_scheduled=root_is_scheduled),
        bound_nodes=tuple(pod.node_name for pod in members.of(Standing.BOUND)) if bound else (),
        pods=PendingPods(
            tuple(pod.ordinal for pod in pending), tuple(cluster.feed.signature_of(pod) for pod in pending)
        ),
    )


def _excluded(cluster: Cluster) -> dict[int, frozenset[str]]:
    return {ordinal: frozenset(nodes) for ordinal, nodes in cluster.failed_bindings.items()}
