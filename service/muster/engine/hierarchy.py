"""Questions about trees of groups on live objects: the root, what is missing, who is admissible (semantics 3 and 4).

Members are counted from the objects each time. Broken trees (missing parents, cycles) are answers, not errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from muster.core.messages import number_of
from muster.engine.cluster_state import ClusterState, group_key_of, parent_key_of
from muster.engine.members import Members, Standing, standing
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, GROUP_KINDS, POD, POD_GROUP, ObjectKey
from muster.model.pod import Pod

_MOST_NAMED = 4


class Root(NamedTuple):
    """Where climbing from a group ended.

    missing: `key` is the first ancestor that does not exist, or there is none: `cycle` holds the groups that are their
    own ancestors, and `key` is the least of them.
    """

    key: ObjectKey
    missing: bool = False
    cycle: tuple[ObjectKey, ...] = ()

    @property
    def why_pending(self) -> str:
        """What keeps the groups below from being a unit."""
        if not self.cycle:
            return f"waiting for {self.key}"
        ring = [str(key) for key in self.cycle[:_MOST_NAMED]]
        more = f" > {len(self.cycle) - _MOST_NAMED} more" if len(self.cycle) > _MOST_NAMED else ""
        return f"its parents form a cycle: {' > '.join(ring)}{more} > {self.key}"


class Shortage(NamedTuple):
    """Why the recursive pre-enqueue holds a group: what is short ("2 of 3 members"), in which group."""

    group: ObjectKey
    because: str


def find_root(state: ClusterState, key: ObjectKey) -> Root:
    """Climb from a group to its root."""
    return find_roots(state, (key,))[key]


def find_roots(state: ClusterState, keys: Iterable[ObjectKey]) -> dict[ObjectKey, Root]:
    """The root of each group and of all above it; every group is climbed from once."""
    known: dict[ObjectKey, Root] = {}
    for start in keys:
        key, path = start, dict[ObjectKey, None]()
        found = known.get(key)
        while found is None:
            path[key] = None
            group = state.group(key)
            parent = parent_key_of(group) if group is not None else None
            if parent is None:
                found = Root(key, missing=group is None)
            elif parent in path:
                found = _cycle_at(list(path), parent)
            else:
                key = parent
                found = known.get(key)
        known.update(dict.fromkeys(path, found))
    return known


def _cycle_at(path: list[ObjectKey], repeated: ObjectKey) -> Root:
    ring = path[path.index(repeated) :]
    least = ring.index(min(ring))
    return Root(ring[least], missing=True, cycle=(*ring[least:], *ring[:least]))


class Rings:
    """Which of some groups, and of those above them, are in a cycle of parents or below one, while groups are removed."""

    def __init__(self, state: ClusterState, keys: Iterable[ObjectKey]) -> None:
        self._rings: dict[ObjectKey, set[ObjectKey]] = {}
        met = dict[ObjectKey, set[ObjectKey]]()
        for key, root in find_roots(state, keys).items():
            if root.cycle:
                ring = met.get(root.key)
                self._rings[key] = met[root.key] = set(root.cycle) if ring is None else ring

    def __contains__(self, key: object) -> bool:
        return bool(self._rings.get(cast("ObjectKey", key)))

    def removed(self, key: ObjectKey) -> None:
        """A group is gone: a ring that it was part of is none any more."""
        ring = self._rings.get(key)
        if ring and key in ring:
            ring.clear()


def unit_of_pod(state: ClusterState, pod: Pod) -> Root:
    """The unit that a pod belongs to: itself without a group, else the root of its group."""
    return find_root(state, group_key_of(pod)) if pod.group else Root(pod.key)


def subtree(state: ClusterState, key: ObjectKey) -> Iterator[AnyGroup]:
    """The group and all below it, parents first, children in creation order; each group once even in a cycle."""
    if key.kind == POD_GROUP:
        leaf = state.group(key)
        if leaf is not None:
            yield leaf
        return
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


def keys_below(state: ClusterState, keys: Iterable[ObjectKey]) -> dict[ObjectKey, None]:
    """The keys and those of all groups below them, whether the groups themselves exist or not; each once."""
    found: dict[ObjectKey, None] = {}
    stack = list(keys)
    while stack:
        key = stack.pop()
        if key in found:
            continue
        found[key] = None
        if key.kind == COMPOSITE_POD_GROUP:
            stack.extend(child.key for child in state.children(key.namespace, key.name))
    return found


def leaf_members(state: ClusterState, key: ObjectKey) -> list[Members]:
    """Members of each leaf group below (and including) the group."""
    if key.kind == POD_GROUP:
        return [state.members(key.namespace, key.name)] if state.group(key) is not None else []
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
    pending = gated = 0
    for members in leaf_members(state, unit):
        pending += members.counts[Standing.PENDING]
        gated += members.counts[Standing.GATED]
    return pending, gated


def why_nothing_waits(state: ClusterState, unit: ObjectKey) -> str:
    """What is said of a unit without pods to be placed."""
    foreign = [
        pod for pod in pods_of_unit(state, unit) if standing(pod, state.scheduler_names) is Standing.FOREIGN
    ]
    nothing = "no pod of the unit waits for a node"
    return f"{nothing}, only {_of_other_schedulers(foreign)}" if foreign else nothing


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


def marked_above(state: ClusterState, key: ObjectKey) -> ObjectKey | None:
    """The group itself or the nearest one above it that is being deleted: its pending pods are not scheduled."""
    seen: set[ObjectKey] = set()
    while key not in seen and (group := state.group(key)) is not None:
        if group.deletion_us is not None:
            return key
        seen.add(key)
        key = parent_key_of(group) or key
    return None


def shortages(state: ClusterState, root: AnyGroup) -> dict[ObjectKey, Shortage]:
    """Recursive pre-enqueue (KEP-6012, semantics 4): every group of a valid hierarchy that is not admissible, and why."""
    short: dict[ObjectKey, Shortage] = {}
    _enter_shortages(state, root, short, None, root_is_scheduled=is_initially_scheduled(root))
    return short


def why_gated(state: ClusterState, unit: ObjectKey) -> str:
    """What holds a gated unit at the moment."""
    root = state.group(unit) if unit.kind != POD else None
    short = shortages(state, root).get(unit) if root is not None else None
    return short.because if short is not None else gates_hold(unbound_pods(state, unit)[1])


def gates_hold(pods: int) -> str:
    """Why pods that have gates of their own wait."""
    return f"held by the scheduling gates of {number_of(pods, 'pod')}"


def _enter_shortages(
    state: ClusterState,
    group: AnyGroup,
    short: dict[ObjectKey, Shortage],
    marked: ObjectKey | None,
    *,
    root_is_scheduled: bool,
) -> None:
    """Enter the group and all below it if they are short; `marked` is an ancestor that is being deleted."""
    if group.deletion_us is not None:
        marked = group.key
    because = None
    if isinstance(group, PodGroup):
        because = _leaf_shortage(state, group, root_is_scheduled=root_is_scheduled)
    else:
        children = state.children(group.namespace, group.name)
        for child in children:
            _enter_shortages(state, child, short, marked, root_is_scheduled=root_is_scheduled)
        because = _composite_shortage(group, [short.get(child.key) for child in children])
    if marked is not None:
        because = being_deleted(marked)
    if because is not None:
        short[group.key] = Shortage(marked or group.key, because)


def being_deleted(group: ObjectKey) -> str:
    """Why nothing new is scheduled in a group with a deletion mark."""
    return f"{group} is being deleted"


def _composite_shortage(group: CompositePodGroup, short: list[Shortage | None]) -> str | None:
    held = [answer for answer in short if answer is not None]
    admissible = len(short) - len(held)
    if admissible >= group.spec.required_minimum:
        return None
    needed = group.spec.required_minimum
    because = f"{admissible} of {number_of(needed, 'child group')} {'is' if needed == 1 else 'are'} ready"
    return f"{because}; {_told(held[0])}" if held else because


def _told(short: Shortage) -> str:
    """The shortage with the group that it is about, which some texts name already."""
    name = str(short.group)
    return short.because if short.because.startswith(name) else f"{name}: {short.because}"


def _leaf_shortage(state: ClusterState, group: PodGroup, *, root_is_scheduled: bool) -> str | None:
    members = state.members(group.namespace, group.name)
    held = held_count(members, root_is_scheduled=root_is_scheduled)
    minimum = group.spec.required_minimum
    gated = members.counts[Standing.GATED]
    present = held + members.unbound
    if present >= minimum and not gated:
        return None
    short: list[str] = []
    if present < minimum:
        short.append(f"{present} of {number_of(minimum, 'member')}")
        if members.counts[Standing.FOREIGN]:
            short.append(f"and {_of_other_schedulers(members.of(Standing.FOREIGN))}")
    if gated and held < minimum:
        short.append(gates_hold(gated))
    return ", ".join(short) or None


def _of_other_schedulers(foreign: Iterable[Pod]) -> str:
    """Pods that name a group and yet are no members, because nobody here serves their scheduler."""
    pods = list(foreign)
    names = sorted({repr(pod.spec.scheduler_name) for pod in pods})
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    named = f"{', '.join(names[:_MOST_NAMED])}{more}"
    return f"{number_of(len(pods), 'pod')} of a scheduler that is not served here: {named}"
