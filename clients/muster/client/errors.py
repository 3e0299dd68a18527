"""What the server refused and why, as exceptions with the details of the gRPC status.

Decides how a status is read; whether a call is repeated is `retry`'s. "Unschedulable" is an outcome and never here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

STATUS_KEY = "grpc-status-details-bin"
TOO_MANY_CALLS = "TOO_MANY_CALLS"
MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
"""The one reason that is the client's own: gRPC refuses such a message without asking the server."""
_TOO_LARGE = re.compile(r"message larger than max \((?P<size>\d+) vs\. (?P<most>\d+)\)")

_Detail = TypeVar("_Detail", bound=Message)


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request: the JSON path in it, a word such as REQUIRED, and the text."""

    field: str
    reason: str
    description: str


@dataclass(frozen=True, slots=True)
class Precondition:
    """One condition that did not hold: its type, the object concerned, and the text."""

    type: str
    subject: str
    description: str


@dataclass(frozen=True, slots=True)
class Resource:
    """One object that a call is about and that was not found."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """All that a status says beside its code and message; empty where the server said nothing.

    `metadata` has `violations_total` and `violations_shown` where violations were left out.
    """

    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    resources: tuple[Resource, ...] = ()
    retry_after_seconds: float | None = None


class MusterError(Exception):
    """A call that did not succeed. Codes without a class of their own are plain MusterErrors."""

    def __init__(self, code: grpc.StatusCode, message: str, details: ErrorDetails | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details or ErrorDetails()

    @property
    def reason(self) -> str:
        """The word of the server's table, such as RESOURCE_VERSION_MISMATCH; empty if none came."""
        return self.details.reason

    def __str__(self) -> str:
        return f"{self.code.name}{f' ({self.reason})' if self.reason else ''}: {self.message}"


class InvalidArgumentError(MusterError):
    """The request is wrong: `details.violations` says where."""


class NotFoundError(MusterError):
    """An object, cluster or decision does not exist: `details.resources` names it."""


class ConflictError(MusterError):
    """Something changed since the caller read it: read again, then repeat. `details.preconditions` names the objects."""


class FailedPreconditionError(MusterError):
    """The state does not allow the call."""


class OutOfRangeError(MusterError):
    """A revision is compacted away or in the future."""


class ResourceExhaustedError(MusterError):
    """A limit of the server is reached, or a watcher was too slow."""


class UnavailableError(MusterError):
    """The server cannot be reached, or not now."""


class UnimplementedError(MusterError):
    """This server does not do that."""


_CLASSES: dict[grpc.StatusCode, type[MusterError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ABORTED: ConflictError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRangeError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
}


def error_of(error: grpc.aio.AioRpcError) -> MusterError:
    """The typed form of what grpc raised."""
    status = _status(error)
    message = error.details() or "no message"
    too_large = _TOO_LARGE.search(message) if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED else None
    if too_large is not None and not status.details:
        return _too_large(int(too_large["size"]), int(too_large["most"]))
    return _CLASSES.get(error.code(), MusterError)(error.code(), message, _details(status))


def _too_large(size: int, most: int) -> MusterError:
    """A message that gRPC itself refuses, before the server has seen it and could give a reason."""
    text = f"a message of {size:,} bytes is larger than the {most:,} that are taken; send it in several calls"
    return ResourceExhaustedError(
        grpc.StatusCode.RESOURCE_EXHAUSTED, text, ErrorDetails(reason=MESSAGE_TOO_LARGE)
    )


def _status(error: grpc.aio.AioRpcError) -> Status:
    for key, value in error.trailing_metadata() or ():
        if key == STATUS_KEY and isinstance(value, bytes):
            try:
                return Status.FromString(value)
            except DecodeError:
                break
    return Status()


def _details(status: Status) -> ErrorDetails:
    info = next(_of_type(status, ErrorInfo), ErrorInfo())
    retry = next(_of_type(status, RetryInfo), None)
    return ErrorDetails(
        reason=info.reason,
        metadata=dict(info.metadata),
        violations=tuple(
            Violation(each.field, each.reason, each.description)
            for detail in _of_type(status, BadRequest)
            for each in detail.field_violations
        ),
        preconditions=tuple(
            Precondition(each.type, each.subject, each.description)
            for detail in _of_type(status, PreconditionFailure)
            for each in detail.violations
        ),
        resources=tuple(
            Resource(each.resource_type, each.resource_name) for each in _of_type(status, ResourceInfo)
        ),
        retry_after_seconds=None if retry is None else retry.retry_delay.ToTimedelta().total_seconds(),
    )


def _of_type(status: Status, kind: type[_Detail]) -> Iterator[_Detail]:
    for packed in status.details:
        if packed.TypeName() == kind.DESCRIPTOR.full_name:
            detail = kind()
            packed.Unpack(detail)
            yield detail
