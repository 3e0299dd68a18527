"""What groups and pods of a hierarchy say where no cycle decides for them (semantics 3, 4, 6, 7).

Their root is missing, the layout is at fault, the unit is gated, or a group is being deleted. A cycle's outcomes are
`binder`'s. Everything here writes only what differs, and nothing of what is True.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from muster.engine.cluster_state import group_key_of
from muster.engine.conditions import (
    FALSE,
    INVALID,
    SCHEDULER_ERROR,
    SCHEDULING_GATED,
    UNSCHEDULABLE,
    group_condition_type,
    with_group_condition,
)
from muster.engine.hierarchy import Root, Shortage, being_deleted, marked_above, pods_of_unit, subtree
from muster.engine.layouts import Faults, faults_message
from muster.engine.members import Standing, standing
from muster.model.group import AnyGroup
from muster.model.meta import Condition, ObjectKey
from muster.model.pod import Pod

if TYPE_CHECKING:
    from muster.engine.mutation import Mutation


def tell_group(mutation: Mutation, group: AnyGroup, reason: str, message: str) -> None:
    """The group is not scheduled, for this reason."""
    changed = with_group_condition(
        group, scheduled=False, reason=reason, message=message, now_us=mutation.now_us
    )
    mutation.set_group(group, changed)


def tell_pod(mutation: Mutation, pod: Pod, reason: str, message: str) -> None:
    """The pod waits, for this reason."""
    status = mutation.pod_conditions.waiting(pod.status, reason, message, pod.generation)
    mutation.set_pod_status(pod, status)


def tell_pending_group(mutation: Mutation, group: AnyGroup, root: Root) -> None:
    """A group without a root waits for it; in a cycle, or below one, its layout is at fault."""
    tell_group(mutation, group, INVALID if root.cycle else UNSCHEDULABLE, root.why_pending)


def tell_invalid_groups(mutation: Mutation, unit: ObjectKey, faults: Faults) -> None:
    """Every group of the hierarchy names the faults of its layout."""
    message = faults_message(faults)
    for group in list(subtree(mutation.state, unit)):
        tell_group(mutation, group, INVALID, message)


def tell_invalid_pods(mutation: Mutation, pods: Iterable[Pod], faults: Faults) -> None:
    """Pods that wait for a node in a hierarchy with faults name them."""
    message = faults_message(faults)
    for pod in pods:
        if _waits(mutation, pod):
            tell_pod(mutation, pod, SCHEDULER_ERROR, message)


def tell_gated_groups(
    mutation: Mutation, unit: ObjectKey, short: Mapping[ObjectKey, Shortage], *, is_news: bool
) -> None:
    """Groups of a gated unit say what they are short of, or that their root is; if it is no news, only those that say nothing yet."""
    root = short[unit]
    because = f"{root.group} is not ready: {root.because}" if root.group == unit else root.because
    for group in list(subtree(mutation.state, unit)):
        if is_news or _says_nothing(group):
            own = short.get(group.key)
            tell_group(mutation, group, UNSCHEDULABLE, own.because if own is not None else because)


def tell_idle_groups(mutation: Mutation, unit: ObjectKey, short: Mapping[ObjectKey, Shortage]) -> None:
    """Groups that have no pods to wait for, but said why they are not scheduled, say what holds now."""
    for group in list(subtree(mutation.state, unit)):
        if _condition_of(group) is not None:
            own = short.get(group.key)
            because = own.because if own is not None else "none of its pods waits for a node"
            tell_group(mutation, group, UNSCHEDULABLE, because)


def tell_held_pods(mutation: Mutation, unit: ObjectKey, touched: Iterable[Pod]) -> None:
    """Pods with gates name them, pods of a group that is being deleted name it: the touched ones, or all after the tree changed."""
    pods = list(pods_of_unit(mutation.state, unit)) if unit in mutation.reshaped else touched
    marked: dict[str, ObjectKey | None] = {}
    for pod in pods:
        where = standing(pod, mutation.state.scheduler_names)
        if where is Standing.GATED:
            tell_pod(mutation, pod, SCHEDULING_GATED, "scheduling gates: " + ", ".join(pod.gates))
        elif where is Standing.PENDING and pod.group:
            if pod.group not in marked:
                marked[pod.group] = marked_above(mutation.state, group_key_of(pod))
            holder = marked[pod.group]
            if holder is not None:
                tell_pod(mutation, pod, UNSCHEDULABLE, being_deleted(holder))


def tell_short_pods(
    mutation: Mutation, unit: ObjectKey, short: Mapping[ObjectKey, Shortage], pods: Iterable[Pod] | None
) -> None:
    """Pods of a gated unit that may be placed name the group that is not ready: these pods, or all of the unit.

    How much the group is short of is told by the group and the queue, which know it when members come and go.
    """
    for pod in list(pods_of_unit(mutation.state, unit)) if pods is None else pods:
        if _waits(mutation, pod):
            tell_pod(mutation, pod, UNSCHEDULABLE, _why_held(group_key_of(pod), unit, short))


def _why_held(leaf: ObjectKey, unit: ObjectKey, short: Mapping[ObjectKey, Shortage]) -> str:
    holder = leaf if leaf in short else unit
    found = short[holder]
    is_marked = found.because == being_deleted(found.group)
    return found.because if is_marked else f"{holder} is not ready"


def is_foreign(mutation: Mutation, pod: Pod) -> bool:
    """Whether the pod waits for a scheduler that is not served here: no member, whatever group it names."""
    return standing(pod, mutation.state.scheduler_names) is Standing.FOREIGN


def touched_pods(mutation: Mutation, keys: Iterable[ObjectKey]) -> Iterator[Pod]:
    """The pods of these keys that still exist."""
    for key in keys:
        pod = mutation.state.pod(key.namespace, key.name)
        if pod is not None:
            yield pod


def _waits(mutation: Mutation, pod: Pod) -> bool:
    return standing(pod, mutation.state.scheduler_names) is Standing.PENDING


def _condition_of(group: AnyGroup) -> Condition | None:
    """The condition that tells why the group has not been scheduled."""
    kind = group_condition_type(group)
    return next((each for each in group.conditions if each.type == kind and each.status == FALSE), None)


def _says_nothing(group: AnyGroup) -> bool:
    """Whether the group has said nothing of itself yet, or only of a fault that is over."""
    said = _condition_of(group)
    return said is None or said.reason == INVALID
