"""Pod and PodBatch. What pods share on the wire by value they share in the model by reference, and the other way round.

Thousands of pods differ in name, uid, revision, node and group alone. Without these a pod's bytes are its shape: a
pod whose shape has been seen costs one look-up and one copy. Gates are part of the shape but not of the spec, so
that gated pods and others share one PodSpec.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from muster.model.pod import Pod, PodBatch, PodSpec, PodStatus
from muster.model.variations import variation, variations
from muster.rpc.codec.meta import (
    decode_conditions,
    decode_metadata,
    encode_conditions,
    encode_shared_metadata,
    set_identity,
)
from muster.rpc.codec.pod_spec import decode_pod_spec, encode_pod_spec
from muster.rpc.codec.samples import Sample
from muster.rpc.codec.times import from_timestamp, nanos_fault, to_timestamp
from muster.v1 import pod_pb2 as pb
from muster.validation.violations import INVALID, REQUIRED, Violation

Value = TypeVar("Value", bound=Hashable)

_Own = tuple[str, str, int, str, str]
"""Name, uid, revision, node and group."""

_NOTHING: _Own = ("", "", 0, "", "")
_MOST_BYTES = 16 * 1024 * 1024
_BYTES_OF_A_SHAPE = 1_024
"""What a shape takes beside its bytes, which are kept twice: a pod, its labels and places in tables."""
_MOST_VALUES = 4_096

_individual = variation(Pod, "name", "uid", "resource_version", "node_name", "group")
_named = variation(Pod, "name")
_named_in = variation(Pod, "name", "group")
_all_named = variations(Pod, "name")
_bytes_of = pb.Pod.SerializePartialToString


class PodShape(NamedTuple):
    """What the bytes of a pod say beside its name, uid, revision, node and group.

    `violations`: what a Pod cannot hold (paths from the pod). `size`: in bytes, as sent.
    """

    pod: Pod
    violations: tuple[Violation, ...]
    size: int


class _Last(NamedTuple):
    """A pod that was sent with a name and a group alone for itself: the next may differ from it in these two."""

    pod: Pod
    shape: PodShape
    sample: Sample


class _Interned(Generic[Value]):
    """One value for all that are equal."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        if len(self._values) >= _MOST_VALUES:
            self._values.clear()
        return self._values.setdefault(value, value)


