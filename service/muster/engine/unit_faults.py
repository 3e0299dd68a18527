"""Faults that keep a unit from being tried (semantics 3), as the decision that its cycle makes instead. Pure.

Layout faults are found by `layouts`, when a tree changes. Pod faults are found here, before each cycle: all pods and
groups of a hierarchy, bound pods included, share one priority and one preemption policy, and the pods one scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from muster.core.decision import Decision, DecisionCode, GroupResult, Reason, Status
from muster.core.tree import MOST_PODS_A_UNIT
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import leaf_members, subtree
from muster.engine.layouts import Faults, LayoutFault, Layouts, faults_message
from muster.engine.members import Standing
from muster.model.group import PodGroup
from muster.model.meta import GROUP_KINDS, ObjectKey
from muster.model.pod import Pod, PodSpec
from muster.model.priority import PREEMPT_LOWER_PRIORITY

UNIT_TOO_LARGE = "UNIT_TOO_LARGE"
_SPEC_OF: Callable[[Pod], PodSpec] = attrgetter("spec")
_COUNTED = (Standing.PENDING, Standing.GATED, Standing.BOUND, Standing.FOREIGN)


class _Holder(NamedTuple):
    """One object with what the whole unit must agree on; a group has no scheduler name."""

    key: ObjectKey
    priority: int
    policy: str
    scheduler_name: str | None


def fault_of(state: ClusterState, layouts: Layouts, unit: ObjectKey) -> Decision | None:
    """The decision for a unit that must not be tried; None if it may be. A pod of its own is never at fault."""
    if unit.kind not in GROUP_KINDS:
        return None
    faults = layouts.faults.get(unit)
    faults = faults or _size_faults(state, unit)
    return _invalid(unit, faults) if faults else _clash(state, unit)


def _size_faults(state: ClusterState, unit: ObjectKey) -> Faults:
    """A unit may have any number of pods that are done."""
    pods = sum(members.live for members in leaf_members(state, unit))
    if pods <= MOST_PODS_A_UNIT:
        return ()
    text = f"the unit has {pods} pods, at most {MOST_PODS_A_UNIT} are allowed"
    return (LayoutFault(UNIT_TOO_LARGE, text),)


def _invalid(unit: ObjectKey, faults: Faults) -> Decision:
    reasons = tuple(Reason(*fault) for fault in faults)
    result = GroupResult(key=unit, status=Status.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=reasons)
    return Decision(unit, DecisionCode.INVALID, result, message=faults_message(faults))


def _clash(state: ClusterState, unit: ObjectKey) -> Decision | None:
    """What two objects of the unit disagree about."""
    return None if _agree(state, unit) else _first_clash(state, unit)


def _agree(state: ClusterState, unit: ObjectKey) -> bool:
    """Whether they do not, as in nearly every unit; then nothing needs to be told of them."""
    groups: set[tuple[int, str]] = set()
    specs: dict[int, PodSpec] = {}
    for group in subtree(state, unit):
        spec = group.spec
        groups.add((spec.priority or 0, spec.preemption_policy or PREEMPT_LOWER_PRIORITY))
        if isinstance(group, PodGroup):
            counted = state.members(group.namespace, group.name).of(*_COUNTED)
            specs |= {id(spec): spec for spec in map(_SPEC_OF, counted)}
    pods = {
        (spec.priority or 0, spec.preemption_policy or PREEMPT_LOWER_PRIORITY, spec.scheduler_name)
        for spec in specs.values()
    }
    return len(groups.union(told[:2] for told in pods)) <= 1 and len({told[2] for told in pods}) <= 1


def _first_clash(state: ClusterState, unit: ObjectKey) -> Decision | None:
    first: _Holder | None = None
    first_pod: _Holder | None = None
    for holder in _holders(state, unit):
        first = first or holder
        if holder.priority != first.priority:
            return _fault(unit, "PRIORITY_CLASH", "priority", first, holder, first.priority, holder.priority)
        if holder.policy != first.policy:
            return _fault(
                unit,
                "PREEMPTION_POLICY_CLASH",
                "preemption policy",
                first,
                holder,
                first.policy,
                holder.policy,
            )
        if holder.scheduler_name is None:
            continue
        first_pod = first_pod or holder
        if holder.scheduler_name != first_pod.scheduler_name:
            names = (first_pod.scheduler_name, holder.scheduler_name)
            return _fault(unit, "SCHEDULER_NAME_CLASH", "scheduler name", first_pod, holder, *names)
    return None


def _holders(state: ClusterState, unit: ObjectKey) -> Iterator[_Holder]:
    """Groups of the unit, and one pod for each spec among its members: pods of one spec agree."""
    for group in subtree(state, unit):
        spec = group.spec
        policy = spec.preemption_policy or PREEMPT_LOWER_PRIORITY
        yield _Holder(group.key, spec.priority or 0, policy, None)
        if isinstance(group, PodGroup):
            seen: dict[int, Pod] = {}
            for pod in state.members(group.namespace, group.name).of(*_COUNTED):
                seen.setdefault(id(pod.spec), pod)
            yield from map(_pod_holder, seen.values())


def _pod_holder(pod: Pod) -> _Holder:
    spec = pod.spec
    policy = spec.preemption_policy or PREEMPT_LOWER_PRIORITY
    return _Holder(pod.key, spec.priority or 0, policy, spec.scheduler_name)


def _fault(  # noqa: PLR0913, PLR0917 - two objects and the value of each
    unit: ObjectKey, code: str, what: str, one: _Holder, other: _Holder, its: object, others: object
) -> Decision:
    message = f"{what} differs: {one.key} has {its!r}, {other.key} has {others!r}"
    result = GroupResult(
        key=unit, status=Status.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(Reason(code, message),)
    )
    return Decision(unit, DecisionCode.SCHEDULER_ERROR, result, message=message)
