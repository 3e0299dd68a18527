"""What the engine refuses, and why: one exception a gRPC code; `rpc.errors` has the table that turns them into statuses.

"Unschedulable" is a result and never among these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.validation.violations import Violation


class Precondition(NamedTuple):
    """One object that stands in the way: `subject` is "Kind namespace/name", `type` the ErrorInfo reason."""

    type: str
    subject: str
    description: str


class Refusal(Exception):  # noqa: N818 - the base of errors that have the suffix
    """A request that cannot be served. `reason` is a value of the API's error table (ErrorInfo.reason)."""

    def __init__(self, reason: str, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = metadata


class InvalidArgumentError(Refusal):
    """INVALID_ARGUMENT: INVALID_OBJECTS, INVALID_REQUEST, TOO_MANY_OBJECTS, LIMIT_EXCEEDED, REQUEST_ID_REUSED, PAGE_TOKEN_MISMATCH."""

    def __init__(
        self, reason: str, message: str, violations: Sequence[Violation] = (), **metadata: str
    ) -> None:
        super().__init__(reason, message, **metadata)
        self.violations = list(violations)


class NotFoundError(Refusal):
    """NOT_FOUND: OBJECT_NOT_FOUND, CLUSTER_NOT_FOUND, DECISION_NOT_FOUND, DECISION_COMPACTED.

    `resources` are (resource type, resource name) of all that is missing.
    """

    def __init__(
        self, reason: str, message: str, resources: Sequence[tuple[str, str]] = (), **metadata: str
    ) -> None:
        super().__init__(reason, message, **metadata)
        self.resources = list(resources)


class ConflictError(Refusal):
    """ABORTED: RESOURCE_VERSION_MISMATCH, UID_MISMATCH; names every object concerned; read again and retry."""

    def __init__(
        self, reason: str, message: str, preconditions: Sequence[Precondition] = (), **metadata: str
    ) -> None:
        super().__init__(reason, message, **metadata)
        self.preconditions = list(preconditions)


class FailedPreconditionError(ConflictError):
    """FAILED_PRECONDITION: FOREIGN_SCHEDULER, CLUSTER_DELETING, OBJECT_DELETING, ARGUMENT_STATE."""


class OutOfRangeError(Refusal):
    """OUT_OF_RANGE: REVISION_COMPACTED (metadata oldest_revision), REVISION_IN_FUTURE (metadata current_revision)."""


class ResourceExhaustedError(Refusal):
    """RESOURCE_EXHAUSTED: WATCHER_TOO_SLOW, TOO_MANY_WATCHES, TOO_MANY_CALLS. Carries RetryInfo."""


class UnavailableError(Refusal):
    """UNAVAILABLE: SERVER_DRAINING, NO_CLUSTER_OWNER, STORE_UNAVAILABLE. Carries RetryInfo."""