class PodDecoder:
    """Decodes pods and remembers their shapes over calls, in bounded memory."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, PodShape] = {}
        self._grouped: dict[bytes, PodShape] = {}
        self._specs: dict[bytes, PodSpec] = {}
        self._statuses: _Interned[PodStatus] = _Interned()
        self._maps: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._tuples: _Interned[tuple[Hashable, ...]] = _Interned()
        self._bytes = 0
        self._last: _Last | None = None

    def decode(self, message: pb.Pod) -> tuple[Pod, PodShape]:
        """The pod that a message describes, and its shape. The message is the same afterwards, though not in between."""
        last = self._last
        if last is not None:
            texts = last.sample.texts(message.SerializePartialToString())
            if texts is not None:
                name, group = texts
                if not group:
                    return _named(last.pod, name), last.shape
                pod = _named_in(last.pod, name, group)
                self._last = _Last(pod, last.shape, last.sample)
                return pod, last.shape
        own, shape = self._apart(message)
        if last is not None and shape is last.shape and own[1:] == ("", 0, "", last.pod.group):
            pod = _named(last.pod, own[0])
        else:
            pod = _individual(shape.pod, *own)
        self._last = None if any(own[1:4]) else _last(message, pod, shape)
        return pod, shape

    def decode_like(self, messages: Iterable[pb.Pod]) -> list[Pod]:
        """The first of these pods, for as long as they differ from the one that was decoded last in their names alone."""
        last = self._last
        return [] if last is None else _all_named(last.pod, last.sample.names(map(_bytes_of, messages)))

    def _apart(self, message: pb.Pod) -> tuple[_Own, PodShape]:
        """What the pod has for itself, and its shape."""
        meta, spec = message.metadata, message.spec
        group = spec.scheduling_group.pod_group_name
        own = (meta.name, meta.uid, meta.resource_version, spec.node_name, group)
        _set_own(message, own, _NOTHING)
        shape_bytes = message.SerializePartialToString()
        shapes = self._grouped if group else self._shapes
        shape = shapes.get(shape_bytes)
        if shape is None:
            shape = shapes[shape_bytes] = self._learn(shape_bytes, message, has_group=bool(group))
        _set_own(message, own, own)
        return own, shape

    def decode_batch(self, message: pb.PodBatch) -> tuple[PodBatch, PodShape]:
        """The batch that a message describes, and the shape of its template."""
        template, shape = self.decode(message.template)
        return PodBatch(template, tuple(message.names), tuple(message.uids)), shape

    def _learn(self, shape_bytes: bytes, message: pb.Pod, *, has_group: bool) -> PodShape:
        self._make_room(_BYTES_OF_A_SHAPE + 2 * len(shape_bytes))
        metadata = decode_metadata(message.metadata)
        metadata["labels"] = self._shared_map(metadata["labels"])
        metadata["annotations"] = self._shared_map(metadata["annotations"])
        metadata["owner_references"] = self._tuples.of(metadata["owner_references"])  # type: ignore[typeddict-item]
        pod = Pod(
            **metadata,
            spec=self._shared_spec(message.spec),
            gates=tuple(gate.name for gate in message.spec.scheduling_gates),
            status=self._statuses.of(_decode_status(message.status)),
        )
        return PodShape(pod, _unrepresented(message, has_group=has_group), len(shape_bytes))

    def _make_room(self, size: int) -> None:
        self._bytes += size
        if self._bytes > _MOST_BYTES:
            self._shapes.clear()
            self._grouped.clear()
            self._specs.clear()
            self._maps.clear()
            self._bytes = size

    def _shared_spec(self, message: pb.PodSpec) -> PodSpec:
        shared = pb.PodSpec()
        shared.CopyFrom(message)
        shared.ClearField("scheduling_group")
        shared.ClearField("scheduling_gates")
        key = shared.SerializePartialToString(deterministic=True)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._specs[key] = decode_pod_spec(shared)
        return spec

    def _shared_map(self, values: dict[str, str]) -> dict[str, str]:
        return self._maps.setdefault(tuple(sorted(values.items())), values)


class PodEncoder:
    """Encodes pods; what a pod shares with others is encoded once and then copied."""

    def __init__(self) -> None:
        self._prepared: dict[tuple[object, ...], tuple[Pod, pb.Pod]] = {}

    def encode(self, pod: Pod, message: pb.Pod) -> None:
        """Write a pod into an empty message."""
        message.CopyFrom(self._shared_part(pod))
        meta, spec = message.metadata, message.spec
        meta.name = pod.name
        meta.uid = pod.uid
        meta.resource_version = pod.resource_version
        meta.generation = pod.generation
        if pod.group:
            spec.scheduling_group.pod_group_name = pod.group
        for gate in pod.gates:
            spec.scheduling_gates.add(name=gate)
        if pod.node_name:
            spec.node_name = pod.node_name

    def _shared_part(self, pod: Pod) -> pb.Pod:
        key = (
            pod.namespace,
            pod.creation_us,
            pod.deletion_us,
            pod.deletion_grace_seconds,
            id(pod.spec),
            id(pod.status),
            id(pod.labels),
            id(pod.annotations),
            id(pod.owner_references),
            id(pod.finalizers),
        )
        known = self._prepared.get(key)
        if known is not None:
            return known[1]
        if len(self._prepared) >= _MOST_VALUES:
            self._prepared.clear()
        message = _encode_shared_part(pod)
        # With the pod, so that none of the ids is used again.
        self._prepared[key] = (pod, message)
        return message


def _encode_shared_part(pod: Pod) -> pb.Pod:
    message = pb.Pod()
    message.metadata.namespace = pod.namespace
    encode_shared_metadata(pod, message.metadata)
    message.spec.SetInParent()
    encode_pod_spec(pod.spec, message.spec)
    _encode_status(pod.status, message.status)
    return message


def _last(message: pb.Pod, pod: Pod, shape: PodShape) -> _Last | None:
    sample = Sample.of(message.SerializePartialToString(), pod.name, pod.group)
    return None if sample is None else _Last(pod, shape, sample)


def _set_own(message: pb.Pod, own: _Own, values: _Own) -> None:
    """Set those fields of a pod's own that it has. Setting the others would make submessages that were not sent."""
    set_identity(message.metadata, own[:3], values[:3])
    spec = message.spec
    if own[3]:
        spec.node_name = values[3]
    if own[4]:
        spec.scheduling_group.pod_group_name = values[4]


def _unrepresented(message: pb.Pod, *, has_group: bool) -> tuple[Violation, ...]:
    """What the model has no place for. The message has lost the name of its group, if it had one."""
    faults: list[Violation] = []
    if message.spec.HasField("scheduling_group") and not has_group:
        text = "must be set in a schedulingGroup"
        faults.append(Violation("spec.schedulingGroup.podGroupName", REQUIRED, text))
    start = nanos_fault(message.status.start_time)
    if start is not None:
        faults.append(Violation("status.startTime", INVALID, f"must {start}"))
    return tuple(faults)


def _decode_status(status: pb.PodStatus) -> PodStatus:
    return PodStatus(
        phase=status.phase,
        conditions=decode_conditions(status.conditions),
        nominated_node_name=status.nominated_node_name,
        start_us=from_timestamp(status.start_time) if status.HasField("start_time") else None,
        reason=status.reason,
        message=status.message,
    )


def _encode_status(status: PodStatus, message: pb.PodStatus) -> None:
    message.phase = status.phase
    message.conditions.extend(encode_conditions(status.conditions))
    message.nominated_node_name = status.nominated_node_name
    if status.start_us is not None:
        message.start_time.CopyFrom(to_timestamp(status.start_us))
    message.reason = status.reason
    message.message = status.message
