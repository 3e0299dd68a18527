"""Walks messages by their descriptors, so that a field that is added to a proto is tested without a new test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

Path = tuple[FieldDescriptor, ...]

TIMESTAMP = "google.protobuf.Timestamp"
SCALARS: dict[int, object] = {
    FieldDescriptor.CPPTYPE_STRING: "x",
    FieldDescriptor.CPPTYPE_INT32: 3,
    FieldDescriptor.CPPTYPE_INT64: 3,
    FieldDescriptor.CPPTYPE_BOOL: True,
}


def leaf_paths(descriptor: Descriptor, above: Path = ()) -> Iterator[Path]:
    """Paths to all fields that hold no message, to maps, times and messages without fields; recursion is cut at one turn."""
    for field in descriptor.fields:
        kind = field.message_type
        path = (*above, field)
        if kind is None or kind.full_name == TIMESTAMP or kind.GetOptions().map_entry or not kind.fields:
            yield path
        elif sum(each.message_type is kind for each in above) < 2:
            yield from leaf_paths(kind, path)


def shown(path: Path) -> str:
    return ".".join(field.name for field in path)


def write(message: Message, path: Path) -> None:
    """Set the field at the end of the path, and what is above it, to something that is not its default."""
    *above, last = path
    holder = reduce(_enter, above, message)
    kind = last.message_type
    if kind is None and last.is_repeated:
        getattr(holder, last.name).append(SCALARS[last.cpp_type])
    elif kind is None:
        setattr(holder, last.name, SCALARS[last.cpp_type])
    elif kind.GetOptions().map_entry:
        getattr(holder, last.name)["k"] = "v"
    elif kind.full_name == TIMESTAMP:
        getattr(holder, last.name).MergeFrom(type(getattr(holder, last.name))(seconds=5, nanos=7000))
    else:
        getattr(holder, last.name).SetInParent()


def read(message: Message, path: Path) -> object:
    """What stands at the end of the path; None where something above it is missing."""
    *above, last = path
    holder: Any = message
    for field in above:
        inside = getattr(holder, field.name)
        if field.is_repeated and not inside:
            return None
        holder = inside[0] if field.is_repeated else inside
    value = getattr(holder, last.name)
    if last.message_type is not None and not last.is_repeated:
        return holder.HasField(last.name) and value.SerializeToString()
    if last.message_type is not None:
        return dict(value)
    return list(value) if last.is_repeated else value


def _enter(holder: Any, field: FieldDescriptor) -> Any:
    inside = getattr(holder, field.name)
    return inside.add() if field.is_repeated else inside
