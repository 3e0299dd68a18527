"""Any object of a request or an answer: which kind it is, and the codec of that kind.

Decoding is lenient: a wrong object becomes a wrong model object, which validation explains. Refused here is only
what the model cannot hold: no kind, an empty scheduling group, a time that is none, an object that is too large. Such a refusal names what
validation finds too, since nobody will see the object again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from muster.model.disruption import PodDisruptionBudget
from muster.model.group import CompositePodGroup, PodGroup
from muster.model.node import Node
from muster.model.objects import ClusterObject
from muster.model.pod import Pod, PodBatch
from muster.model.priority import PriorityClass
from muster.model.workload import Workload
from muster.rpc.codec.disruption_budget import decode_disruption_budget, encode_disruption_budget
from muster.rpc.codec.group import GroupDecoder, encode_composite, encode_pod_group
from muster.rpc.codec.node import decode_node, encode_node
from muster.rpc.codec.pod import PodDecoder, PodEncoder, PodShape
from muster.rpc.codec.priority_class import decode_priority_class, encode_priority_class
from muster.rpc.codec.workload import decode_workload, encode_workload
from muster.v1 import object_pb2 as pb
from muster.validation.objects import name_in_texts, subject_of, validate
from muster.validation.violations import REQUIRED, TOO_MANY, Violation

MAX_OBJECT_BYTES = 1024 * 1024
_pod_of = attrgetter("pod")
"""An empty one of an object that is none."""

Decoded = tuple[ClusterObject | PodBatch | None, list[Violation]]

_KINDS = tuple(field.name for field in pb.Object.DESCRIPTOR.oneofs_by_name["kind"].fields)
_JSON_NAMES = {name: pb.Object.DESCRIPTOR.fields_by_name[name].json_name for name in _KINDS}
_DECODERS: dict[str, Callable[[Any], ClusterObject]] = {
    "node": decode_node,
    "workload": decode_workload,
    "priority_class": decode_priority_class,
    "pod_disruption_budget": decode_disruption_budget,
}
_ENCODERS: dict[type[ClusterObject], tuple[str, Callable[[Any, Any], None]]] = {
    Node: ("node", encode_node),
    PodGroup: ("pod_group", encode_pod_group),
    CompositePodGroup: ("composite_pod_group", encode_composite),
    Workload: ("workload", encode_workload),
    PriorityClass: ("priority_class", encode_priority_class),
    PodDisruptionBudget: ("pod_disruption_budget", encode_disruption_budget),
}


def object_path(message: pb.Object, index: int, field: str = "objects") -> str:
    """The JSON path of a request's object, a dot at its end: `objects[3].podGroup.`; `objects[3].` without a kind."""
    kind = message.WhichOneof("kind")
    return f"{field}[{index}]." if kind is None else f"{field}[{index}].{_JSON_NAMES[kind]}."


class ObjectPaths(Sequence[str]):
    """The JSON paths of a request's objects, each made when it is asked for: most are never told to anybody."""

    def __init__(self, messages: Sequence[pb.Object]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as Sequence has it: a place or a slice
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return object_path(self._messages[index], index)


class ObjectDecoder:
    """Decodes objects; remembers the shapes of pods and groups."""

    def __init__(self) -> None:
        self._pods = PodDecoder()
        groups = GroupDecoder()
        self._decoders: dict[str, Callable[[Any], ClusterObject]] = {
            **_DECODERS,
            "pod_group": groups.pod_group,
            "composite_pod_group": groups.composite,
        }

    def decode(self, message: pb.Object, path: str) -> Decoded:
        """The object, or None and all that is wrong with it, with `path` before its paths."""
        kind = message.WhichOneof("kind")
        if kind == "pod":
            return self._pod(message, path)
        if kind == "pod_batch":
            return self._batch(message, path)
        if kind is None:
            return None, [
                Violation(path.rstrip("."), REQUIRED, f"must be one of {', '.join(_JSON_NAMES.values())}")
            ]
        decoded = self._decoders[kind](getattr(message, kind))
        size = message.ByteSize()
        return (decoded, []) if size <= MAX_OBJECT_BYTES else _refused(decoded, path, [_too_large(size)])

    def right_pod(self, message: pb.Object) -> Pod | None:
        """The pod of an object that is one and has nothing to be refused; None: `decode` tells what it is."""
        if not message.HasField("pod"):
            return None
        pod, shape = self._pods.decode(message.pod)
        return None if shape.violations or shape.size > MAX_OBJECT_BYTES else pod

    def pods_like(self, messages: Iterable[pb.Object]) -> list[Pod]:
        """The first of these objects, for as long as they are pods that differ in their names alone from the last, a right one."""
        return self._pods.decode_like(map(_pod_of, messages))

    def _pod(self, message: pb.Object, path: str) -> Decoded:
        pod, shape = self._pods.decode(message.pod)
        if not shape.violations and shape.size <= MAX_OBJECT_BYTES:
            return pod, []
        return _refused(pod, path, _shape_faults(shape))

    def _batch(self, message: pb.Object, path: str) -> Decoded:
        batch, shape = self._pods.decode_batch(message.pod_batch)
        faults = [fault._replace(field=_joined("template", fault.field)) for fault in _shape_faults(shape)]
        return _refused(batch, path, faults) if faults else (batch, [])


class ObjectEncoder:
    """Encodes objects; what pods share is encoded once."""

    def __init__(self) -> None:
        self._pods = PodEncoder()

    def encode(self, each: ClusterObject) -> pb.Object:
        """The object as a message."""
        message = pb.Object()
        self.write(each, message)
        return message

    def write(self, each: ClusterObject, message: pb.Object) -> None:
        """Write the object into an empty message, which may be a part of another."""
        if isinstance(each, Pod):
            self._pods.encode(each, message.pod)
        else:
            kind, encode = _ENCODERS[type(each)]
            encode(each, getattr(message, kind))


_decoder = ObjectDecoder()
_encoder = ObjectEncoder()

decode_object = _decoder.decode
decode_right_pod = _decoder.right_pod
decode_pods_like = _decoder.pods_like
encode_object = _encoder.encode
write_object = _encoder.write


def _refused(concerned: ClusterObject | PodBatch, path: str, faults: list[Violation]) -> Decoded:
    """No object, and the faults together with those that validation finds."""
    named = name_in_texts(subject_of(concerned), faults) + validate(concerned)
    return None, [fault._replace(field=_joined(path, fault.field)) for fault in named]


def _shape_faults(shape: PodShape) -> list[Violation]:
    size = [_too_large(shape.size)] if shape.size > MAX_OBJECT_BYTES else []
    return [*shape.violations, *size]


def _joined(path: str, field: str) -> str:
    """The path of a field below another; the other itself where the field is empty."""
    return f"{path.rstrip('.')}.{field}".rstrip(".")


def _too_large(size: int) -> Violation:
    return Violation("", TOO_MANY, f"must be at most {MAX_OBJECT_BYTES} bytes, not {size}")
