"""The part of a pod's spec that pods of one shape share.

A word that is left out and has a fixed default (a port's protocol, the policies of a spread constraint) is decoded
as that default.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.model.pod import (
    Container,
    ContainerPort,
    PodSpec,
    Resources,
    Toleration,
    TopologySpreadConstraint,
)
from muster.rpc.codec.affinity import decode_affinity, encode_affinity
from muster.rpc.codec.meta import decode_selector, encode_selector
from muster.v1 import pod_pb2 as pb


def decode_pod_spec(spec: pb.PodSpec) -> PodSpec:
    """The shared part of the spec; node, group and gates are each pod's own."""
    return PodSpec(
        containers=_decode_containers(spec.containers),
        init_containers=_decode_containers(spec.init_containers),
        overhead=dict(spec.overhead),
        resources=_decode_resources(spec.resources) if spec.HasField("resources") else None,
        node_selector=dict(spec.node_selector),
        affinity=decode_affinity(spec.affinity) if spec.HasField("affinity") else None,
        tolerations=tuple(_decode_toleration(each) for each in spec.tolerations),
        topology_spread_constraints=tuple(_decode_spread(each) for each in spec.topology_spread_constraints),
        priority_class_name=spec.priority_class_name,
        priority=spec.priority if spec.HasField("priority") else None,
        preemption_policy=spec.preemption_policy or None,
        scheduler_name=spec.scheduler_name,
        termination_grace_period_seconds=(
            spec.termination_grace_period_seconds
            if spec.HasField("termination_grace_period_seconds")
            else None
        ),
        host_network=spec.host_network,
    )


def encode_pod_spec(spec: PodSpec, message: pb.PodSpec) -> None:
    """Write the shared part of a spec into an empty message."""
    message.containers.extend(_encode_container(each) for each in spec.containers)
    message.init_containers.extend(_encode_container(each) for each in spec.init_containers)
    message.overhead.update(spec.overhead)
    if spec.resources is not None:
        message.resources.CopyFrom(_encode_resources(spec.resources))
    message.node_selector.update(spec.node_selector)
    if spec.affinity is not None:
        encode_affinity(spec.affinity, message.affinity)
    message.tolerations.extend(_encode_toleration(each) for each in spec.tolerations)
    message.topology_spread_constraints.extend(
        _encode_spread(each) for each in spec.topology_spread_constraints
    )
    message.priority_class_name = spec.priority_class_name
    if spec.priority is not None:
        message.priority = spec.priority
    if spec.preemption_policy is not None:
        message.preemption_policy = spec.preemption_policy
    message.scheduler_name = spec.scheduler_name
    if spec.termination_grace_period_seconds is not None:
        message.termination_grace_period_seconds = spec.termination_grace_period_seconds
    message.host_network = spec.host_network


def _decode_containers(containers: Iterable[pb.Container]) -> tuple[Container, ...]:
    return tuple(
        Container(
            each.name,
            _decode_resources(each.resources),
            tuple(
                ContainerPort(
                    port.name, port.host_port, port.container_port, port.protocol or "TCP", port.host_ip
                )
                for port in each.ports
            ),
            each.restart_policy,
        )
        for each in containers
    )


def _encode_container(container: Container) -> pb.Container:
    message = pb.Container(name=container.name, restart_policy=container.restart_policy)
    if container.resources != Resources():
        message.resources.CopyFrom(_encode_resources(container.resources))
    for port in container.ports:
        message.ports.add(
            name=port.name,
            host_port=port.host_port,
            container_port=port.container_port,
            protocol=port.protocol,
            host_ip=port.host_ip,
        )
    return message


def _decode_resources(resources: pb.ResourceRequirements) -> Resources:
    return Resources(dict(resources.requests), dict(resources.limits))


def _encode_resources(resources: Resources) -> pb.ResourceRequirements:
    return pb.ResourceRequirements(requests=resources.requests, limits=resources.limits)


def _decode_toleration(each: pb.Toleration) -> Toleration:
    seconds = each.toleration_seconds if each.HasField("toleration_seconds") else None
    return Toleration(each.key, each.operator, each.value, each.effect, seconds)


def _encode_toleration(each: Toleration) -> pb.Toleration:
    return pb.Toleration(
        key=each.key,
        operator=each.operator,
        value=each.value,
        effect=each.effect,
        toleration_seconds=each.toleration_seconds,
    )


def _decode_spread(each: pb.TopologySpreadConstraint) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=each.max_skew,
        topology_key=each.topology_key,
        when_unsatisfiable=each.when_unsatisfiable,
        label_selector=decode_selector(each.label_selector) if each.HasField("label_selector") else None,
        min_domains=each.min_domains if each.HasField("min_domains") else None,
        node_affinity_policy=each.node_affinity_policy or "Honor",
        node_taints_policy=each.node_taints_policy or "Ignore",
        match_label_keys=tuple(each.match_label_keys),
    )


def _encode_spread(each: TopologySpreadConstraint) -> pb.TopologySpreadConstraint:
    return pb.TopologySpreadConstraint(
        max_skew=each.max_skew,
        topology_key=each.topology_key,
        when_unsatisfiable=each.when_unsatisfiable,
        label_selector=None if each.label_selector is None else encode_selector(each.label_selector),
        min_domains=each.min_domains,
        node_affinity_policy=each.node_affinity_policy,
        node_taints_policy=each.node_taints_policy,
        match_label_keys=each.match_label_keys,
    )
