"""PodGroup and CompositePodGroup, and the policies that they share with templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from muster.model.group import (
    AllDisruption,
    BasicPolicy,
    CompositePodGroup,
    DisruptionMode,
    GangPolicy,
    GroupSpec,
    PodGroup,
    SchedulingPolicy,
    SingleDisruption,
    WorkloadReference,
)
from muster.model.variations import variation, varied
from muster.rpc.codec.meta import (
    NO_IDENTITY,
    Identity,
    decode_conditions,
    decode_metadata,
    encode_conditions,
    encode_metadata,
    set_identity,
)
from muster.rpc.codec.samples import Sample
from muster.v1 import composite_pod_group_pb2 as composite_pb
from muster.v1 import pod_group_pb2 as pb
from muster.v1 import workload_pb2 as workload_pb

PodGroupPolicy = pb.PodGroupSchedulingPolicy
CompositePolicy = composite_pb.CompositePodGroupSchedulingPolicy
GroupMessage = TypeVar("GroupMessage", pb.PodGroup, composite_pb.CompositePodGroup)
Known = TypeVar("Known", PodGroup, CompositePodGroup)
SpecMessage = pb.PodGroupSpec | composite_pb.CompositePodGroupSpec
SpecOrTemplate = SpecMessage | workload_pb.PodGroupTemplate | workload_pb.CompositePodGroupTemplate

_MOST_SHAPES = 4_096
_LONGEST_SHAPE = 4_096
"""In bytes: more than names, a policy and some labels is nobody's shape but its own."""

_OWN_FIELDS = ("name", "uid", "resource_version", "spec")
_individual_pod_group = variation(PodGroup, *_OWN_FIELDS)
_individual_composite = variation(CompositePodGroup, *_OWN_FIELDS)


class GroupDecoder:
    """Decodes groups and remembers their shapes over calls, in bounded number: most differ in names and parents alone.

    Groups of one shape share their labels and all else by reference; their spec too, if they have the same parent.
    """

    def __init__(self) -> None:
        self._pod_groups = _Shapes(decode_pod_group)
        self._composites = _Shapes(decode_composite)

    def pod_group(self, message: pb.PodGroup) -> PodGroup:
        """The PodGroup that a message describes."""
        return _individual_pod_group(*self._pod_groups.of(message))

    def composite(self, message: composite_pb.CompositePodGroup) -> CompositePodGroup:
        """The CompositePodGroup that a message describes."""
        return _individual_composite(*self._composites.of(message))


class _Shapes(Generic[GroupMessage, Known]):
    """Groups of one kind by their bytes without what each has for itself. `last`: a spec with a parent, and of what it was made."""

    def __init__(self, decode: Callable[[GroupMessage], Known]) -> None:
        self._decode: Callable[[GroupMessage], Known] = decode
        self._known: dict[bytes, Known] = {}
        self._last = (GroupSpec(), "", GroupSpec())
        self._sample: tuple[Sample, Known, str] | None = None

    def of(self, message: GroupMessage) -> tuple[Known, str, str, int, GroupSpec]:
        """The shape, and the group's own: name, uid, revision and spec. The message is the same afterwards."""
        if self._sample is not None:
            sample, shape, parent = self._sample
            texts = sample.texts(message.SerializePartialToString())
            if texts is not None:
                if texts[1]:
                    parent = texts[1]
                    self._sample = sample, shape, parent
                return shape, texts[0], "", 0, self._below(parent, shape.spec) if parent else shape.spec
        return self._apart(message)

    def _apart(self, message: GroupMessage) -> tuple[Known, str, str, int, GroupSpec]:
        meta, parent = message.metadata, message.spec.parent_composite_pod_group_name
        own: Identity = (meta.name, meta.uid, meta.resource_version)
        set_identity(meta, own, NO_IDENTITY)
        if parent:
            message.spec.parent_composite_pod_group_name = ""
        shape = self._shape(message)
        set_identity(meta, own, own)
        if parent:
            message.spec.parent_composite_pod_group_name = parent
        is_named_alone = own[1:] == NO_IDENTITY[1:]
        sample = Sample.of(message.SerializePartialToString(), own[0], parent) if is_named_alone else None
        self._sample = None if sample is None else (sample, shape, parent)
        return shape, *own, self._below(parent, shape.spec) if parent else shape.spec

    def _shape(self, message: GroupMessage) -> Known:
        shape_bytes = message.SerializePartialToString()
        shape = self._known.get(shape_bytes)
        if shape is None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            shape = self._decode(message)
            if len(shape_bytes) <= _LONGEST_SHAPE:
                self._known[shape_bytes] = shape
        return shape

    def _below(self, parent: str, spec: GroupSpec) -> GroupSpec:
        """The spec with a parent; groups of one tree mostly come one after the other."""
        if self._last[0] is not spec or self._last[1] != parent:
            self._last = (spec, parent, varied(spec, parent_composite_pod_group_name=parent))
        return self._last[2]


def decode_pod_group(message: pb.PodGroup) -> PodGroup:
    """The PodGroup that a message describes."""
    return PodGroup(
        **decode_metadata(message.metadata),
        spec=_decode_spec(message.spec, decode_pod_group_policy(message.spec.scheduling_policy)),
        conditions=decode_conditions(message.status.conditions),
    )


