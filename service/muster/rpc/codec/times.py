"""Times: microseconds since the epoch in the model, google.protobuf.Timestamp and Duration on the wire."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_MICROSECONDS = 1_000_000


def to_timestamp(us: int) -> Timestamp:
    """The moment as a message; negative ones are before the epoch."""
    return Timestamp(seconds=us // _MICROSECONDS, nanos=us % _MICROSECONDS * 1000)


def to_duration(us: int) -> Duration:
    """A length of time, 0 or more, as a message."""
    return Duration(seconds=us // _MICROSECONDS, nanos=us % _MICROSECONDS * 1000)


def from_timestamp(moment: Timestamp) -> int:
    """Microseconds since the epoch; what is finer is cut off."""
    return moment.seconds * _MICROSECONDS + moment.nanos // 1000
