"""What a revision entails beyond what was asked for (semantics 3, 4, 7): the rules that keep derived state right.

Called by `Mutation.finish` in this order, each idempotent: marked objects go when nothing holds them; groups and
pods with a missing root wait in the pending structures; units are gated, activated, or leave the queue.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.engine.cluster_state import ClusterState, parent_key_of
from muster.engine.conditions import SCHEDULING_GATED, UNSCHEDULABLE, with_group_condition
from muster.engine.hierarchy import (
    Root,
    Shortage,
    find_root,
    is_initially_scheduled,
    pods_of_unit,
    shortage,
    subtree,
    unbound_pods,
)
from muster.engine.members import Standing
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import CLUSTER_SCOPED_KINDS, POD, POD_GROUP, ObjectKey, OwnerReference
from muster.model.objects import ClusterObject
from muster.model.pod import Pod

if TYPE_CHECKING:
    from muster.engine.mutation import Mutation

FOREGROUND_DELETION = "foregroundDeletion"


def settle_deletions(mutation: Mutation) -> None:
    """Remove marked objects that nothing holds any more, bottom-up.

    Groups without live pods or child groups, owners whose blocking dependents are gone, objects whose last finalizer went.
    """
    state = mutation.state
    candidates = dict.fromkeys((*mutation.touched_groups, *_released(mutation)))
    while candidates:
        key, _ = candidates.popitem()
        item = state.get(key)
        if item is None or item.deletion_us is None:
            continue
        finalizers = _finalizers_left(state, item)
        if not finalizers and not _is_held(state, item):
            mutation.remove(key)
            candidates.update(dict.fromkeys(_keys_above(state, item)))
        elif finalizers != item.finalizers:
            mutation.put(replace(item, finalizers=finalizers, resource_version=mutation.revision))


def is_protected(state: ClusterState, group: AnyGroup, gone: Container[ObjectKey] = frozenset()) -> bool:
    """Whether a live pod (leaf) or a child group, other than those in `gone`, keeps the group; never in a parent cycle."""
    if find_root(state, group.key).cycle:
        return False
    if isinstance(group, PodGroup):
        members = state.members(group.namespace, group.name)
        return members.live > 0 and any(
            not pod.is_terminal and pod.key not in gone for pod in members.pods.values()
        )
    return any(child.key not in gone for child in state.children(group.namespace, group.name))


def blocks(dependent: ClusterObject, owner_uid: str) -> bool:
    """Whether a foreground deletion of the owner waits for the dependent."""
    references = dependent.owner_references
    return any(each.uid == owner_uid and each.block_owner_deletion for each in references)


def _is_held(state: ClusterState, item: ClusterObject) -> bool:
    if isinstance(item, Pod):
        return item.is_leaving
    return isinstance(item, PodGroup | CompositePodGroup) and is_protected(state, item)


def _released(mutation: Mutation) -> Iterator[ObjectKey]:
    """Objects that lost their last finalizer in this mutation, and owners that lost a dependent."""
    for key, (old, new, _) in mutation.edits.items():
        if old is None:
            continue
        if old.owner_references and (new is None or new.owner_references != old.owner_references):
            yield from _keys_above(mutation.state, old)
        if old.finalizers and new is not None and not new.finalizers:
            yield key


def _keys_above(state: ClusterState, item: ClusterObject) -> Iterator[ObjectKey]:
    """What may wait for the object to go: its parent group and its owners."""
    if isinstance(item, PodGroup | CompositePodGroup):
        parent = parent_key_of(item)
        if parent is not None:
            yield parent
    for reference in item.owner_references:
        if reference.kind in state.objects:
            yield owner_key_of(item, reference)


def _finalizers_left(state: ClusterState, item: ClusterObject) -> tuple[str, ...]:
    """The object's finalizers, without that of a foreground deletion once no dependent on its way out blocks it."""
    if FOREGROUND_DELETION not in item.finalizers:
        return item.finalizers
    dependents = (state.get(key) for key in state.dependents(item.uid))
    if any(
        each is not None and each.deletion_us is not None and blocks(each, item.uid) for each in dependents
    ):
        return item.finalizers
    return tuple(each for each in item.finalizers if each != FOREGROUND_DELETION)


def owner_key_of(dependent: ClusterObject, reference: OwnerReference) -> ObjectKey:
    """Where the owner is to be found: in the dependent's namespace, unless its kind has none."""
    namespace = "" if reference.kind in CLUSTER_SCOPED_KINDS else dependent.namespace
    return ObjectKey(reference.kind, namespace, reference.name)


def settle_pending(mutation: Mutation) -> None:
    """Move groups and pods of touched trees into or out of the pending structures."""
    keys = dict(mutation.touched_groups)
    for key in mutation.restructured:
        keys.update(dict.fromkeys(group.key for group in subtree(mutation.state, key)))
        for child in mutation.state.children(key.namespace, key.name) if key.kind != POD_GROUP else ():
            keys.update(dict.fromkeys(group.key for group in subtree(mutation.state, child.key)))
    for key in keys:
        _settle_group(mutation, key, find_root(mutation.state, key))
    mutation.touched_groups.update(keys)


