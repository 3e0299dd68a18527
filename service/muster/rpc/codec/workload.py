"""Workload and its tree of templates."""

from __future__ import annotations

from muster.model.group import SchedulingPolicy
from muster.model.workload import ControllerReference, GroupTemplate, Workload, WorkloadSpec
from muster.rpc.codec.group import (
    decode_composite_policy,
    decode_disruption_mode,
    decode_pod_group_policy,
    encode_composite_policy,
    encode_disruption_mode,
    encode_pod_group_policy,
    encode_topology,
)
from muster.rpc.codec.meta import decode_metadata, encode_metadata
from muster.v1 import workload_pb2 as pb

Templates = tuple[GroupTemplate, ...]
TemplateMessage = pb.PodGroupTemplate | pb.CompositePodGroupTemplate
TemplateHolder = pb.WorkloadSpec | pb.CompositePodGroupTemplate


def decode_workload(message: pb.Workload) -> Workload:
    """The Workload that a message describes."""
    spec = message.spec
    controller = None
    if spec.HasField("controller_ref"):
        reference = spec.controller_ref
        controller = ControllerReference(reference.api_group, reference.kind, reference.name)
    return Workload(
        **decode_metadata(message.metadata),
        spec=WorkloadSpec(controller, _decode_leaves(spec), _decode_composites(spec)),
    )


def encode_workload(workload: Workload, message: pb.Workload) -> None:
    """Write a Workload into an empty message."""
    encode_metadata(workload, message.metadata)
    controller = workload.spec.controller_ref
    if controller is not None:
        message.spec.controller_ref.api_group = controller.api_group
        message.spec.controller_ref.kind = controller.kind
        message.spec.controller_ref.name = controller.name
    _encode_lists(
        workload.spec.pod_group_templates, workload.spec.composite_pod_group_templates, message.spec
    )


def _decode_leaves(holder: TemplateHolder) -> Templates:
    return tuple(
        _decode_template(each, decode_pod_group_policy(each.scheduling_policy), (), ())
        for each in holder.pod_group_templates
    )


def _decode_composites(holder: TemplateHolder) -> Templates:
    return tuple(
        _decode_template(
            each,
            decode_composite_policy(each.scheduling_policy),
            _decode_leaves(each),
            _decode_composites(each),
        )
        for each in holder.composite_pod_group_templates
    )


def _decode_template(
    message: TemplateMessage, policy: SchedulingPolicy, leaves: Templates, composites: Templates
) -> GroupTemplate:
    return GroupTemplate(
        name=message.name,
        scheduling_policy=policy,
        topology=tuple(each.key for each in message.scheduling_constraints.topology),
        disruption_mode=decode_disruption_mode(message),
        priority_class_name=message.priority_class_name,
        priority=message.priority if message.HasField("priority") else None,
        preemption_policy=message.preemption_policy or None,
        pod_group_templates=leaves,
        composite_pod_group_templates=composites,
    )


def _encode_lists(leaves: Templates, composites: Templates, holder: TemplateHolder) -> None:
    for template in leaves:
        leaf = holder.pod_group_templates.add()
        encode_pod_group_policy(template.scheduling_policy, leaf.scheduling_policy)
        _encode_template(template, leaf)
    for template in composites:
        composite = holder.composite_pod_group_templates.add()
        encode_composite_policy(template.scheduling_policy, composite.scheduling_policy)
        _encode_template(template, composite)
        _encode_lists(template.pod_group_templates, template.composite_pod_group_templates, composite)


def _encode_template(template: GroupTemplate, message: TemplateMessage) -> None:
    message.name = template.name
    encode_topology(template.topology, message)
    encode_disruption_mode(template.disruption_mode, message)
    message.priority_class_name = template.priority_class_name
    if template.priority is not None:
        message.priority = template.priority
    if template.preemption_policy is not None:
        message.preemption_policy = template.preemption_policy
