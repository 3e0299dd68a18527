"""When preemption may run (semantics 5.6, the first paragraph): for the root alone, after its placement came short."""

from __future__ import annotations

from muster.core.decision import Decision, GroupResult, Status
from muster.core.tree import GroupTree, Unit
from muster.core.trial import already_holds
from muster.model.priority import NEVER


def may_preempt(unit: Unit, decision: Decision) -> bool:
    """Whether room made by evictions could help the unit, for which this was decided without.

    So if its root is Unschedulable; or if bound pods alone meet its minimum, and of the pods that were tried some (all,
    if the root is basic) found no room, not all of them for good. Whom it might evict is not asked.
    """
    result, placed = decision.result, len(decision.assignments.pods)
    if result is None or unit.preemption_policy == NEVER:
        return False
    if result.status is not Status.SUCCESS:
        return result.status is Status.UNSCHEDULABLE
    if not already_holds(unit.root) or (placed and not unit.root.is_gang):
        return False
    return _could_be_helped(result)


def _could_be_helped(result: GroupResult) -> bool:
    """Whether a pod or a group that was tried was not placed for want of room that others take."""
    if result.unschedulable or result.status is Status.UNSCHEDULABLE:
        return True
    return any(_could_be_helped(child) for child in result.children)


def tried_pods(group: GroupTree) -> int:
    """How many pending pods of the subtree may be placed: all but those of inadmissible groups."""
    if not group.admissible:
        return 0
    return len(group.pods.ids) + sum(tried_pods(child) for child in group.children)
