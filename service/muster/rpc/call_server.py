"""What takes calls from clients, as far as this service asks: gRPC's server, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import grpc
from grpc import aio

MethodHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Options: TypeAlias = Sequence[tuple[str, int]]


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


class CallServer(Protocol):
    """`register` all methods, `listen` on addresses, `start`, and `stop` once."""

    def register(
        self, service: str, handlers: Mapping[str, MethodHandler], known: Collection[str] = ()
    ) -> None:
        """Serve the methods of a service; those that are `known` by name are looked up one by one, which pays for frequent ones."""
        ...

    async def listen(self, address: Address) -> int:
        """Take an address, and return its port, 1 for a path. Raises AddressError."""
        ...

    async def start(self) -> None:
        """Begin to take calls."""
        ...

    async def stop(self, seconds: float) -> None:
        """Take no more calls, and cancel those that are in work after so long."""
        ...


class InProcessServer:
    """gRPC's server on the event loop of this process."""

    def __init__(self, options: Options) -> None:
        self._server = aio.server(options=options)

    def register(
        self, service: str, handlers: Mapping[str, MethodHandler], known: Collection[str] = ()
    ) -> None:
        """See CallServer."""
        by_name = {method: handler for method, handler in handlers.items() if method in known}
        self._server.add_registered_method_handlers(service, by_name)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, dict(handlers)),)
        )

    async def listen(self, address: Address) -> int:
        """See CallServer."""
        try:
            port = self._bind(address)
            if address.path is not None and address.mode is not None:
                address.path.chmod(address.mode)
        except (RuntimeError, OSError) as error:
            raise AddressError(f"cannot listen on {address.text}: {error}") from error
        return port

    def _bind(self, address: Address) -> int:
        if address.credentials is None:
            return self._server.add_insecure_port(address.text)
        key, certificates, authority = address.credentials
        shown = grpc.ssl_server_credentials([(key, certificates)], authority, authority is not None)
        return self._server.add_secure_port(address.text, shown)

    async def start(self) -> None:
        """See CallServer."""
        await self._server.start()

    async def stop(self, seconds: float) -> None:
        """See CallServer."""
        await self._server.stop(seconds)
