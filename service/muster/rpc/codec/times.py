"""Times: microseconds since the epoch in the model, google.protobuf.Timestamp and Duration on the wire."""

from __future__ import annotations

from decimal import Decimal

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_MICROSECONDS = 1_000_000
_MOST_NANOS = 999_999_999


def to_timestamp(us: int) -> Timestamp:
    """The moment as a message; negative ones are before the epoch."""
    moment = Timestamp()
    write_time(us, moment)
    return moment


def write_time(us: int, message: Timestamp | Duration) -> None:
    """A moment or a length of time, into a message."""
    message.seconds, us = divmod(us, _MICROSECONDS)
    message.nanos = us * 1000


def from_timestamp(moment: Timestamp) -> int:
    """Microseconds since the epoch; what is finer is cut off."""
    return moment.seconds * _MICROSECONDS + moment.nanos // 1000


def nanos_fault(moment: Timestamp) -> str | None:
    """What keeps a message from being a moment, but for its year, in words that complete "... must ..."."""
    if 0 <= moment.nanos <= _MOST_NANOS:
        return None
    return f"have nanos from 0 to {_MOST_NANOS}, not {moment.nanos}"


def exact_seconds(length: Duration) -> Decimal:
    """A length of time in seconds, of which nothing is cut off."""
    return Decimal(length.seconds) + Decimal(length.nanos).scaleb(-9)


def seconds_text(length: Duration) -> str:
    """The same with as many digits as it takes: 600, 600.000000001."""
    return f"{exact_seconds(length).normalize():f}"


def duration_fault(length: Duration) -> str | None:
    """What keeps a message from being a length of time, in words that complete "... must ..."."""
    if abs(length.nanos) > _MOST_NANOS:
        return f"have nanos from -{_MOST_NANOS} to {_MOST_NANOS}, not {length.nanos}"
    if length.seconds * length.nanos < 0:
        return f"have seconds and nanos of one sign, not {length.seconds} and {length.nanos}"
    return None
