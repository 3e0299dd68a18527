"""/metrics for Prometheus and /healthz for probes that speak HTTP, on an address of their own; more can be mounted there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app


class _QuietRequests(WSGIRequestHandler):
    """A scrape every few seconds is nothing to write a line about."""

    # Whoever connects and says nothing is not waited for.
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing."""


class _ThreadedServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    # A second server on the same port is a mistake, and must be told.
    allow_reuse_port = False


class MetricsServer:
    """Serves in threads of its own from entering to leaving the context. `address` says where.

    Raises OSError if the address cannot be listened on.
    """

    def __init__(self, address: str, registry: CollectorRegistry, is_serving: Callable[[], bool]) -> None:
        host, _, port = address.rpartition(":")
        self._mounted: dict[str, WSGIApplication] = {}
        app = _application(make_wsgi_app(registry), is_serving, self._mounted)
        try:
            self._server = make_server(
                host.strip("[]") or "0.0.0.0",  # noqa: S104
                int(port),
                app,
                _ThreadedServer,
                _QuietRequests,
            )
        except OSError as error:
            raise OSError(f"cannot serve metrics on {address}: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self.address = f"{host}:{self._server.server_port}"

    def mount(self, prefix: str, app: WSGIApplication) -> None:
        """Let another application answer for a first part of the path (`/console`), in threads of this server."""
        self._mounted[prefix] = app

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _application(
    metrics: WSGIApplication, is_serving: Callable[[], bool], mounted: Mapping[str, WSGIApplication]
) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Metrics, health, what is mounted below the path's first part, or 404 with a list of what there is."""
        path = environ.get("PATH_INFO", "")
        first = "/" + path.removeprefix("/").partition("/")[0]
        if first in mounted:
            return mounted[first](environ, start_response)
        match path:
            case "/metrics":
                return metrics(environ, start_response)
            case "/healthz":
                status, body = (
                    ("200 OK", b"ok\n") if is_serving() else ("503 Service Unavailable", b"draining\n")
                )
            case _:
                status, body = "404 Not Found", _directory(mounted)
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [body]

    return answer


def _directory(mounted: Mapping[str, WSGIApplication]) -> bytes:
    return f"{', '.join(('/metrics', *mounted))} and /healthz are here\n".encode()
