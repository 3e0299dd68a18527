"""Pod: a narrow record of its own beside three shared values, `spec`, `status` and the metadata maps.

What makes pods of one gang differ (name, uid, group, gates, node) is in the record; all else is in values
that many pods share by reference, in memory as in the store (one row a value). Two pods with the same
`spec`, labels and namespace are equal to every filter and score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from muster.model.meta import (
    POD,
    Condition,
    HasKey,
    KubernetesObject,
    LabelSelector,
    ObjectKey,
    SelectorRequirement,
)

PENDING = "Pending"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
PHASES = (PENDING, RUNNING, SUCCEEDED, FAILED, "Unknown")
POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
_kept_key = attrgetter("_key")


@dataclass(frozen=True, slots=True)
class Resources:
    """Quantities by resource name, as sent."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerPort:
    name: str = ""
    host_port: int = 0
    container_port: int = 0
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """`restart_policy` "Always" makes an init container a sidecar."""

    name: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Expressions over labels and fields (`metadata.name`), all of which must hold; an empty term selects nothing."""

    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PreferredSchedulingTerm:
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """`required` None: no demand; else any of its terms must hold (none: nothing matches)."""

    required: tuple[NodeSelectorTerm, ...] | None = None
    preferred: tuple[PreferredSchedulingTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """`label_selector` None selects nothing; `namespace_selector` may only be None or the empty selector (all namespaces)."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WeightedPodAffinityTerm:
    weight: int = 0
    term: PodAffinityTerm = PodAffinityTerm()


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """Used for affinity and for anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedPodAffinityTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class Affinity:
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


@dataclass(frozen=True, slots=True)
class TopologySpreadConstraint:
    """`when_unsatisfiable` DoNotSchedule filters, ScheduleAnyway scores."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSpec:
    """What pods of one shape share. `priority` and `preemption_policy` are None until resolved at creation."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: str = ""
    termination_grace_period_seconds: int | None = None
    host_network: bool = False


@dataclass(frozen=True, slots=True)
class PodStatus:
    """Shared by all pods that one write left in the same state."""

    phase: str = PENDING
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_us: int | None = None
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod(KubernetesObject):
    """One pod. `group` names its PodGroup in the same namespace ("" for none); `node_name` "" means pending."""

    spec: PodSpec = PodSpec()
    group: str = ""
    gates: tuple[str, ...] = ()
    node_name: str = ""
    status: PodStatus = PodStatus()

    @property
    def key(self) -> ObjectKey:
        try:
            return self._key
        except AttributeError:
            return self.kept_key(POD)

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in (SUCCEEDED, FAILED)

    @property
    def is_leaving(self) -> bool:
        """Bound, live, with a deletion mark: it uses room and counts for nothing else."""
        return self.deletion_us is not None and bool(self.node_name) and not self.is_terminal

    @property
    def is_member(self) -> bool:
        """Live and without a deletion mark."""
        return self.deletion_us is None and not self.is_terminal


def keys_of(some: Sequence[HasKey]) -> list[ObjectKey]:
    """The key of each pod or group; without a call each if all have theirs already, as those have that admission or a decision made."""
    try:
        return list(map(_kept_key, some))
    except AttributeError:
        return [each.key for each in some]


@dataclass(frozen=True, slots=True)
class PodBatch:
    """A request's short form for many pods that differ in name and uid alone; it is never stored."""

    template: Pod
    names: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
