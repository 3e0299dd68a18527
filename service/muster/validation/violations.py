"""One fault in a request, in the form that errors carry (google.rpc.BadRequest.FieldViolation)."""

from __future__ import annotations

from typing import NamedTuple

REQUIRED = "REQUIRED"
INVALID = "INVALID"
IMMUTABLE = "IMMUTABLE"
DUPLICATE = "DUPLICATE"
TOO_MANY = "TOO_MANY"
NOT_SUPPORTED = "NOT_SUPPORTED"


class Violation(NamedTuple):
    """`field` is a JSON path (manifest spelling, `spec.schedulingPolicy.gang.minCount`), `reason` one of the words above."""

    field: str
    reason: str
    description: str