def decode_composite(message: composite_pb.CompositePodGroup) -> CompositePodGroup:
    """The CompositePodGroup that a message describes."""
    return CompositePodGroup(
        **decode_metadata(message.metadata),
        spec=_decode_spec(message.spec, decode_composite_policy(message.spec.scheduling_policy)),
        conditions=decode_conditions(message.status.conditions),
    )


def encode_pod_group(group: PodGroup, message: pb.PodGroup) -> None:
    """Write a PodGroup into an empty message."""
    encode_metadata(group, message.metadata)
    _encode_spec(group.spec, message.spec)
    encode_pod_group_policy(group.spec.scheduling_policy, message.spec.scheduling_policy)
    message.status.conditions.extend(encode_conditions(group.conditions))


def encode_composite(group: CompositePodGroup, message: composite_pb.CompositePodGroup) -> None:
    """Write a CompositePodGroup into an empty message."""
    encode_metadata(group, message.metadata)
    _encode_spec(group.spec, message.spec)
    encode_composite_policy(group.spec.scheduling_policy, message.spec.scheduling_policy)
    message.status.conditions.extend(encode_conditions(group.conditions))


def decode_pod_group_policy(policy: PodGroupPolicy) -> SchedulingPolicy:
    """The policy of a PodGroup or its template."""
    gang = None
    if policy.HasField("gang"):
        gang = GangPolicy(policy.gang.min_count if policy.gang.HasField("min_count") else None)
    return SchedulingPolicy(BasicPolicy() if policy.HasField("basic") else None, gang)


def decode_composite_policy(policy: CompositePolicy) -> SchedulingPolicy:
    """The policy of a CompositePodGroup or its template."""
    gang = None
    if policy.HasField("gang"):
        gang = GangPolicy(policy.gang.min_group_count if policy.gang.HasField("min_group_count") else None)
    return SchedulingPolicy(BasicPolicy() if policy.HasField("basic") else None, gang)


def encode_pod_group_policy(policy: SchedulingPolicy, message: PodGroupPolicy) -> None:
    """Write the policy of a PodGroup or its template."""
    if policy.basic is not None:
        message.basic.SetInParent()
    if policy.gang is not None:
        message.gang.SetInParent()
        if policy.gang.minimum is not None:
            message.gang.min_count = policy.gang.minimum


def encode_composite_policy(policy: SchedulingPolicy, message: CompositePolicy) -> None:
    """Write the policy of a CompositePodGroup or its template."""
    if policy.basic is not None:
        message.basic.SetInParent()
    if policy.gang is not None:
        message.gang.SetInParent()
        if policy.gang.minimum is not None:
            message.gang.min_group_count = policy.gang.minimum


def decode_disruption_mode(holder: SpecOrTemplate) -> DisruptionMode | None:
    """The disruption mode of a group's spec or of a template, None where it is left out."""
    if not holder.HasField("disruption_mode"):
        return None
    mode = holder.disruption_mode
    return DisruptionMode(
        SingleDisruption() if mode.HasField("single") else None,
        AllDisruption() if mode.HasField("all") else None,
    )


def encode_disruption_mode(mode: DisruptionMode | None, holder: SpecOrTemplate) -> None:
    """Write the disruption mode of a group's spec or of a template."""
    if mode is None:
        return
    holder.disruption_mode.SetInParent()
    if mode.single is not None:
        holder.disruption_mode.single.SetInParent()
    if mode.all is not None:
        holder.disruption_mode.all.SetInParent()


def encode_topology(keys: tuple[str, ...], holder: SpecOrTemplate) -> None:
    """Write the topology constraints of a group's spec or of a template."""
    for key in keys:
        holder.scheduling_constraints.topology.add(key=key)


def _decode_spec(spec: SpecMessage, policy: SchedulingPolicy) -> GroupSpec:
    """The spec of either kind; the messages differ in their policies alone."""
    reference = None
    if spec.HasField("workload_ref"):
        reference = WorkloadReference(spec.workload_ref.workload_name, spec.workload_ref.template_name)
    return GroupSpec(
        parent_composite_pod_group_name=spec.parent_composite_pod_group_name,
        workload_ref=reference,
        scheduling_policy=policy,
        topology=tuple(each.key for each in spec.scheduling_constraints.topology),
        disruption_mode=decode_disruption_mode(spec),
        priority_class_name=spec.priority_class_name,
        priority=spec.priority if spec.HasField("priority") else None,
        preemption_policy=spec.preemption_policy or None,
    )


def _encode_spec(spec: GroupSpec, message: SpecMessage) -> None:
    message.parent_composite_pod_group_name = spec.parent_composite_pod_group_name
    if spec.workload_ref is not None:
        message.workload_ref.workload_name = spec.workload_ref.workload_name
        message.workload_ref.template_name = spec.workload_ref.template_name
    encode_topology(spec.topology, message)
    encode_disruption_mode(spec.disruption_mode, message)
    message.priority_class_name = spec.priority_class_name
    if spec.priority is not None:
        message.priority = spec.priority
    if spec.preemption_policy is not None:
        message.preemption_policy = spec.preemption_policy
