"""What takes calls from clients, as far as this service asks: gRPC's server, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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


class CallServer(Protocol):
    """`register` all methods, `listen` on addresses, `start`, and `stop` once."""

    def register(
        self, service: str, handlers: Mapping[str, MethodHandler], known: Collection[str] = ()
    ) -> None:
        """Serve the methods of a service; those that are `known` by name are looked up one by one, which pays for frequent ones."""
        ...

    async def listen(self, address: str, credentials: Credentials | None = None) -> int:
        """Take an address (HOST:PORT, port 0 picks one, or unix:PATH), and return the port, 1 for a path. Raises AddressError."""
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

    async def listen(self, address: str, credentials: Credentials | None = None) -> int:
        """See CallServer."""
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            key, certificates, authority = credentials
            shown = grpc.ssl_server_credentials([(key, certificates)], authority, authority is not None)
            return self._server.add_secure_port(address, shown)
        except RuntimeError as error:
            raise AddressError(f"cannot listen on {address}: {error}") from error

    async def start(self) -> None:
        """See CallServer."""
        await self._server.start()

    async def stop(self, seconds: float) -> None:
        """See CallServer."""
        await self._server.stop(seconds)
