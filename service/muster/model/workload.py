"""Workload: the static tree of templates that groups are made from (KEP-4671, KEP-6012)."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.group import DisruptionMode, SchedulingPolicy
from muster.model.meta import WORKLOAD, KubernetesObject, ObjectKey


@dataclass(frozen=True, slots=True)
class ControllerReference:
    api_group: str = ""
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class GroupTemplate:
    """A template of either kind: a PodGroup template has no child lists."""

    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()  # noqa: RUF009 - frozen
    topology: tuple[str, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    pod_group_templates: tuple[GroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[GroupTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Exactly one of the two lists in a valid object; immutable."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[GroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[GroupTemplate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(KubernetesObject):
    spec: WorkloadSpec = WorkloadSpec()

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(WORKLOAD, self.namespace, self.name)
