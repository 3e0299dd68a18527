"""Rules of a Workload: the shape of its tree of templates, and what all templates of a tree share (KEP-6012).

Document order is that of the manifest: a template, then its CompositePodGroup templates with all below them, then
its PodGroup templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muster.model.group import DisruptionMode
from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, WORKLOAD
from muster.model.names import dns_label_fault, dns_subdomain_fault, path_segment_fault
from muster.model.workload import ControllerReference, GroupTemplate, Workload, WorkloadSpec
from muster.validation.fields import Faults, name_faults, optional_name_faults
from muster.validation.group import disruption_faults, policy_faults, topology_faults
from muster.validation.metadata import metadata_faults
from muster.validation.priority import priority_faults
from muster.validation.violations import DUPLICATE, INVALID, REQUIRED, TOO_MANY, Violation

MOST_TEMPLATES = 8
MOST_LEVELS = 4

Templates = tuple[GroupTemplate, ...]


class _Place(NamedTuple):
    """A template where it stands; `level` is 1 at the top."""

    path: str
    kind: str
    level: int
    template: GroupTemplate
    parent: GroupTemplate | None


def workload_faults(workload: Workload) -> Faults:
    """All faults of a Workload."""
    spec = workload.spec
    places = list(_places("spec", spec.composite_pod_group_templates, spec.pod_group_templates))
    yield from metadata_faults(WORKLOAD, workload)
    yield from _controller_faults(spec.controller_ref)
    yield from _top_level_faults(spec)
    for place in places:
        yield from _template_faults(place)
    yield from _depth_faults(places)
    yield from _name_faults(places)
    yield from _shared_priority_faults(places)


def _places(
    path: str,
    composites: Templates,
    pod_groups: Templates,
    parent: GroupTemplate | None = None,
    level: int = 1,
) -> Iterator[_Place]:
    """All templates below a node of the tree, in document order."""
    for index, template in enumerate(composites):
        own = f"{path}.compositePodGroupTemplates[{index}]"
        yield _Place(own, COMPOSITE_POD_GROUP, level, template, parent)
        yield from _places(
            own, template.composite_pod_group_templates, template.pod_group_templates, template, level + 1
        )
    for index, template in enumerate(pod_groups):
        yield _Place(f"{path}.podGroupTemplates[{index}]", POD_GROUP, level, template, parent)


def _controller_faults(controller: ControllerReference | None) -> Faults:
    if controller is None:
        return
    path = "spec.controllerRef"
    yield from optional_name_faults(f"{path}.apiGroup", controller.api_group, dns_subdomain_fault)
    yield from name_faults(f"{path}.kind", controller.kind, path_segment_fault)
    yield from name_faults(f"{path}.name", controller.name, path_segment_fault)


def _top_level_faults(spec: WorkloadSpec) -> Faults:
    if not spec.pod_group_templates and not spec.composite_pod_group_templates:
        yield Violation("spec", REQUIRED, "must have podGroupTemplates or compositePodGroupTemplates")
    if spec.pod_group_templates and spec.composite_pod_group_templates:
        yield Violation(
            "spec", INVALID, "must have only one of podGroupTemplates and compositePodGroupTemplates"
        )
    yield from _list_faults("spec", spec.composite_pod_group_templates, spec.pod_group_templates)


def _list_faults(path: str, composites: Templates, pod_groups: Templates) -> Faults:
    lists = (("compositePodGroupTemplates", composites), ("podGroupTemplates", pod_groups))
    for field, templates in lists:
        if len(templates) > MOST_TEMPLATES:
            yield Violation(
                f"{path}.{field}",
                TOO_MANY,
                f"must have at most {MOST_TEMPLATES} templates, not {len(templates)}",
            )


def _template_faults(place: _Place) -> Faults:
    path, template = place.path, place.template
    yield from name_faults(f"{path}.name", template.name, dns_label_fault)
    yield from policy_faults(path, place.kind, template.scheduling_policy)
    yield from topology_faults(path, template.topology)
    yield from disruption_faults(path, place.kind, template.disruption_mode, template.scheduling_policy)
    yield from priority_faults(path, template)
    if place.parent is not None and _is_whole(place.parent.disruption_mode):
        yield from _child_of_whole_faults(place)
    if place.kind == COMPOSITE_POD_GROUP:
        yield from _list_faults(path, template.composite_pod_group_templates, template.pod_group_templates)
        if not template.composite_pod_group_templates and not template.pod_group_templates:
            yield Violation(path, REQUIRED, "must have podGroupTemplates or compositePodGroupTemplates")


def _child_of_whole_faults(place: _Place) -> Faults:
    if not _is_whole(place.template.disruption_mode):
        yield Violation(
            f"{place.path}.disruptionMode",
            INVALID,
            "must be all, since the template above is disrupted as a whole",
        )


def _is_whole(mode: DisruptionMode | None) -> bool:
    return mode is not None and mode.all is not None


def _depth_faults(places: list[_Place]) -> Faults:
    """Reported once, at the top-level template of each tree that is too deep."""
    top = ""
    is_reported = False
    for place in places:
        if place.level == 1:
            top, is_reported = place.path, False
        elif place.level > MOST_LEVELS and not is_reported:
            is_reported = True
            yield Violation(top, TOO_MANY, f"must have at most {MOST_LEVELS} levels of groups")


def _name_faults(places: list[_Place]) -> Faults:
    """A name that stands twice in the tree is wrong at the later place."""
    seen: dict[str, str] = {}
    for place in places:
        name = place.template.name
        first = seen.setdefault(name, place.path)
        if name and first != place.path:
            yield Violation(
                f"{place.path}.name", DUPLICATE, f"must be unique in the Workload; {name!r} is {first} too"
            )


def _shared_priority_faults(places: list[_Place]) -> Faults:
    if len({place.template.priority_class_name for place in places}) > 1:
        yield Violation("spec", INVALID, "must have the same priorityClassName in all templates")
    if len({place.template.priority for place in places}) > 1:
        yield Violation("spec", INVALID, "must have the same priority in all templates")
