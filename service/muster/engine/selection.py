"""What List and Watch select from a cluster (api.md: List, Watch). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muster.engine.api import ObjectFilter
from muster.engine.cluster_state import ClusterState
from muster.engine.hierarchy import subtree
from muster.model.meta import KINDS, ObjectKey
from muster.model.objects import ClusterObject
from muster.model.pod import Pod


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


def select(state: ClusterState, selection: ObjectFilter) -> list[ClusterObject]:
    """All selected objects by kind, then namespace and name."""
    matches = matcher(state, selection)
    by_labels = selection.matches_labels
    found: list[ClusterObject] = []
    for kind in KINDS:
        if kind in selection.kinds:
            chosen = [
                (name, item)
                for name, item in _candidates(state, kind, selection)
                if matches(item) and (by_labels is None or by_labels(item.labels))
            ]
            chosen.sort(key=lambda entry: entry[0])
            found.extend(item for _, item in chosen)
    return found


def _candidates(
    state: ClusterState, kind: str, selection: ObjectFilter
) -> Iterable[tuple[tuple[str, str], ClusterObject]]:
    if kind == "Pod" and selection.node_name:
        return [((pod.namespace, pod.name), pod) for pod in state.pods_on(selection.node_name)]
    return state.objects[kind].items()


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
