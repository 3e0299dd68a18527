"""Units that no cycle would try, for eyes: every group as it stands, of hierarchies however broken (api.md, Explain).

A hierarchy whose root is missing is shown from the topmost group that there is; one whose parents form a cycle from the
group that the cycle is named after, up to where it comes round. What lies deeper than any valid hierarchy by far is
counted, not shown.
"""

from __future__ import annotations

from dataclasses import replace

from muster.core.decision import GroupResult, Reason, Status
from muster.core.feasibility import Tally
from muster.engine.cluster_state import ClusterState, group_key_of, parent_key_of
from muster.engine.hierarchy import Root, held_count, is_initially_scheduled, subtree
from muster.engine.members import Standing
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import POD, ObjectKey

ROOT_MISSING = "ROOT_MISSING"
PARENT_CYCLE = "PARENT_CYCLE"
DEEPER_GROUPS = "DEEPER_GROUPS"
MOST_LEVELS_SHOWN = 8


def rootless(state: ClusterState, named: ObjectKey, root: Root) -> GroupResult:
    """The groups around an object that is no part of a unit yet, and why; of a pod without its group, the pod."""
    details = {"kind": root.key.kind, "namespace": root.key.namespace, "name": root.key.name}
    reason = Reason(PARENT_CYCLE if root.cycle else ROOT_MISSING, root.why_pending, 0, details)
    top = state.group(root.key if root.cycle else _topmost(state, named))
    shown = _result(named, Tally(1)) if top is None else as_it_stands(state, top)
    return replace(shown, status=Status.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(reason, *shown.reasons))


def as_it_stands(state: ClusterState, top: AnyGroup) -> GroupResult:
    """The group with those below it: what each requires, what holds of it, and what waits to be tried."""
    return _shown(state, top, (), is_scheduled=is_initially_scheduled(top))


def _topmost(state: ClusterState, named: ObjectKey) -> ObjectKey:
    """The last group on the way up that exists; the first on it if that does not."""
    pod = state.pod(named.namespace, named.name) if named.kind == POD else None
    key = named if pod is None else group_key_of(pod)
    while (group := state.group(key)) is not None:
        parent = parent_key_of(group)
        if parent is None or state.group(parent) is None:
            return key
        key = parent
    return key


def _shown(
    state: ClusterState, group: AnyGroup, above: tuple[ObjectKey, ...], *, is_scheduled: bool
) -> GroupResult:
    minimum = group.spec.required_minimum
    if isinstance(group, PodGroup):
        members = state.members(group.namespace, group.name)
        held = held_count(members, root_is_scheduled=is_scheduled)
        return _result(group.key, Tally(minimum, held, members.counts[Standing.PENDING]))
    above = (*above, group.key)
    below = [child for child in state.children(group.namespace, group.name) if child.key not in above]
    if len(above) >= MOST_LEVELS_SHOWN and below:
        deeper = sum(1 for child in below for _ in subtree(state, child.key))
        reason = Reason(DEEPER_GROUPS, f"{deeper} groups below are not shown", 0, {"groups": str(deeper)})
        return replace(_result(group.key, Tally(minimum, 0, len(below))), reasons=(reason,))
    children = tuple(_shown(state, child, above, is_scheduled=is_scheduled) for child in below)
    holding = sum(child.satisfied >= child.required for child in children)
    return replace(_result(group.key, Tally(minimum, holding, len(children) - holding)), children=children)


def _result(key: ObjectKey, tally: Tally) -> GroupResult:
    return GroupResult(
        key, tally.status, required=tally.required, satisfied=tally.satisfied, remaining=tally.remaining
    )
