"""What keeps groups that are not ready from being tried, as reasons with numbers (semantics 4, pre-enqueue)."""

from __future__ import annotations

from muster.core.decision import Reason
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import (
    Shortage,
    gates_hold,
    held_count,
    is_initially_scheduled,
    shortages,
    unbound_pods,
)
from muster.engine.members import Standing
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import POD, ObjectKey

MEMBERS_MISSING = "MEMBERS_MISSING"
GROUPS_NOT_READY = "GROUPS_NOT_READY"
SCHEDULING_GATES = "SCHEDULING_GATES"
BEING_DELETED = "BEING_DELETED"


def group_holds(state: ClusterState, unit: ObjectKey) -> dict[ObjectKey, tuple[Reason, ...]]:
    """By group that is not ready, one reason; of a pod without a group its gates."""
    if unit.kind == POD:
        gated = unbound_pods(state, unit)[1]
        return {unit: (_gates(gates_hold(gated), gated),)} if gated else {}
    root = state.group(unit)
    if root is None:
        return {}
    short = shortages(state, root)
    is_scheduled = is_initially_scheduled(root)
    found: dict[ObjectKey, tuple[Reason, ...]] = {}
    for key, shortage in short.items():
        group = state.group(key)
        if group is not None:
            found[key] = (_hold(state, group, shortage, short, root_is_scheduled=is_scheduled),)
    return found


def _hold(
    state: ClusterState,
    group: AnyGroup,
    shortage: Shortage,
    short: dict[ObjectKey, Shortage],
    *,
    root_is_scheduled: bool,
) -> Reason:
    if shortage.group != group.key or group.deletion_us is not None:
        marked = shortage.group
        details = {"kind": marked.kind, "namespace": marked.namespace, "name": marked.name}
        return Reason(BEING_DELETED, shortage.because, 0, details)
    required = str(group.spec.required_minimum)
    if not isinstance(group, PodGroup):
        children = state.children(group.namespace, group.name)
        ready = sum(child.key not in short for child in children)
        return Reason(GROUPS_NOT_READY, shortage.because, 0, {"ready": str(ready), "required": required})
    members = state.members(group.namespace, group.name)
    held = held_count(members, root_is_scheduled=root_is_scheduled)
    gated = members.counts[Standing.GATED]
    if gated and held < group.spec.required_minimum:
        return _gates(shortage.because, gated)
    details = {"members": str(held + members.unbound), "required": required}
    return Reason(MEMBERS_MISSING, shortage.because, 0, details)


def _gates(text: str, pods: int) -> Reason:
    return Reason(SCHEDULING_GATES, text, 0, {"pods": str(pods)})
