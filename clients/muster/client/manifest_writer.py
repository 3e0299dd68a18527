"""Muster's objects to Kubernetes manifests, so that what was read from the server can be applied again.

The inverse of `manifests`: the same tables, the same descriptors. Applying what was written changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muster.client.manifest_documents import CORE_SCHEMA
from muster.client.manifest_fields import INT_OR_STRINGS, is_repeated
from muster.client.manifest_kinds import KINDS, WRITTEN_VERSIONS
from muster.v1.object_pb2 import Object

# Kubernetes writes the version of an object as text.
WRITTEN_AS_TEXT = frozenset({"muster.v1.ObjectMeta.resource_version"})
OCTAL = re.compile(r"^0o[0-7]+$")
UNSIGNED = re.compile(r"[0-9]+")


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper that quotes what any reader, of YAML 1.1 or 1.2, could take for something but text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


for _tag, _pattern, _first in (*CORE_SCHEMA, ("tag:yaml.org,2002:int", OCTAL, ["0"])):
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)


def document_of(stored: Object) -> dict[str, object]:
    """The manifest of an object as a mapping, in the usual order of keys. Raises ValueError for a PodBatch."""
    field = stored.WhichOneof("kind")
    if field is None or field not in KINDS:
        raise ValueError(f"{field or 'an empty object'} has no manifest")
    kind = KINDS[field]
    body = _mapping(getattr(stored, field))
    return {"apiVersion": WRITTEN_VERSIONS[kind], "kind": kind, **body}


def write_manifests(objects: Iterable[Object]) -> str:
    """YAML with one document an object."""
    return yaml.dump_all(
        map(document_of, objects),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        explicit_start=True,
        allow_unicode=True,
    )


def _mapping(message: Message) -> dict[str, object]:
    return {field.json_name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> object:  # noqa: ANN401 - a message's fields have no static type
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return {key: value[key] for key in sorted(value)}
    if is_repeated(field):
        return [_single(field, element) for element in value]
    return _single(field, value)


def _single(field: FieldDescriptor, value: Any) -> object:  # noqa: ANN401
    if isinstance(value, Timestamp):
        return value.ToJsonString()
    if isinstance(value, Message):
        return _mapping(value)
    if field.full_name in WRITTEN_AS_TEXT:
        return str(value)
    if field.full_name in INT_OR_STRINGS and UNSIGNED.fullmatch(value):
        return int(value)
    return value
