"""PriorityClass."""

from __future__ import annotations

from muster.model.priority import PriorityClass
from muster.rpc.codec.meta import decode_metadata, encode_metadata
from muster.v1 import priority_class_pb2 as pb


def decode_priority_class(message: pb.PriorityClass) -> PriorityClass:
    """The PriorityClass that a message describes."""
    return PriorityClass(
        **decode_metadata(message.metadata),
        value=message.value,
        global_default=message.global_default,
        description=message.description,
        preemption_policy=message.preemption_policy or None,
    )


def encode_priority_class(priority_class: PriorityClass, message: pb.PriorityClass) -> None:
    """Write a PriorityClass into an empty message."""
    encode_metadata(priority_class, message.metadata)
    message.value = priority_class.value
    message.global_default = priority_class.global_default
    message.description = priority_class.description
    if priority_class.preemption_policy is not None:
        message.preemption_policy = priority_class.preemption_policy
