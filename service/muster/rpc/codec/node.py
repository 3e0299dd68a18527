"""Node."""

from __future__ import annotations

from muster.model.node import Node, Taint
from muster.rpc.codec.meta import decode_conditions, decode_metadata, encode_conditions, encode_metadata
from muster.v1 import node_pb2 as pb


def decode_node(message: pb.Node) -> Node:
    """The node that a message describes."""
    return Node(
        **decode_metadata(message.metadata),
        unschedulable=message.spec.unschedulable,
        taints=tuple(Taint(each.key, each.value, each.effect) for each in message.spec.taints),
        capacity=dict(message.status.capacity),
        allocatable=dict(message.status.allocatable),
        conditions=decode_conditions(message.status.conditions),
    )


def encode_node(node: Node, message: pb.Node) -> None:
    """Write a node into an empty message."""
    encode_metadata(node, message.metadata)
    message.spec.unschedulable = node.unschedulable
    for taint in node.taints:
        message.spec.taints.add(key=taint.key, value=taint.value, effect=taint.effect)
    message.status.capacity.update(node.capacity)
    message.status.allocatable.update(node.allocatable)
    message.status.conditions.extend(encode_conditions(node.conditions))
