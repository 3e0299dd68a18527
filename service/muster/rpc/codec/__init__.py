"""Between the messages of muster.v1 and the model, in both directions: the only package that knows both.

A file a kind. Whether an object is right is for validation to say.
"""

from muster.rpc.codec.decision import encode_decision, encode_reasons, encode_result, write_decision
from muster.rpc.codec.meta import encode_ref
from muster.rpc.codec.objects import (
    ObjectDecoder,
    ObjectEncoder,
    ObjectPaths,
    decode_object,
    decode_pods_like,
    decode_right_pod,
    encode_object,
    object_path,
    write_object,
)
from muster.rpc.codec.times import from_timestamp, to_timestamp

__all__ = [
    "ObjectDecoder",
    "ObjectEncoder",
    "ObjectPaths",
    "decode_object",
    "decode_pods_like",
    "decode_right_pod",
    "encode_decision",
    "encode_object",
    "encode_reasons",
    "encode_ref",
    "encode_result",
    "from_timestamp",
    "object_path",
    "to_timestamp",
    "write_decision",
    "write_object",
]
