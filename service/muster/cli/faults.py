"""Errors for people: one block that says what is wrong, with every violation, and what may be done.

Decides words and layout; exit statuses are `session`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from muster.client.errors import MusterError, UnavailableError
from muster.client.manifests import ManifestError

_OBJECT_INDEX = re.compile(r"^objects\[(\d+)\]")


def explained(error: Exception, server: str = "", origins: Sequence[str] = ()) -> str:
    """The block for an error of the client library; `origins` say where the objects of the request stand."""
    if isinstance(error, ManifestError):
        return "\n".join(_manifest_lines(error))
    if isinstance(error, MusterError):
        return "\n".join(_status_lines(error, server, origins))
    return f"Error: {error}"


def _manifest_lines(error: ManifestError) -> Iterator[str]:
    count = len(error.faults)
    yield f"Error: the manifests have {count} {'fault' if count == 1 else 'faults'}; nothing was sent"
    for fault in error.faults:
        yield f"  {fault.field} ({fault.origin})"
        yield f"    {fault.description}"


def _status_lines(error: MusterError, server: str, origins: Sequence[str]) -> Iterator[str]:
    yield f"Error: {error}"
    if isinstance(error, UnavailableError) and not error.reason and server:
        # With a reason a server has spoken, so there is one.
        yield f"  is a server at {server}? `muster serve` starts one, --server or MUSTER_SERVER names another"
    details = error.details
    for violation in details.violations:
        yield f"  {violation.field or 'request'}{_origin(violation.field, origins)}"
        yield f"    {violation.reason}: {violation.description}"
    for precondition in details.preconditions:
        yield f"  {precondition.subject}"
        yield f"    {precondition.type}: {precondition.description}"
    for resource in details.resources:
        named = (
            resource.name if resource.name.startswith(resource.type) else f"{resource.type} {resource.name}"
        )
        if named not in error.message:
            yield f"  {named}"
    left_out = int(details.metadata.get("violations_total", 0)) - int(
        details.metadata.get("violations_shown", 0)
    )
    if left_out > 0:
        yield f"  and {left_out} more"


def _origin(field: str, origins: Sequence[str]) -> str:
    match = _OBJECT_INDEX.match(field)
    index = int(match[1]) if match else len(origins)
    return f" ({origins[index]})" if index < len(origins) else ""
