"""Questions about trees of groups on live objects: the root, what is missing, who is admissible (semantics 3 and 4).

Members are counted from the objects each time. Broken trees (missing parents, cycles) are answers, not errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muster.engine.cluster_state import ClusterState, group_key_of, parent_key_of
from muster.engine.members import Members, Standing, standing
from muster.model.group import AnyGroup, PodGroup
from muster.model.meta import GROUP_KINDS, POD, ObjectKey
from muster.model.pod import Pod


class Root(NamedTuple):
    """Where climbing from a group ended. `missing`: the first ancestor that does not exist; `cycle`: it came back to itself."""

    key: ObjectKey
    missing: bool = False
    cycle: bool = False


class Shortage(NamedTuple):
    """Why the recursive pre-enqueue holds a group: what is short ("2 of 3 members"), in which group."""

    group: ObjectKey
    because: str
    by_gate: bool = False


def find_root(state: ClusterState, key: ObjectKey) -> Root:
    """Climb from a group to its root."""
    seen: set[ObjectKey] = set()
    while True:
        group = state.group(key)
        if group is None:
            return Root(key, missing=True)
        parent = parent_key_of(group)
        if parent is None:
            return Root(key)
        seen.add(key)
        if parent in seen:
            return Root(parent, missing=True, cycle=True)
        key = parent


def unit_of_pod(state: ClusterState, pod: Pod) -> Root:
    """The unit that a pod belongs to: itself without a group, else the root of its group."""
    return find_root(state, group_key_of(pod)) if pod.group else Root(pod.key)


def subtree(state: ClusterState, key: ObjectKey) -> Iterator[AnyGroup]:
    """The group and all below it, parents first, children in creation order; each group once even in a cycle."""
    seen: set[ObjectKey] = set()
    stack = [key]
    while stack:
        current = stack.pop()
        group = state.group(current)
        if group is None or current in seen:
            continue
        seen.add(current)
        yield group
        if not isinstance(group, PodGroup):
            stack.extend(child.key for child in reversed(state.children(group.namespace, group.name)))


def leaf_members(state: ClusterState, key: ObjectKey) -> list[Members]:
    """Members of each leaf group below (and including) the group."""
    return [
        state.members(group.namespace, group.name)
        for group in subtree(state, key)
        if isinstance(group, PodGroup)
    ]


def unbound_pods(state: ClusterState, unit: ObjectKey) -> tuple[int, int]:
    """(pods that may be placed, pods held by a gate of their own) of a unit."""
    if unit.kind == POD:
        pod = state.pod(unit.namespace, unit.name)
        where = standing(pod, state.scheduler_names) if pod is not None else None
        return int(where is Standing.PENDING), int(where is Standing.GATED)
    counts = [members.counts for members in leaf_members(state, unit)]
    return sum(c[Standing.PENDING] for c in counts), sum(c[Standing.GATED] for c in counts)


def pods_of_unit(state: ClusterState, unit: ObjectKey) -> Iterator[Pod]:
    """All pods of a unit, whatever their standing."""
    if unit.kind not in GROUP_KINDS:
        pod = state.pod(unit.namespace, unit.name)
        if pod is not None:
            yield pod
        return
    for members in leaf_members(state, unit):
        yield from members.of(*Standing)


def is_initially_scheduled(group: AnyGroup) -> bool:
    """The group's condition is True, which is final."""
    return any(c.status == "True" and c.type.endswith("InitiallyScheduled") for c in group.conditions)


def held_count(members: Members, *, root_is_scheduled: bool) -> int:
    """S of a leaf before the cycle: bound members, and succeeded ones once the root has been scheduled."""
    succeeded = members.counts[Standing.SUCCEEDED] if root_is_scheduled else 0
    return members.counts[Standing.BOUND] + succeeded


def shortage(state: ClusterState, group: AnyGroup, *, root_is_scheduled: bool) -> Shortage | None:
    """Pre-enqueue for one group, recursively (KEP-6012, semantics 4): None if it is admissible."""
    if group.deletion_us is not None:
        return Shortage(group.key, "it is being deleted")
    if isinstance(group, PodGroup):
        return _leaf_shortage(state, group, root_is_scheduled=root_is_scheduled)
    children = state.children(group.namespace, group.name)
    short = [shortage(state, child, root_is_scheduled=root_is_scheduled) for child in children]
    held = [answer for answer in short if answer is not None]
    admissible = len(short) - len(held)
    if admissible >= group.spec.required_minimum:
        return None
    because = f"{admissible} of {group.spec.required_minimum} child groups are ready"
    if held:
        because += f"; {held[0].group.kind} {held[0].group.name}: {held[0].because}"
    return Shortage(group.key, because, by_gate=any(answer.by_gate for answer in held))


def _leaf_shortage(state: ClusterState, group: PodGroup, *, root_is_scheduled: bool) -> Shortage | None:
    members = state.members(group.namespace, group.name)
    held = held_count(members, root_is_scheduled=root_is_scheduled)
    minimum = group.spec.required_minimum
    gated = members.counts[Standing.GATED]
    if gated and held < minimum:
        return Shortage(group.key, f"{gated} pods have scheduling gates", by_gate=True)
    present = held + members.unbound
    return None if present >= minimum else Shortage(group.key, f"{present} of {minimum} members")
