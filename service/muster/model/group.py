"""PodGroup and CompositePodGroup: one spec type, since the two differ only in what their children are (KEP-6012)."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.meta import COMPOSITE_POD_GROUP, POD_GROUP, Condition, KubernetesObject, ObjectKey

POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
COMPOSITE_POD_GROUP_INITIALLY_SCHEDULED = "CompositePodGroupInitiallyScheduled"


@dataclass(frozen=True, slots=True)
class WorkloadReference:
    workload_name: str = ""
    template_name: str = ""


@dataclass(frozen=True, slots=True)
class BasicPolicy:
    """Children are scheduled one by one."""


@dataclass(frozen=True, slots=True)
class GangPolicy:
    """`minimum` is minCount of a PodGroup, minGroupCount of a CompositePodGroup; None if the field was not sent."""

    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """A union: exactly one member is set in a valid object."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


@dataclass(frozen=True, slots=True)
class SingleDisruption:
    """Preemption may take a single child."""


@dataclass(frozen=True, slots=True)
class AllDisruption:
    """Preemption takes the whole group or nothing of it."""


@dataclass(frozen=True, slots=True)
class DisruptionMode:
    """A union: exactly one member is set in a valid object."""

    single: SingleDisruption | None = None
    all: AllDisruption | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Immutable but for `scheduling_policy.gang.minimum`. `topology` holds label keys, at most one in a valid object.

    `priority` and `preemption_policy` are None until resolved at creation; `disruption_mode` None means single.
    """

    parent_composite_pod_group_name: str = ""
    workload_ref: WorkloadReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    topology: tuple[str, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None

    @property
    def is_gang(self) -> bool:
        return self.scheduling_policy.gang is not None

    @property
    def required_minimum(self) -> int:
        """M of semantics: the gang's minimum, 1 for the basic policy."""
        gang = self.scheduling_policy.gang
        return gang.minimum if gang is not None and gang.minimum is not None else 1

    @property
    def topology_key(self) -> str | None:
        return self.topology[0] if self.topology else None

    @property
    def is_disrupted_whole(self) -> bool:
        return self.disruption_mode is not None and self.disruption_mode.all is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(KubernetesObject):
    """What both kinds of group hold."""

    spec: GroupSpec = GroupSpec()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup(Group):
    """A leaf of the hierarchy: its children are pods."""

    @property
    def key(self) -> ObjectKey:
        try:
            return self._key
        except AttributeError:
            return self.kept_key(POD_GROUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositePodGroup(Group):
    """An inner level of the hierarchy: its children are groups."""

    @property
    def key(self) -> ObjectKey:
        try:
            return self._key
        except AttributeError:
            return self.kept_key(COMPOSITE_POD_GROUP)


AnyGroup = PodGroup | CompositePodGroup
