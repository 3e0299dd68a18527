"""Who may call what: tokens from a file, each with a role.

Decides nothing while no tokens are configured. A client certificate proves the peer to TLS and gives no role.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from muster.rpc.refusals import PermissionDeniedError, UnauthenticatedError


class Role(IntEnum):
    """Each role may do all that the ones before it may."""

    READER = 1
    WRITER = 2
    ADMIN = 3


# Methods that are not named here need no more than to read.
REQUIRED_ROLES = {
    "Apply": Role.WRITER,
    "ApplyStream": Role.WRITER,
    "Delete": Role.WRITER,
    "ReportPods": Role.WRITER,
    "Schedule": Role.WRITER,
    "Preempt": Role.WRITER,
    "DeleteCluster": Role.ADMIN,
}


class TokenFileError(Exception):
    """The token file cannot be read or has a line that is no `name, token, role`."""


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    role: Role


class Tokens:
    """Callers by the digest of their token, so that a lookup takes the same time for every wrong token."""

    def __init__(self, callers: dict[bytes, Caller]) -> None:
        self._callers = callers

    def check(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """The caller of `method` (its bare name). Raises UnauthenticatedError, PermissionDeniedError."""
        caller = self._callers.get(_digest(_bearer(metadata)))
        if caller is None:
            raise UnauthenticatedError("TOKEN_UNKNOWN", "the token is not known to this server")
        required = REQUIRED_ROLES.get(method, Role.READER)
        if caller.role < required:
            raise PermissionDeniedError(
                "ROLE_REQUIRED",
                f"{method} needs the role {required.name.lower()}, {caller.name} is {caller.role.name.lower()}",
                role=caller.role.name.lower(),
                required_role=required.name.lower(),
            )
        return caller


def read_tokens(path: Path) -> Tokens:
    """Tokens from a file with `name, token, role` a line; blank lines and lines that begin with # are skipped.

    Raises TokenFileError.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"the token file {path} cannot be read: {error}") from error
    callers = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            fields = [part.strip() for part in (line.split(",") if "," in line else line.split())]
            token, caller = _entry(fields, f"{path}:{number}")
            callers[_digest(token)] = caller
    if not callers:
        raise TokenFileError(f"the token file {path} holds no token")
    return Tokens(callers)


def _entry(fields: Sequence[str], where: str) -> tuple[str, Caller]:
    roles = {role.name.lower(): role for role in Role}
    match fields:
        case [name, token, role] if name and token and role in roles:
            return token, Caller(name, roles[role])
        case [_, _, role] if role not in roles:
            raise TokenFileError(f"{where}: the role is one of {', '.join(roles)}")
        case _:
            raise TokenFileError(f"{where}: a line is `name, token, role`")


def _bearer(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    for key, value in metadata:
        if key == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    raise UnauthenticatedError("TOKEN_REQUIRED", "send the metadata `authorization: Bearer TOKEN`")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