def _settle_group(mutation: Mutation, key: ObjectKey, root: Root) -> None:
    cluster, state = mutation.cluster, mutation.state
    exists = state.group(key) is not None
    cluster.set_pending_group(key, root.key if root.missing and exists else None)
    if not exists or root.missing or root.key != key:
        cluster.queue.remove(key)
    if key.kind != POD_GROUP:
        return
    leaf = (key.namespace, key.name)
    before = cluster.waiting_leaves.get(leaf)
    if root.missing:
        cluster.waiting_leaves[leaf] = root.key
        _hold_members(mutation, key, root, only_touched=before == root.key)
    elif before is not None:
        del cluster.waiting_leaves[leaf]
        for pod in state.members(*leaf).pods.values():
            cluster.set_pending_member(pod.key, None)


def _hold_members(mutation: Mutation, key: ObjectKey, root: Root, *, only_touched: bool) -> None:
    """Unbound members of a leaf without a root wait; their condition names what is missing."""
    what = "its parents form a cycle at" if root.cycle else "waiting for"
    message = f"{what} {root.key.kind} {root.key.name}"
    members = mutation.state.members(key.namespace, key.name)
    for pod in list(members.of(Standing.PENDING, Standing.GATED)):
        if only_touched and pod.key not in mutation.touched_pods:
            continue
        mutation.cluster.set_pending_member(pod.key, root.key)
        status = mutation.pod_conditions.waiting(pod.status, UNSCHEDULABLE, message, pod.generation)
        mutation.set_pod_status(pod, status)


def settle_units(mutation: Mutation) -> None:
    """Bring the queue in line with the units that the revision touched."""
    units: dict[ObjectKey, None] = {}
    rootless: set[ObjectKey] = set()
    for key in mutation.touched_groups:
        root = find_root(mutation.state, key)
        if root.missing:
            rootless.add(key)
        else:
            units[root.key] = None
    for key, group in mutation.touched_pods.items():
        if group is None:
            units[key] = None
        elif group in rootless:
            _release_member(mutation, key)
    for unit in units:
        if unit not in mutation.settled_units:
            settle_unit(mutation, unit)


def _release_member(mutation: Mutation, key: ObjectKey) -> None:
    """A pod of a group without a root waits no more once it is bound or on its way out."""
    pod = mutation.state.pod(key.namespace, key.name)
    if pod is not None and (pod.node_name or not pod.is_member):
        mutation.cluster.set_pending_member(key, None)


def settle_unit(mutation: Mutation, unit: ObjectKey) -> None:
    """One unit: out of the queue without pending pods, gated while it is not admissible, else to be tried."""
    queue = mutation.cluster.queue
    pending, gated = unbound_pods(mutation.state, unit)
    if not pending and not gated:
        queue.remove(unit)
        return
    short = shortage_of_unit(mutation, unit)
    if short is None and pending:
        queue.changed(unit, unit_priority(mutation, unit), mutation.now_us)
        return
    because = short.because if short is not None else f"{gated} pods have scheduling gates"
    newly = queue.gated(unit, unit_priority(mutation, unit), mutation.now_us, because)
    if gated:
        _write_gated_pods(mutation, unit)
    if newly and short is not None and unit.kind != POD:
        _write_gated_groups(mutation, unit, short)


def shortage_of_unit(mutation: Mutation, unit: ObjectKey) -> Shortage | None:
    """The recursive pre-enqueue of the unit's root."""
    if unit.kind == POD:
        return None
    root = mutation.state.group(unit)
    if root is None:
        return Shortage(unit, "it does not exist")
    return shortage(mutation.state, root, root_is_scheduled=is_initially_scheduled(root))


def unit_priority(mutation: Mutation, unit: ObjectKey) -> int:
    """The resolved number of the root."""
    found = mutation.state.get(unit)
    spec = found.spec if isinstance(found, Pod | PodGroup | CompositePodGroup) else None
    return (spec.priority or 0) if spec is not None else 0


def _write_gated_pods(mutation: Mutation, unit: ObjectKey) -> None:
    names = mutation.state.scheduler_names
    for pod in list(pods_of_unit(mutation.state, unit)):
        if not pod.gates or pod.node_name or not pod.is_member or pod.spec.scheduler_name not in names:
            continue
        message = "scheduling gates: " + ", ".join(pod.gates)
        status = mutation.pod_conditions.waiting(pod.status, SCHEDULING_GATED, message, pod.generation)
        mutation.set_pod_status(pod, status)


def _write_gated_groups(mutation: Mutation, unit: ObjectKey, short: Shortage) -> None:
    """Every group of the hierarchy that is not True is False; those that are not short themselves name the one that is."""
    because = f"{short.group.kind} {short.group.name} is not ready: {short.because}"
    for group in list(subtree(mutation.state, unit)):
        message = short.because if group.key == short.group else because
        changed = with_group_condition(
            group, scheduled=False, reason=UNSCHEDULABLE, message=message, now_us=mutation.now_us
        )
        mutation.set_group(group, changed)
