"""A pod's affinity: Kubernetes' tree on the wire, flat terms in the model."""

from __future__ import annotations

from muster.model.pod import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from muster.rpc.codec.meta import decode_requirements, decode_selector, encode_selector
from muster.v1 import pod_pb2 as pb

PodAffinityMessage = pb.PodAffinity | pb.PodAntiAffinity


def decode_affinity(message: pb.Affinity) -> Affinity:
    """An affinity that is there."""
    return Affinity(
        _decode_node_affinity(message.node_affinity) if message.HasField("node_affinity") else None,
        _decode_pod_affinity(message.pod_affinity) if message.HasField("pod_affinity") else None,
        _decode_pod_affinity(message.pod_anti_affinity) if message.HasField("pod_anti_affinity") else None,
    )


def encode_affinity(affinity: Affinity, message: pb.Affinity) -> None:
    """Write an affinity into an empty message."""
    message.SetInParent()
    if affinity.node_affinity is not None:
        _encode_node_affinity(affinity.node_affinity, message.node_affinity)
    if affinity.pod_affinity is not None:
        _encode_pod_affinity(affinity.pod_affinity, message.pod_affinity)
    if affinity.pod_anti_affinity is not None:
        _encode_pod_affinity(affinity.pod_anti_affinity, message.pod_anti_affinity)


def _decode_node_affinity(message: pb.NodeAffinity) -> NodeAffinity:
    required = None
    if message.HasField("required_during_scheduling_ignored_during_execution"):
        terms = message.required_during_scheduling_ignored_during_execution.node_selector_terms
        required = tuple(_decode_node_term(term) for term in terms)
    preferred = message.preferred_during_scheduling_ignored_during_execution
    return NodeAffinity(
        required,
        tuple(PreferredSchedulingTerm(each.weight, _decode_node_term(each.preference)) for each in preferred),
    )


def _decode_node_term(term: pb.NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        decode_requirements(term.match_expressions), decode_requirements(term.match_fields)
    )


def _encode_node_affinity(affinity: NodeAffinity, message: pb.NodeAffinity) -> None:
    message.SetInParent()
    if affinity.required is not None:
        required = message.required_during_scheduling_ignored_during_execution
        required.SetInParent()
        required.node_selector_terms.extend(_encode_node_term(term) for term in affinity.required)
    for preferred in affinity.preferred:
        message.preferred_during_scheduling_ignored_during_execution.add(
            weight=preferred.weight, preference=_encode_node_term(preferred.preference)
        )


def _encode_node_term(term: NodeSelectorTerm) -> pb.NodeSelectorTerm:
    message = pb.NodeSelectorTerm()
    for each in term.match_expressions:
        message.match_expressions.add(key=each.key, operator=each.operator, values=each.values)
    for each in term.match_fields:
        message.match_fields.add(key=each.key, operator=each.operator, values=each.values)
    return message


def _decode_pod_affinity(message: PodAffinityMessage) -> PodAffinity:
    required = message.required_during_scheduling_ignored_during_execution
    preferred = message.preferred_during_scheduling_ignored_during_execution
    return PodAffinity(
        tuple(_decode_pod_term(term) for term in required),
        tuple(
            WeightedPodAffinityTerm(each.weight, _decode_pod_term(each.pod_affinity_term))
            for each in preferred
        ),
    )


def _decode_pod_term(term: pb.PodAffinityTerm) -> PodAffinityTerm:
    return PodAffinityTerm(
        label_selector=decode_selector(term.label_selector) if term.HasField("label_selector") else None,
        namespaces=tuple(term.namespaces),
        topology_key=term.topology_key,
        namespace_selector=(
            decode_selector(term.namespace_selector) if term.HasField("namespace_selector") else None
        ),
        match_label_keys=tuple(term.match_label_keys),
        mismatch_label_keys=tuple(term.mismatch_label_keys),
    )


def _encode_pod_affinity(affinity: PodAffinity, message: PodAffinityMessage) -> None:
    message.SetInParent()
    message.required_during_scheduling_ignored_during_execution.extend(
        _encode_pod_term(term) for term in affinity.required
    )
    for preferred in affinity.preferred:
        message.preferred_during_scheduling_ignored_during_execution.add(
            weight=preferred.weight, pod_affinity_term=_encode_pod_term(preferred.term)
        )


def _encode_pod_term(term: PodAffinityTerm) -> pb.PodAffinityTerm:
    message = pb.PodAffinityTerm(
        namespaces=term.namespaces,
        topology_key=term.topology_key,
        match_label_keys=term.match_label_keys,
        mismatch_label_keys=term.mismatch_label_keys,
    )
    if term.label_selector is not None:
        message.label_selector.CopyFrom(encode_selector(term.label_selector))
    if term.namespace_selector is not None:
        message.namespace_selector.CopyFrom(encode_selector(term.namespace_selector))
    return message
