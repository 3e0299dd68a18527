"""Layout faults of a hierarchy (semantics 3, KEP-6012, "Group hierarchy"): what its groups and their Workload must agree on.

A parent cycle has no root and is told by `hierarchy.find_roots`; what pods must share is `unit_faults`'. The check is pure
and costs the groups of one tree; `Layouts` keeps its answers, so that only a tree whose groups or Workload changed is
checked again. Deviates from KEP-6012: the reason Invalid comes with the status False (docs/adr/0006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from muster.core.tree import MOST_GROUPS_A_UNIT
from muster.engine.cluster_state import ClusterState
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, WORKLOAD, ObjectKey
from muster.model.workload import GroupTemplate, Workload

MOST_LEVELS = 4
_MOST_NAMED = 3

TREE_TOO_DEEP = "TREE_TOO_DEEP"
TOO_MANY_GROUPS = "TOO_MANY_GROUPS"
SEVERAL_WORKLOADS = "SEVERAL_WORKLOADS"
GROUP_PRIORITY_CLASH = "GROUP_PRIORITY_CLASH"
DISRUPTION_MODE_CLASH = "DISRUPTION_MODE_CLASH"
TEMPLATE_UNKNOWN = "TEMPLATE_UNKNOWN"
TEMPLATE_OF_OTHER_KIND = "TEMPLATE_OF_OTHER_KIND"
TEMPLATE_ELSEWHERE = "TEMPLATE_ELSEWHERE"


class LayoutFault(NamedTuple):
    """One rule that a hierarchy breaks: a machine-readable code, and a text that names the objects."""

    code: str
    message: str


Faults = tuple[LayoutFault, ...]


class _Place(NamedTuple):
    """A group where it stands; the root has level 1."""

    group: AnyGroup
    parent: AnyGroup | None
    level: int


class _Template(NamedTuple):
    """A template where it stands in its Workload; `parent` is "" at the top."""

    kind: str
    parent: str


class Layouts:
    """What is known of the layout of each tree, by its root.

    faults: of trees that have some. changed_at: the revision at which a tree last got or lost groups, had one marked
    for deletion, or turned out to have other faults; what was decided on an earlier one counts no more.
    """

    def __init__(self) -> None:
        self.faults: dict[ObjectKey, Faults] = {}
        self.changed_at: dict[ObjectKey, int] = {}

    def check(self, state: ClusterState, root: ObjectKey) -> bool:
        """Check the tree of an existing root anew. True if its faults are others than before."""
        before = self.faults.pop(root, ())
        found = layout_faults(state, root)
        if found:
            self.faults[root] = found
        return found != before

    def forget(self, key: ObjectKey) -> None:
        """The group is gone, or no root any more."""
        self.faults.pop(key, None)
        self.changed_at.pop(key, None)


def layout_faults(state: ClusterState, root: ObjectKey) -> Faults:
    """All rules that the hierarchy breaks, each once."""
    top = state.group(root)
    if isinstance(top, PodGroup) and top.spec.workload_ref is None:
        return ()  # there is nothing that it could disagree with
    places = list(_places(state, root))
    if not places:
        return ()
    checks: tuple[Callable[[list[_Place]], Iterator[LayoutFault]], ...] = (
        _depth_faults,
        _size_faults,
        _workload_faults,
        _priority_faults,
        _disruption_faults,
    )
    found = [fault for check in checks for fault in check(places)]
    return (*found, *_template_faults(state, places))


def faults_message(faults: Faults) -> str:
    """The faults in one text."""
    return "; ".join(fault.message for fault in faults)


def _places(state: ClusterState, root: ObjectKey) -> Iterator[_Place]:
    """Level by level, siblings in creation order. A tree that hangs below a root has no cycle."""
    top = state.group(root)
    level = [] if top is None else [_Place(top, None, 1)]
    while level:
        yield from level
        level = [
            _Place(child, place.group, place.level + 1)
            for place in level
            if isinstance(place.group, CompositePodGroup)
            for child in state.children(place.group.namespace, place.group.name)
        ]


def _depth_faults(places: list[_Place]) -> Iterator[LayoutFault]:
    depth = places[-1].level
    if depth > MOST_LEVELS:
        named = _named(str(place.group.key) for place in places if place.level > MOST_LEVELS)
        text = f"the hierarchy has a depth of {depth} levels, at most {MOST_LEVELS} are allowed: {named}"
        yield LayoutFault(TREE_TOO_DEEP, text)


def _size_faults(places: list[_Place]) -> Iterator[LayoutFault]:
    if len(places) > MOST_GROUPS_A_UNIT:
        text = f"the hierarchy has {len(places)} groups, at most {MOST_GROUPS_A_UNIT} are allowed"
        yield LayoutFault(TOO_MANY_GROUPS, text)


def _workload_faults(places: list[_Place]) -> Iterator[LayoutFault]:
    first = _workload_of(places[0].group)
    others = [place.group for place in places if _workload_of(place.group) != first]
    if others:
        named = _named(f"{each.key} to {_workload_of(each)!r}" for each in others)
        text = f"groups refer to different Workloads: {places[0].group.key} to {first!r}, {named}"
        yield LayoutFault(SEVERAL_WORKLOADS, text)


def _priority_faults(places: list[_Place]) -> Iterator[LayoutFault]:
    first = places[0].group.spec.priority or 0
    others = [place.group for place in places if (place.group.spec.priority or 0) != first]
    if others:
        named = _named(f"{each.key} has {each.spec.priority or 0}" for each in others)
        text = f"groups differ in priority: {places[0].group.key} has {first}, {named}"
        yield LayoutFault(GROUP_PRIORITY_CLASH, text)


def _disruption_faults(places: list[_Place]) -> Iterator[LayoutFault]:
    clashes = [
        f"{parent.key} is disrupted as a whole, {group.key} below it is not"
        for group, parent, _ in places
        if parent is not None and parent.spec.is_disrupted_whole and not group.spec.is_disrupted_whole
    ]
    if clashes:
        yield LayoutFault(DISRUPTION_MODE_CLASH, f"disruption modes clash: {_named(clashes)}")


def _template_faults(state: ClusterState, places: list[_Place]) -> Iterator[LayoutFault]:
    """Judged by the Workloads that are known; one that is not may still come."""
    known: dict[str, dict[str, _Template] | None] = {}
    found: dict[str, list[str]] = {}
    for place in places:
        name = _workload_of(place.group)
        if name and name not in known:
            workload = state.get(ObjectKey(WORKLOAD, place.group.namespace, name))
            known[name] = _templates(workload) if isinstance(workload, Workload) else None
        templates = known.get(name)
        fault = _template_fault(place, templates) if templates is not None else None
        if fault is not None:
            found.setdefault(fault.code, []).append(fault.message)
    for code, messages in found.items():
        yield LayoutFault(code, _named(messages))


def _template_fault(place: _Place, templates: dict[str, _Template]) -> LayoutFault | None:
    group, parent, _ = place
    workload, name = _workload_of(group), _template_of(group)
    template = templates.get(name)
    if template is None:
        return LayoutFault(TEMPLATE_UNKNOWN, f"Workload {workload} has no template {name} for {group.key}")
    if template.kind != group.key.kind:
        text = f"template {name} of Workload {workload} is for a {template.kind}, not for {group.key}"
        return LayoutFault(TEMPLATE_OF_OTHER_KIND, text)
    if parent is None:
        text = f"{group.key} is a root, but template {name} of Workload {workload} is below {template.parent}"
        return LayoutFault(TEMPLATE_ELSEWHERE, text) if template.parent else None
    above = _template_of(parent)
    if template.parent == above or _workload_of(parent) != workload or above not in templates:
        return None
    where = f"below template {template.parent}" if template.parent else "at the top"
    text = (
        f"template {name} of Workload {workload} is {where}, "
        f"but {group.key} is below {parent.key} of template {above}"
    )
    return LayoutFault(TEMPLATE_ELSEWHERE, text)


def _templates(workload: Workload) -> dict[str, _Template]:
    """All templates of the tree by name, which is unique in it."""
    found: dict[str, _Template] = {}
    spec = workload.spec
    stack: list[tuple[str, tuple[GroupTemplate, ...], tuple[GroupTemplate, ...]]] = [
        ("", spec.composite_pod_group_templates, spec.pod_group_templates)
    ]
    while stack:
        parent, composites, pod_groups = stack.pop()
        found.update((each.name, _Template(POD_GROUP, parent)) for each in pod_groups)
        for each in composites:
            found[each.name] = _Template(COMPOSITE_POD_GROUP, parent)
            stack.append((each.name, each.composite_pod_group_templates, each.pod_group_templates))
    return found


def _workload_of(group: AnyGroup) -> str:
    return group.spec.workload_ref.workload_name if group.spec.workload_ref is not None else ""


def _template_of(group: AnyGroup) -> str:
    return group.spec.workload_ref.template_name if group.spec.workload_ref is not None else ""


def _named(texts: Iterable[str]) -> str:
    """The first few of the texts, and how many there are beyond."""
    found = list(texts)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more
