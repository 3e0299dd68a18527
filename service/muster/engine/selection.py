"""What List and Watch select from a cluster (api.md: List, Watch). Nothing is changed."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable
from operator import attrgetter

from muster.engine.api import ObjectFilter
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import subtree
from muster.model.meta import KINDS, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod

SLICE = 1_000
_NAME_OF = attrgetter("namespace", "name")


def matcher(state: ClusterState, selection: ObjectFilter) -> Callable[[ClusterObject], bool]:
    """Whether an object is selected, labels apart. Subtree membership is that of the moment."""
    groups = (
        {group.key for group in subtree(state, selection.group)} | {selection.group}
        if selection.group is not None
        else None
    )

    asks_for_pods = bool(selection.node_name or selection.unbound or selection.phase)
    if not (selection.namespace or selection.deleting or asks_for_pods) and groups is None:
        return anything

    def matches(item: ClusterObject) -> bool:
        if selection.namespace and item.namespace != selection.namespace:
            return False
        if selection.deleting and item.deletion_us is None:
            return False
        if groups is not None and not _is_within(item, groups):
            return False
        return not asks_for_pods or (isinstance(item, Pod) and _pod_matches(item, selection))

    return matches


def anything(_item: ClusterObject) -> bool:
    """What matches where nothing is asked of an object but its kind and labels; need not be called."""
    return True


async def select(state: ClusterState, selection: ObjectFilter) -> list[ClusterObject]:
    """All objects that are selected at the moment of the call, by kind, then namespace and name.

    Many are looked at in slices: other calls get their turn in between, and what they change is not seen.
    """
    matches, by_labels = matcher(state, selection), selection.matches_labels
    candidates = [_candidates(state, kind, selection) for kind in KINDS if kind in selection.kinds]
    found: list[ClusterObject] = []
    for some in candidates:
        chosen: list[ClusterObject] = []
        async for part in _slices(some):
            chosen += [
                item for item in part if matches(item) and (by_labels is None or by_labels(item.labels))
            ]
        found += await _in_order(chosen)
    return found


def _candidates(state: ClusterState, kind: str, selection: ObjectFilter) -> list[ClusterObject]:
    if kind == "Pod" and selection.node_name:
        return list(state.pods_on(selection.node_name))
    return list(state.objects[kind].values())


async def _in_order(items: list[ClusterObject]) -> list[ClusterObject]:
    """By namespace and name. Many are first put into parts of about a slice, one behind the other, by names drawn from all."""
    if len(items) <= SLICE:
        return sorted(items, key=_NAME_OF)
    count = -(-len(items) // SLICE)
    drawn = sorted(map(_NAME_OF, items[::count]))
    bounds = drawn[:: -(-len(drawn) // count)]
    parts: list[list[ClusterObject]] = [[] for _ in range(len(bounds) + 1)]
    async for part in _slices(items):
        for item in part:
            parts[bisect_right(bounds, _NAME_OF(item))].append(item)
    ordered: list[ClusterObject] = []
    for each in parts:
        ordered += sorted(each, key=_NAME_OF)
        await asyncio.sleep(0)
    return ordered


async def _slices(items: list[ClusterObject]) -> AsyncIterator[list[ClusterObject]]:
    """The items in slices, other calls in between."""
    for start in range(0, len(items), SLICE):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + SLICE]


def _pod_matches(pod: Pod, selection: ObjectFilter) -> bool:
    if selection.node_name and pod.node_name != selection.node_name:
        return False
    if selection.unbound and pod.node_name:
        return False
    return not selection.phase or pod.status.phase == selection.phase


def _is_within(item: ClusterObject, groups: set[ObjectKey]) -> bool:
    if isinstance(item, Pod):
        return bool(item.group) and ObjectKey("PodGroup", item.namespace, item.group) in groups
    return item.key in groups
