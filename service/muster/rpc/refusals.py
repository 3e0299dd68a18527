"""Refusals that only the RPC layer knows: of identity, role, time and its own faults. All others are the engine's."""

from __future__ import annotations

from muster.engine.errors import Refusal


class UnauthenticatedError(Refusal):
    """UNAUTHENTICATED: TOKEN_REQUIRED, TOKEN_UNKNOWN."""


class PermissionDeniedError(Refusal):
    """PERMISSION_DENIED: ROLE_REQUIRED (metadata role, required_role)."""


class DeadlineError(Refusal):
    """DEADLINE_EXCEEDED: DEFAULT_DEADLINE, for a call that named no deadline of its own (metadata seconds)."""


class InternalError(Refusal):
    """INTERNAL: an exception that nobody foresaw; the log has it under metadata error_id."""
