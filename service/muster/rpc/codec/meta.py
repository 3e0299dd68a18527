"""What all kinds share: metadata, conditions, refs, label selectors.

Decoding takes server-owned metadata too: admission is who ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

from muster.model.meta import (
    Condition,
    KubernetesObject,
    LabelSelector,
    ObjectKey,
    OwnerReference,
    SelectorRequirement,
)
from muster.rpc.codec.times import from_timestamp, to_timestamp
from muster.v1 import meta_pb2 as pb


class Metadata(TypedDict):
    """The fields of KubernetesObject, as keywords of any kind."""

    name: str
    namespace: str
    uid: str
    resource_version: int
    generation: int
    creation_us: int
    deletion_us: int | None
    deletion_grace_seconds: int | None
    labels: dict[str, str]
    annotations: dict[str, str]
    owner_references: tuple[OwnerReference, ...]
    finalizers: tuple[str, ...]


def decode_metadata(meta: pb.ObjectMeta) -> Metadata:
    """All metadata that the message carries."""
    return Metadata(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        creation_us=from_timestamp(meta.creation_timestamp),
        deletion_us=from_timestamp(meta.deletion_timestamp) if meta.HasField("deletion_timestamp") else None,
        deletion_grace_seconds=(
            meta.deletion_grace_period_seconds if meta.HasField("deletion_grace_period_seconds") else None
        ),
        labels=dict(meta.labels),
        annotations=dict(meta.annotations),
        owner_references=tuple(
            OwnerReference(
                each.api_version,
                each.kind,
                each.name,
                each.uid,
                controller=each.controller,
                block_owner_deletion=each.block_owner_deletion,
            )
            for each in meta.owner_references
        ),
        finalizers=tuple(meta.finalizers),
    )


Identity = tuple[str, str, int]
"""Name, uid and revision: what each object has for itself."""

NO_IDENTITY: Identity = ("", "", 0)


def set_identity(meta: pb.ObjectMeta, own: Identity, values: Identity) -> None:
    """Set those of the fields that are in `own`. Setting others would make a message of metadata that was not sent."""
    if own[0]:
        meta.name = values[0]
    if own[1]:
        meta.uid = values[1]
    if own[2]:
        meta.resource_version = values[2]


def encode_metadata(each: KubernetesObject, meta: pb.ObjectMeta) -> None:
    """Write all metadata of an object into an empty message."""
    encode_identity(each, meta)
    encode_shared_metadata(each, meta)


def encode_identity(each: KubernetesObject, meta: pb.ObjectMeta) -> None:
    """Write what each object has for itself; its times are for `encode_shared_metadata`."""
    meta.name = each.name
    meta.namespace = each.namespace
    meta.uid = each.uid
    meta.resource_version = each.resource_version
    meta.generation = each.generation


def encode_shared_metadata(each: KubernetesObject, meta: pb.ObjectMeta) -> None:
    """Write the metadata that objects of one origin have in common."""
    if each.creation_us:
        meta.creation_timestamp.CopyFrom(to_timestamp(each.creation_us))
    if each.deletion_us is not None:
        meta.deletion_timestamp.CopyFrom(to_timestamp(each.deletion_us))
    if each.deletion_grace_seconds is not None:
        meta.deletion_grace_period_seconds = each.deletion_grace_seconds
    meta.labels.update(each.labels)
    meta.annotations.update(each.annotations)
    for owner in each.owner_references:
        meta.owner_references.add(
            api_version=owner.api_version,
            kind=owner.kind,
            name=owner.name,
            uid=owner.uid,
            controller=owner.controller,
            block_owner_deletion=owner.block_owner_deletion,
        )
    meta.finalizers.extend(each.finalizers)


def decode_conditions(conditions: Iterable[pb.Condition]) -> tuple[Condition, ...]:
    """Conditions in their order."""
    return tuple(
        Condition(
            each.type,
            each.status,
            each.reason,
            each.message,
            each.observed_generation,
            from_timestamp(each.last_transition_time),
        )
        for each in conditions
    )


def encode_conditions(conditions: Iterable[Condition]) -> list[pb.Condition]:
    """Conditions in their order."""
    return [_encode_condition(each) for each in conditions]


def _encode_condition(condition: Condition) -> pb.Condition:
    message = pb.Condition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        observed_generation=condition.observed_generation,
    )
    if condition.last_transition_us:
        message.last_transition_time.CopyFrom(to_timestamp(condition.last_transition_us))
    return message


def encode_ref(key: ObjectKey, uid: str = "") -> pb.ObjectRef:
    """The ref of a key."""
    return pb.ObjectRef(kind=key.kind, namespace=key.namespace, name=key.name, uid=uid)


def write_ref(key: ObjectKey, message: pb.ObjectRef) -> None:
    """The ref of a key, into a message that is empty."""
    message.kind, message.namespace, message.name = key


def decode_requirements(requirements: Iterable[Any]) -> tuple[SelectorRequirement, ...]:
    """Requirements of label selectors and of node selectors, which have the same fields."""
    return tuple(SelectorRequirement(each.key, each.operator, tuple(each.values)) for each in requirements)


def decode_selector(selector: pb.LabelSelector) -> LabelSelector:
    """A selector that is there."""
    return LabelSelector(dict(selector.match_labels), decode_requirements(selector.match_expressions))


def encode_selector(selector: LabelSelector) -> pb.LabelSelector:
    """A selector that is there."""
    return pb.LabelSelector(
        match_labels=selector.match_labels,
        match_expressions=[
            pb.LabelSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
            for each in selector.match_expressions
        ],
    )
