"""What a server listens on, and whether it can: gRPC tells that in a log of its own, never says why, and takes sockets away."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

SOCKET_PROBE_SECONDS = 1.0


class AddressError(Exception):
    """An address cannot be listened on; the message says which, and why."""


class Credentials(NamedTuple):
    """PEM texts; with `authority` a client must show a certificate that it signed."""

    key: bytes
    certificates: bytes
    authority: bytes | None


class Address(NamedTuple):
    """HOST:PORT, where port 0 picks one, with what a server shows there; or unix:PATH with its permissions."""

    text: str
    credentials: Credentials | None = None
    mode: int | None = None

    @property
    def path(self) -> Path | None:
        """Of the socket's file; None for a port."""
        _, unix, path = self.text.partition("unix:")
        return Path(path) if unix else None

    def called(self, port: int) -> str:
        """What clients call it by."""
        if self.path is None:
            return f"{self.text.rpartition(':')[0]}:{port}"
        return f"unix://{self.path.absolute()}"

    def refuse_taken(self) -> None:
        """Raise AddressError if somebody else listens there, or nobody can."""
        if self.path is None:
            _try_port(self.text)
        else:
            _try_path(self.path)


def _try_port(address: str) -> None:
    """Bind it and let it go again."""
    parts = urlsplit(f"//{address}")
    reasons: list[str] = []
    try:
        found = socket.getaddrinfo(
            parts.hostname, parts.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, where in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(where)
                except OSError as error:
                    reasons.append(error.strerror or str(error))
                else:
                    return
    except OSError as error:
        reasons.append(error.strerror or str(error))
    raise AddressError(f"cannot listen on {address}: {', '.join(dict.fromkeys(reasons))}")


def _try_path(path: Path) -> None:
    if _answers(path):
        raise AddressError(f"cannot listen on {path}: another server does")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise AddressError(f"cannot listen on {path}: there is no folder {folder}")


def _answers(path: Path) -> bool:
    """Whether somebody listens on the socket; a file that a dead server left behind answers nobody."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(SOCKET_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
