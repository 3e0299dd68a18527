"""What takes calls from clients, as far as this service asks: gRPC's server, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import grpc
from grpc import aio

from muster.rpc.addresses import Address, AddressError

MethodHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Options: TypeAlias = Sequence[tuple[str, int]]


class CallServer(Protocol):
    """`register` all methods, `listen` on addresses, `start`, and `stop` once.

    is_serving: whether callers find somebody there, from the start on.
    """

    is_serving: bool

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
        self.is_serving = False
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
        address.refuse_taken()
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
        self.is_serving = True

    async def stop(self, seconds: float) -> None:
        """See CallServer."""
        self.is_serving = False
        await self._server.stop(seconds)
