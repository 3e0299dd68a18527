"""What the RPC layer tells about its calls, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Metadata = Iterable[tuple[str, str | bytes]]


class RpcTelemetry(Protocol):
    """All methods are called on the event loop and must be quick; `method` is the bare name of an RPC."""

    def rpc_started(self, method: str) -> None: ...

    def rpc_ended(self, method: str, code: str, seconds: float) -> None:
        """`code` is the name of the gRPC status, CANCELLED for a caller that left."""
        ...

    def refused(self, method: str, reason: str) -> None: ...

    def watch_opened(self, method: str) -> None: ...

    def watch_closed(self, method: str) -> None: ...

    def receiver_restarted(self) -> None:
        """A receiver died, and another one is about to take its place."""
        ...

    def caller_trace(self, metadata: Callable[[], Metadata | None]) -> AbstractContextManager[None]:
        """Makes the caller's W3C trace context (metadata `traceparent`) the current one inside.

        `metadata` gets the call's metadata, which takes long enough not to be asked for in vain.
        """
        ...


class NullRpcTelemetry:
    """Hears nothing."""

    def rpc_started(self, method: str) -> None:
        """Ignore the call."""

    def rpc_ended(self, method: str, code: str, seconds: float) -> None:
        """Ignore its end."""

    def refused(self, method: str, reason: str) -> None:
        """Ignore the refusal."""

    def watch_opened(self, method: str) -> None:
        """Ignore the watch."""

    def watch_closed(self, method: str) -> None:
        """Ignore its end."""

    def receiver_restarted(self) -> None:
        """Ignore the restart."""

    def caller_trace(self, metadata: Callable[[], Metadata | None]) -> AbstractContextManager[None]:
        """Leave the current trace context as it is."""
        return nullcontext()
