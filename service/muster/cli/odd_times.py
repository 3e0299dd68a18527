"""Times that no text can say: a service of an earlier version may have stored Timestamps of no year from 1 to 9999.

JSON has no word for them. They are left out of what is printed, and a note on standard error names each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import click
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muster.cli.kinds import ref, shown_ref
from muster.v1.meta_pb2 import ObjectMeta

_Message = TypeVar("_Message", bound=Message)


def without_odd_times(message: _Message) -> _Message:
    """A copy without the times that cannot be written, each of which is noted."""
    copy = type(message)()
    copy.CopyFrom(message)
    for place in _cleared(copy, ""):
        click.echo(f"note: {place} is a time that cannot be written; it is left out", err=True)
    return copy


def _cleared(message: Message, place: str) -> Iterator[str]:
    """Takes odd times out of a message and tells where each stood, with the path in the innermost object."""
    place = _object(message) or place
    for field, value in message.ListFields():
        path = f"{place}{field.json_name}"
        if isinstance(value, Timestamp):
            if not _can_be_written(value):
                message.ClearField(field.name)
                yield path
        elif isinstance(value, Message):
            yield from _cleared(value, f"{path}.")
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for index, part in enumerate(value):
                yield from _cleared(part, f"{path}[{index}].")


def _object(message: Message) -> str:
    """KIND/NAME of an object, to stand in front of a path; empty for all else."""
    metadata = getattr(message, "metadata", None)
    if not isinstance(metadata, ObjectMeta) or not metadata.name:
        return ""
    return f"{shown_ref(ref(message.DESCRIPTOR.name, metadata.name, metadata.namespace))} "


def _can_be_written(moment: Timestamp) -> bool:
    try:
        moment.ToJsonString()
    except ValueError:
        return False
    return True
