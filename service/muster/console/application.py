"""The console on HTTP: its files to everybody, what they show to whom the API would show it.

Nothing can be changed from here: GET and HEAD alone are answered. A browser runs no script and loads nothing that is
not one of these files, whatever an object holds, and no other site may frame the pages or read the answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import grpc
import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from muster.console.bridge import Bridge
from muster.console.pages import Page, read_pages
from muster.console.views import Views
from muster.engine.errors import InvalidArgumentError, Refusal
from muster.rpc.errors import to_wire
from muster.rpc.reading import Reading

PREFIX = "/console"
API = "api/"
JSON = "application/json"
MOST_VIOLATIONS = 20
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = [
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]
STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT: "400 Bad Request",
    grpc.StatusCode.UNAUTHENTICATED: "401 Unauthorized",
    grpc.StatusCode.PERMISSION_DENIED: "403 Forbidden",
    grpc.StatusCode.NOT_FOUND: "404 Not Found",
    grpc.StatusCode.FAILED_PRECONDITION: "409 Conflict",
    grpc.StatusCode.OUT_OF_RANGE: "410 Gone",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "429 Too Many Requests",
    grpc.StatusCode.UNAVAILABLE: "503 Service Unavailable",
    grpc.StatusCode.DEADLINE_EXCEEDED: "504 Gateway Timeout",
}
_Answer = tuple[str, list[tuple[str, str]], bytes]


def console(
    reading: Reading, loop: asyncio.AbstractEventLoop, hosts: Collection[str] = ()
) -> WSGIApplication:
    """The console of a service that answers on this loop; mounted at `PREFIX`, asked in other threads.

    hosts: the names it answers to; none for every name. Without them another site could have its own name lead here,
    and a browser would let it read the answers.
    """
    return _Console(Views(reading), Bridge(loop), read_pages(), hosts)


def closed_console(why: str) -> WSGIApplication:
    """What stands in the console's place where it must not be served."""
    body = f"the console is not served: {why}\n".encode()

    def answer(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [body]

    return answer


class _Console:
    def __init__(
        self, views: Views, bridge: Bridge, pages: Mapping[str, Page], hosts: Collection[str]
    ) -> None:
        self._hosts = hosts
        self._views = views
        self._bridge = bridge
        self._pages = pages

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        start_response(status, [*HEADERS, *headers, ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: WSGIEnvironment) -> _Answer:
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return "405 Method Not Allowed", [("Allow", "GET, HEAD"), *_text()], b"GET and HEAD alone\n"
        if self._hosts and _host(environ.get("HTTP_HOST", "")) not in self._hosts:
            return "421 Misdirected Request", _text(), b"the console has another name\n"
        path = environ["PATH_INFO"].removeprefix(PREFIX)
        if not path:
            return "308 Permanent Redirect", [("Location", f"{PREFIX}/"), *_text()], b""
        name = path.removeprefix("/")
        if name.startswith(API):
            return self._asked(name.removeprefix(API), environ)
        page = self._pages.get(name)
        if page is None:
            return "404 Not Found", _text(), b"there is no such page\n"
        return _page(page, environ)

    def _asked(self, name: str, environ: WSGIEnvironment) -> _Answer:
        headers = [("Content-Type", JSON), ("Cache-Control", "no-store")]
        if name not in self._views:
            return "404 Not Found", _text(), b"there is no such view\n"
        query, token = environ.get("QUERY_STRING", ""), environ.get("HTTP_AUTHORIZATION", "")
        try:
            answer = self._bridge.run(lambda: self._views.answer(name, query, token))
        except Refusal as refusal:
            status, body = _refused(refusal)
            return status, headers, body
        return "200 OK", headers, as_json(answer)


def _host(address: str) -> str | None:
    """The name in HOST:PORT; None if it has none."""
    try:
        return urlsplit(f"//{address}").hostname
    except ValueError:
        return None


def as_json(answer: Message | object) -> bytes:
    """A message as the API's JSON, fields at their zero value included; bytes are JSON already; any other value as it is."""
    if isinstance(answer, bytes):
        return answer
    if isinstance(answer, Message):
        return json.dumps(MessageToDict(answer, always_print_fields_with_no_presence=True)).encode()
    return msgspec.json.encode(answer)


def _page(page: Page, environ: WSGIEnvironment) -> _Answer:
    headers = [("Content-Type", page.content_type), ("Cache-Control", "no-cache"), ("ETag", page.tag)]
    if environ.get("HTTP_IF_NONE_MATCH") == page.tag:
        return "304 Not Modified", headers, b""
    return "200 OK", headers, page.body


def _refused(refusal: Refusal) -> tuple[str, bytes]:
    code = to_wire(refusal).code
    violations = refusal.violations if isinstance(refusal, InvalidArgumentError) else []
    told = {
        "code": code.name,
        "reason": refusal.reason,
        "message": refusal.message,
        "violations": [
            {"field": field, "reason": reason, "description": description}
            for field, reason, description in violations[:MOST_VIOLATIONS]
        ],
    }
    return STATUSES.get(code, "500 Internal Server Error"), json.dumps({"error": told}).encode()


def _text() -> list[tuple[str, str]]:
    return [("Content-Type", "text/plain; charset=utf-8")]
