"""Rules of the metadata that all kinds share: names, labels, annotations, owners, finalizers.

Server-owned fields are ignored in requests and so never wrong.
"""

from __future__ import annotations

from muster.model.meta import CLUSTER_SCOPED_KINDS, KubernetesObject, OwnerReference
from muster.model.names import (
    MOST_ANNOTATION_BYTES,
    NUL,
    annotations_size,
    dns_label_fault,
    dns_subdomain_fault,
    label_key_fault,
)
from muster.validation.fields import Faults, least_faults, name_faults, optional_name_faults
from muster.validation.labels import label_map_faults
from muster.validation.violations import INVALID, TOO_MANY, Violation

LONGEST_UID = 253


def metadata_faults(kind: str, meta: KubernetesObject) -> Faults:
    """All faults of an object's metadata."""
    yield from identity_faults(meta)
    yield from namespace_faults(kind, meta.namespace)
    yield from shared_metadata_faults(meta)


def identity_faults(meta: KubernetesObject) -> Faults:
    """What each object has for itself: its name, its uid, the revision it expects."""
    yield from name_faults("metadata.name", meta.name, dns_subdomain_fault)
    yield from uid_faults("metadata.uid", meta.uid)
    yield from least_faults("metadata.resourceVersion", meta.resource_version, 0)


def uid_faults(path: str, uid: str) -> Faults:
    """A uid is any text up to a limit, but NUL."""
    if len(uid) > LONGEST_UID:
        yield Violation(path, TOO_MANY, f"must be at most {LONGEST_UID} characters long")
    if NUL in uid:
        yield Violation(path, INVALID, "must not hold NUL")


def namespace_faults(kind: str, namespace: str) -> Faults:
    """A DNS label, or nothing; cluster-scoped kinds have none."""
    if kind in CLUSTER_SCOPED_KINDS:
        if namespace:
            yield Violation("metadata.namespace", INVALID, f"must be empty: a {kind} belongs to no namespace")
    else:
        yield from optional_name_faults("metadata.namespace", namespace, dns_label_fault)


def shared_metadata_faults(meta: KubernetesObject) -> Faults:
    """What many objects have in common: labels, annotations, owners, finalizers."""
    yield from label_map_faults("metadata.labels", meta.labels)
    yield from _annotation_faults(meta.annotations)
    yield from _owner_faults(meta.owner_references)
    for index, finalizer in enumerate(meta.finalizers):
        yield from name_faults(f"metadata.finalizers[{index}]", finalizer, label_key_fault)


def _annotation_faults(annotations: dict[str, str]) -> Faults:
    for key in annotations:
        fault = label_key_fault(key)
        if fault is not None:
            yield Violation(f"metadata.annotations[{key}]", INVALID, f"an annotation's key must {fault}")
    if annotations_size(annotations) > MOST_ANNOTATION_BYTES:
        yield Violation(
            "metadata.annotations", TOO_MANY, f"must be at most {MOST_ANNOTATION_BYTES} bytes in all"
        )


def _owner_faults(owners: tuple[OwnerReference, ...]) -> Faults:
    has_controller = False
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        named = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
        }
        for field, text in named.items():
            yield from name_faults(f"{path}.{field}", text, _length_fault)
        if owner.controller and has_controller:
            yield Violation(f"{path}.controller", INVALID, "must be true for one owner only")
        has_controller |= owner.controller


def _length_fault(text: str) -> str | None:
    return f"be at most {LONGEST_UID} characters long" if len(text) > LONGEST_UID else None
