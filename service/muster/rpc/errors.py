"""What a refusal looks like on the wire: ONE table from exceptions to gRPC statuses with google.rpc details.

Decides codes, details and their size; what is refused, and with which words, is for those who raise. Every
error carries ErrorInfo of domain "muster"; of an unexpected exception nothing leaves the process but its log id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from muster.engine.errors import (
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    Refusal,
    ResourceExhaustedError,
    UnavailableError,
)
from muster.engine.ports import FencedError, StoreUnavailableError
from muster.rpc.refusals import DeadlineError, InternalError, PermissionDeniedError, UnauthenticatedError

DOMAIN = "muster"
STATUS_KEY = "grpc-status-details-bin"
VIOLATIONS_BYTES = 6 * 1024
TRAILER_BYTES = 8 * 1024
MESSAGE_BYTES = 512
FIELD_BYTES = 512
DESCRIPTION_BYTES = 1024
METADATA_BYTES = 256
# What keys, the code and HTTP/2's 32 bytes an entry take of the trailing metadata.
ENVELOPE_BYTES = 256

RETRY_MILLISECONDS = {"TOO_MANY_CALLS": 100, "TOO_MANY_WATCHES": 5_000, "SERVER_DRAINING": 500}
RETRY_DEFAULT_MILLISECONDS = 1_000

_log = logging.getLogger(__name__)


class WireError(NamedTuple):
    """What `context.abort` takes."""

    code: grpc.StatusCode
    message: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def _field_violations(refusal: Refusal) -> list[Message]:
    violations = refusal.violations if isinstance(refusal, InvalidArgumentError) else []
    return [
        error_details_pb2.BadRequest.FieldViolation(
            field=_cut(field, FIELD_BYTES), reason=reason, description=_cut(description, DESCRIPTION_BYTES)
        )
        for field, reason, description in violations
    ]


def _precondition_violations(refusal: Refusal) -> list[Message]:
    preconditions = refusal.preconditions if isinstance(refusal, ConflictError) else []
    return [
        error_details_pb2.PreconditionFailure.Violation(
            type=each.type,
            subject=_cut(each.subject, FIELD_BYTES),
            description=_cut(each.description, DESCRIPTION_BYTES),
        )
        for each in preconditions
    ]


def _resources(refusal: Refusal) -> list[Message]:
    resources = refusal.resources if isinstance(refusal, NotFoundError) else []
    return [
        error_details_pb2.ResourceInfo(
            resource_type=kind, resource_name=_cut(name, FIELD_BYTES), description=f"{kind} does not exist"
        )
        for kind, name in resources
    ]


def _bad_request(shown: Sequence[Any]) -> list[Message]:
    return [error_details_pb2.BadRequest(field_violations=shown)]


def _precondition_failure(shown: Sequence[Any]) -> list[Message]:
    return [error_details_pb2.PreconditionFailure(violations=shown)]


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table: `faults` are listed one by one while they fit, `wrap` makes details of those shown."""

    code: grpc.StatusCode
    faults: Callable[[Refusal], list[Message]] = lambda _: []
    wrap: Callable[[Sequence[Any]], list[Message]] = list
    retry: bool = False


# Looked up along the exception's class hierarchy, the nearest class first.
TABLE: dict[type[Refusal], _Row] = {
    InvalidArgumentError: _Row(grpc.StatusCode.INVALID_ARGUMENT, _field_violations, _bad_request),
    NotFoundError: _Row(grpc.StatusCode.NOT_FOUND, _resources),
    ConflictError: _Row(grpc.StatusCode.ABORTED, _precondition_violations, _precondition_failure),
    FailedPreconditionError: _Row(
        grpc.StatusCode.FAILED_PRECONDITION, _precondition_violations, _precondition_failure
    ),
    OutOfRangeError: _Row(grpc.StatusCode.OUT_OF_RANGE),
    ResourceExhaustedError: _Row(grpc.StatusCode.RESOURCE_EXHAUSTED, retry=True),
    UnavailableError: _Row(grpc.StatusCode.UNAVAILABLE, retry=True),
    UnauthenticatedError: _Row(grpc.StatusCode.UNAUTHENTICATED),
    PermissionDeniedError: _Row(grpc.StatusCode.PERMISSION_DENIED),
    DeadlineError: _Row(grpc.StatusCode.DEADLINE_EXCEEDED),
    InternalError: _Row(grpc.StatusCode.INTERNAL),
}


def as_refusal(error: Exception, method: str) -> Refusal:
    """The refusal that a caller of `method` sees for any exception; an unexpected one is logged with its traceback."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StoreUnavailableError):
        _log.warning("the store is unavailable", extra={"method": method, "error": str(error)})
        return UnavailableError(
            "STORE_UNAVAILABLE", "the store does not take writes at the moment; try again"
        )
    if isinstance(error, FencedError):
        return UnavailableError("NO_CLUSTER_OWNER", "another process owns the cluster now; try again")
    error_id = secrets.token_hex(8)
    _log.error("unexpected exception", exc_info=error, extra={"method": method, "error_id": error_id})
    return InternalError(
        "INTERNAL", f"internal error; the server's log has it under {error_id}", error_id=error_id
    )


def to_wire(refusal: Refusal) -> WireError:
    """The status of a refusal: ErrorInfo first, then the matching details, never over TRAILER_BYTES in all."""
    row = next(TABLE[base] for base in type(refusal).__mro__ if base in TABLE)
    message = _cut(refusal.message, MESSAGE_BYTES)
    faults = row.faults(refusal)
    room = TRAILER_BYTES - ENVELOPE_BYTES - len(quote(message)) - MESSAGE_BYTES
    room -= _error_info(refusal, len(faults), len(faults)).ByteSize() + 64
    shown = _fitting(faults, min(VIOLATIONS_BYTES, room))
    details: list[Message] = [_error_info(refusal, len(faults), len(shown))]
    details += row.wrap(shown) if shown else []
    if row.retry:
        details.append(_retry_info(refusal.reason))
    status = Status(code=row.code.value[0], message=message, details=[_packed(each) for each in details])
    return WireError(row.code, message, ((STATUS_KEY, status.SerializeToString()),))


def _error_info(refusal: Refusal, total: int, shown: int) -> error_details_pb2.ErrorInfo:
    metadata = {key: _cut(str(value), METADATA_BYTES) for key, value in refusal.metadata.items()}
    if total:
        metadata |= {"violations_total": str(total), "violations_shown": str(shown)}
    return error_details_pb2.ErrorInfo(reason=refusal.reason, domain=DOMAIN, metadata=metadata)


def _retry_info(reason: str) -> error_details_pb2.RetryInfo:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(RETRY_MILLISECONDS.get(reason, RETRY_DEFAULT_MILLISECONDS))
    return retry


def _fitting(faults: list[Message], room: int) -> list[Message]:
    """The longest head of `faults` whose encoding, tags, lengths and type URLs included, stays within `room` bytes."""
    for count, fault in enumerate(faults):
        # ResourceInfo is packed one by one: its type URL costs more than the tag and length of a nested message.
        overhead = 64 if isinstance(fault, error_details_pb2.ResourceInfo) else 4
        room -= fault.ByteSize() + overhead
        if room < 0:
            return faults[:count]
    return faults


def _packed(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed


def _cut(text: str, limit: int) -> str:
    """The text, shortened to at most `limit` bytes of UTF-8 and marked so if it is longer."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    return encoded[: limit - 3].decode(errors="ignore") + "…"
