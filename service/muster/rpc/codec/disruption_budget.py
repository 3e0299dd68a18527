"""PodDisruptionBudget."""

from __future__ import annotations

from muster.model.disruption import DisruptionStatus, PodDisruptionBudget
from muster.rpc.codec.meta import decode_metadata, decode_selector, encode_metadata, encode_selector
from muster.v1 import disruption_budget_pb2 as pb


def decode_disruption_budget(message: pb.PodDisruptionBudget) -> PodDisruptionBudget:
    """The PodDisruptionBudget that a message describes."""
    spec, status = message.spec, message.status
    return PodDisruptionBudget(
        **decode_metadata(message.metadata),
        min_available=spec.min_available if spec.HasField("min_available") else None,
        max_unavailable=spec.max_unavailable if spec.HasField("max_unavailable") else None,
        selector=decode_selector(spec.selector) if spec.HasField("selector") else None,
        status=DisruptionStatus(
            status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods
        ),
    )


def encode_disruption_budget(budget: PodDisruptionBudget, message: pb.PodDisruptionBudget) -> None:
    """Write a PodDisruptionBudget into an empty message."""
    encode_metadata(budget, message.metadata)
    if budget.min_available is not None:
        message.spec.min_available = budget.min_available
    if budget.max_unavailable is not None:
        message.spec.max_unavailable = budget.max_unavailable
    if budget.selector is not None:
        message.spec.selector.CopyFrom(encode_selector(budget.selector))
    message.status.disruptions_allowed = budget.status.disruptions_allowed
    message.status.current_healthy = budget.status.current_healthy
    message.status.desired_healthy = budget.status.desired_healthy
    message.status.expected_pods = budget.status.expected_pods
