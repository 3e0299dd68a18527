"""What may be said of a server on the command line: where it is, and the token for it.

gRPC would take any text, print lines of its own about one that is none, and refuse the call in words that name no option.
"""

from __future__ import annotations

import os
import re

import click

LONGEST_PATH_BYTES = 107
HIGHEST_PORT = 65_535

_HOST_AND_PORT = re.compile(
    r"(?:dns:///)?(?:\[[0-9a-z:.%]+\]|[^\s:/?#@\[\]]+):(?P<port>[0-9]{1,5})", re.IGNORECASE
)
_SOCKET = re.compile(r"unix:(?://(?=/)|(?!//))(?P<path>[^\x00-\x1f\x7f]+)")
_TOKEN = re.compile(r"[\x20-\x7e]*")


class Address(click.ParamType[str]):
    """HOST:PORT or unix:///path; `dns:///` in front of the host, and a relative `unix:path`, are gRPC's and taken too."""

    name = "address"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is. Raises click.BadParameter."""
        if not _is_host_and_port(value) and not _is_socket(value):
            self.fail(f"{value!r} is neither HOST:PORT nor unix:///path", param, ctx)
        return value


class Token(click.ParamType[str]):
    """What may stand in a header: printable ASCII. A refused token is not shown."""

    name = "token"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it is. Raises click.BadParameter."""
        if not _TOKEN.fullmatch(value):
            self.fail("a token has printable ASCII characters only", param, ctx)
        return value


def _is_host_and_port(text: str) -> bool:
    match = _HOST_AND_PORT.fullmatch(text)
    return match is not None and 0 < int(match["port"]) <= HIGHEST_PORT


def _is_socket(text: str) -> bool:
    match = _SOCKET.fullmatch(text)
    return match is not None and len(os.fsencode(match["path"])) <= LONGEST_PATH_BYTES
