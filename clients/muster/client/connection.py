"""How to reach a server: addresses, TLS, the token, the options of the channel.

Decides nothing about calls. Messages may be as large as the server takes; gRPC's own retry is off, since it gives up
on messages over 256 KiB, and `retry` repeats calls instead.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

PEM = b"-----BEGIN "
DEFAULT_PORT = 50051
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"
MEBIBYTE = 1 << 20
LARGEST_MESSAGE_BYTES = 64 * MEBIBYTE
KEEPALIVE_MILLISECONDS = 20_000

OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    # The server says how much is too much, and its answer names the limit.
    ("grpc.max_send_message_length", 2 * LARGEST_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 64 * 1024),
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_MILLISECONDS // 2),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. Without `ca` the system's roots are trusted; `certificate` and `key` show who the caller is."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Reads the files. Raises OSError, also for what is no PEM."""
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self.ca),
            private_key=_read(self.key),
            certificate_chain=_read(self.certificate),
        )


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a server is, as `host:port` or `unix:///path`, and how it is spoken to: plain text unless `tls` is set."""

    address: str = DEFAULT_ADDRESS
    tls: Tls | None = None
    token: str = ""

    def channel(self) -> grpc.aio.Channel:
        """A new channel; connects when first used."""
        if self.tls is None:
            return grpc.aio.insecure_channel(self.address, options=OPTIONS)
        return grpc.aio.secure_channel(self.address, self.tls.credentials(), options=OPTIONS)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with each call."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()


def _read(path: Path | None) -> bytes | None:
    """The content of a PEM file; of others gRPC says no more than that no server can be reached."""
    if path is None:
        return None
    content = path.read_bytes()
    if PEM not in content:
        raise OSError(errno.EINVAL, "not a PEM file", str(path))
    return content
