"""Kinds as people write them: singular, plural, short, in any case; and KIND/NAME.

The kinds themselves are the client library's.
"""

from __future__ import annotations

import click

from muster.client.manifest_kinds import CLUSTER_SCOPED, FIELDS
from muster.v1.meta_pb2 import ObjectMeta, ObjectRef
from muster.v1.object_pb2 import Object

SHORT = {
    "no": "Node",
    "po": "Pod",
    "pg": "PodGroup",
    "cpg": "CompositePodGroup",
    "wl": "Workload",
    "pc": "PriorityClass",
    "pdb": "PodDisruptionBudget",
}
# The order in which objects are created without one waiting for the other.
ORDER = ("PriorityClass", "Node", "PodDisruptionBudget", "Workload", "CompositePodGroup", "PodGroup", "Pod")
ALL = "all"

_SPELLINGS = {
    spelling: kind for kind in FIELDS for spelling in (kind.lower(), f"{kind.lower()}s", f"{kind.lower()}es")
} | SHORT


def kind_of(text: str) -> str:
    """The kind that a word stands for. Raises click.BadParameter."""
    kind = _SPELLINGS.get(text.lower().replace("_", "").replace("-", ""))
    if kind is None:
        raise click.BadParameter(
            f"{text!r} is not a kind: one of {', '.join(name.lower() for name in FIELDS)}"
        )
    return kind


def kinds_of(text: str | None) -> list[str]:
    """The kinds of a list such as "nodes,pods"; all for "all" or nothing. Raises click.BadParameter."""
    if text is None or text.lower() == ALL:
        return list(ORDER)
    return [kind_of(word) for word in text.split(",")]


def ref_of(text: str, namespace: str = "") -> ObjectRef:
    """The object that KIND/NAME stands for. Raises click.BadParameter."""
    word, slash, name = text.partition("/")
    if not slash or not name:
        raise click.BadParameter(f"{text!r} is not KIND/NAME")
    return ref(kind_of(word), name, namespace)


def ref(kind: str, name: str, namespace: str = "") -> ObjectRef:
    """A reference; kinds without namespace get none."""
    return ObjectRef(kind=kind, name=name, namespace="" if kind in CLUSTER_SCOPED else namespace)


def shown_ref(named: ObjectRef) -> str:
    """KIND/NAME as the commands take it, with the namespace in front unless it is the usual one."""
    place = f"{named.namespace}/" if named.namespace not in {"", "default"} else ""
    return f"{place}{named.kind.lower()}/{named.name}"


def metadata_of(stored: Object) -> ObjectMeta:
    """The metadata of an object of any kind but PodBatch."""
    metadata = getattr(stored, stored.WhichOneof("kind") or "").metadata
    if not isinstance(metadata, ObjectMeta):
        raise TypeError("an object without metadata")
    return metadata
