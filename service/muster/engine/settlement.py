"""What a revision entails beyond what was asked for (semantics 3, 4, 7): the rules that keep derived state right.

Called by `Mutation.finish` in this order, each idempotent: marked objects go when nothing holds them; groups and
pods with a missing root wait in the pending structures; changed trees are checked; units are gated, activated, or
leave the queue. Each touched tree is looked at once a revision.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from muster.engine.cluster_state import ClusterState, group_key_of, parent_key_of
from muster.engine.conditions import UNSCHEDULABLE
from muster.engine.hierarchy import (
    Rings,
    Root,
    Shortage,
    being_deleted,
    find_roots,
    gates_hold,
    keys_below,
    shortages,
    unbound_pods,
)
from muster.engine.members import Standing
from muster.engine.ports import UnitState
from muster.engine.tree_conditions import (
    is_foreign,
    tell_gated_groups,
    tell_held_pods,
    tell_idle_groups,
    tell_invalid_groups,
    tell_invalid_pods,
    tell_pending_group,
    tell_pod,
    tell_short_pods,
    touched_pods,
)
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
    rings = Rings(state, mutation.touched_groups)
    while candidates:
        key, _ = candidates.popitem()
        item = state.get(key)
        if item is None or item.deletion_us is None:
            continue
        finalizers = _finalizers_left(state, item)
        if not finalizers and not _is_held(state, item, rings):
            mutation.remove(key)
            rings.removed(key)
            candidates.update(dict.fromkeys(keys_above(state, item)))
        elif finalizers != item.finalizers:
            mutation.put(replace(item, finalizers=finalizers, resource_version=mutation.revision))


def is_protected(
    state: ClusterState, group: AnyGroup, rings: Rings, gone: Container[ObjectKey] = frozenset()
) -> bool:
    """Whether a live pod (leaf) or a child group, other than those in `gone`, keeps the group; never in a parent cycle."""
    if group.key in rings:
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


def _is_held(state: ClusterState, item: ClusterObject, rings: Rings) -> bool:
    if isinstance(item, Pod):
        return item.is_leaving
    return isinstance(item, PodGroup | CompositePodGroup) and is_protected(state, item, rings)


def _released(mutation: Mutation) -> Iterator[ObjectKey]:
    """Objects that lost their last finalizer in this mutation, and owners that lost a dependent. Pods in runs keep both."""
    for key, (old, new, _) in mutation.edits.singles.items():
        if old is None:
            continue
        if old.owner_references and (new is None or new.owner_references != old.owner_references):
            yield from keys_above(mutation.state, old)
        if old.finalizers and new is not None and not new.finalizers:
            yield key


def keys_above(state: ClusterState, item: ClusterObject) -> Iterator[ObjectKey]:
    """What may wait for the object to go: its group, or parent group, and its owners."""
    if isinstance(item, Pod):
        if item.group:
            yield group_key_of(item)
    elif isinstance(item, PodGroup | CompositePodGroup):
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
    state = mutation.state
    below = keys_below(state, mutation.restructured)
    mutation.cluster.disruption.groups_changed(below)
    keys = {**mutation.touched_groups, **below}
    mutation.roots = find_roots(state, keys)
    for key in keys:
        _settle_group(mutation, key, mutation.roots[key])
    mutation.touched_groups.update(keys)


def _settle_group(mutation: Mutation, key: ObjectKey, root: Root) -> None:
    cluster = mutation.cluster
    group = mutation.state.group(key)
    cluster.set_pending_group(key, root.key if root.missing and group is not None else None)
    if group is None or root.key != key or root.missing:
        cluster.queue.remove(key)
        cluster.layouts.forget(key)
    if group is not None and root.missing:
        tell_pending_group(mutation, group, root)
    if key.kind == POD_GROUP:
        _settle_leaf(mutation, key, root)


def _settle_leaf(mutation: Mutation, key: ObjectKey, root: Root) -> None:
    cluster = mutation.cluster
    leaf = (key.namespace, key.name)
    before = cluster.waiting_leaves.get(leaf)
    if root.missing and mutation.state.members(*leaf).pods:
        cluster.waiting_leaves[leaf] = root.key
        _hold_members(mutation, key, root, only_touched=before == root.key)
    elif before is not None:
        del cluster.waiting_leaves[leaf]
        for pod in mutation.state.members(*leaf).pods.values():
            cluster.set_pending_member(pod.key, None)


def _hold_members(mutation: Mutation, key: ObjectKey, root: Root, *, only_touched: bool) -> None:
    """Unbound members of a leaf without a root wait; their condition names what is missing."""
    members = mutation.state.members(key.namespace, key.name)
    for pod in list(members.of(Standing.PENDING, Standing.GATED)):
        if only_touched and pod.key not in mutation.touched_pods:
            continue
        mutation.cluster.set_pending_member(pod.key, root.key)
        tell_pod(mutation, pod, UNSCHEDULABLE, root.why_pending)


def settle_layouts(mutation: Mutation) -> None:
    """Check the layouts of trees whose groups or Workload changed; groups of those at fault say so."""
    state, layouts = mutation.state, mutation.cluster.layouts
    changed = _roots_of_trees(map(mutation.roots.__getitem__, mutation.regrouped))
    referring = [
        key
        for workload in mutation.touched_workloads
        for key in state.groups_of_workload(workload.namespace, workload.name)
    ]
    for root in changed | _roots_of_trees(find_roots(state, referring).values()):
        differs = layouts.check(state, root)
        if differs or root in changed:
            layouts.changed_at[root] = mutation.revision
            mutation.reshaped[root] = None
            if root in layouts.faults:
                tell_invalid_groups(mutation, root, layouts.faults[root])


def _roots_of_trees(found: Iterable[Root]) -> dict[ObjectKey, None]:
    """Those that exist, each once. By their keys: a root that is missing holds the whole of a cycle."""
    return dict.fromkeys(root.key for root in found if not root.missing)


def settle_units(mutation: Mutation) -> None:
    """Bring the queue in line with the units that the revision touched."""
    units: dict[ObjectKey, list[ObjectKey]] = {unit: [] for unit in mutation.reshaped}
    for key in mutation.touched_groups:
        root = mutation.roots[key]
        if not root.missing:
            units.setdefault(root.key, [])
    touched = mutation.touched_pods
    for group, run in groupby(touched, key=touched.__getitem__):
        pods = list(run)
        if group is None:
            units.update((key, [*units.get(key, ()), key]) for key in pods)
        elif not mutation.roots[group].missing:
            units[mutation.roots[group].key] += pods
        else:
            for key in pods:
                _release_member(mutation, key)
    for unit, pods in units.items():
        if unit not in mutation.settled_units:
            settle_unit(mutation, unit, pods)


def _release_member(mutation: Mutation, key: ObjectKey) -> None:
    """A pod of a group without a root waits no more once it is bound or on its way out."""
    pod = mutation.state.pod(key.namespace, key.name)
    if pod is not None and (pod.node_name or not pod.is_member):
        mutation.cluster.set_pending_member(key, None)


def settle_unit(mutation: Mutation, unit: ObjectKey, touched: Iterable[ObjectKey] = ()) -> None:
    """One unit: out of the queue without pending pods, gated while it is not admissible, else to be tried.

    touched: those of its pods that the revision touched.
    """
    cluster = mutation.cluster
    queue = cluster.queue
    cluster.searches.forget(unit)
    pending, gated = unbound_pods(mutation.state, unit)
    if not pending and not gated:
        queue.remove(unit)
        if unit in mutation.reshaped and unit not in cluster.layouts.faults:
            tell_idle_groups(mutation, unit, shortages_of_unit(mutation, unit))
        return
    if unit in cluster.layouts.faults:
        _settle_invalid(mutation, unit, touched)
        return
    short = shortages_of_unit(mutation, unit)
    if gated or next(_marked(short), None) is not None:
        tell_held_pods(mutation, unit, touched_pods(mutation, touched))
    if unit not in short and pending:
        queue.changed(unit, unit_priority(mutation, unit), mutation.now_us)
        return
    because = short[unit].because if unit in short else gates_hold(gated)
    newly = queue.gated(unit, unit_priority(mutation, unit), mutation.now_us, because)
    if unit in short:
        _tell_gated(mutation, unit, short, touched, newly=newly)


def _tell_gated(
    mutation: Mutation,
    unit: ObjectKey,
    short: Mapping[ObjectKey, Shortage],
    touched: Iterable[ObjectKey],
    *,
    newly: bool,
) -> None:
    """The groups of a gated unit and its pods say what is short; those that said it before are left as they are."""
    pods = list(touched_pods(mutation, touched))
    is_news = newly or any(key in mutation.regrouped for key in _marked(short))
    is_news = is_news or any(is_foreign(mutation, pod) for pod in pods)
    if is_news or unit in mutation.reshaped:
        tell_gated_groups(mutation, unit, short, is_news=is_news)
    tell_short_pods(mutation, unit, short, None if newly else pods)


def _settle_invalid(mutation: Mutation, unit: ObjectKey, touched: Iterable[ObjectKey]) -> None:
    """A unit whose layout is at fault is told so by one cycle, then waits until its groups or its Workload change."""
    cluster = mutation.cluster
    row = cluster.queue.get(unit)
    if row is not None and row.state is UnitState.UNSCHEDULABLE and unit not in mutation.reshaped:
        tell_invalid_pods(mutation, touched_pods(mutation, touched), cluster.layouts.faults[unit])
    else:
        cluster.queue.changed(unit, unit_priority(mutation, unit), mutation.now_us)


def _marked(short: Mapping[ObjectKey, Shortage]) -> Iterator[ObjectKey]:
    """Groups with a deletion mark that hold others of the tree."""
    return (answer.group for key, answer in short.items() if answer.because == being_deleted(answer.group))


def shortages_of_unit(mutation: Mutation, unit: ObjectKey) -> dict[ObjectKey, Shortage]:
    """The recursive pre-enqueue: the unit's groups that are not admissible; its root holds the unit."""
    root = mutation.state.group(unit) if unit.kind != POD else None
    return shortages(mutation.state, root) if root is not None else {}


def unit_priority(mutation: Mutation, unit: ObjectKey) -> int:
    """The resolved number of the root."""
    found = mutation.state.get(unit)
    spec = found.spec if isinstance(found, Pod | PodGroup | CompositePodGroup) else None
    return (spec.priority or 0) if spec is not None else 0
