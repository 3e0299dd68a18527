"""Pages of lists: all pages of one list have the revision of its first page.

The first page keeps the whole list (objects are values, so this is a list of references) for a bounded time and
number; a token names it and the place in it. Tokens are opaque, signed by the process that made them, and good
for the request that they came from alone. What a list holds, and how an element is encoded, is for the callers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from muster.engine.errors import InvalidArgumentError, OutOfRangeError
from muster.rpc.limits import PAGE_BYTES
from muster.validation.violations import INVALID, Violation

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_TOKEN = struct.Struct(">QQ16s")
_SIGNATURE_BYTES = 16
_FIELDS_OF_PAGE = ("page_token", "page_size")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page begins: `list_id` of the kept list, `offset` in it (or whatever the caller counts by)."""

    list_id: int
    offset: int


class PageTokens:
    """Makes and reads tokens. The key lives as long as the process, like the lists that tokens name."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def make(self, request: Message, position: Position) -> str:
        body = _TOKEN.pack(position.list_id, position.offset, _fingerprint(request))
        return base64.urlsafe_b64encode(body + self._signature(body)).decode().rstrip("=")

    def read(self, request: Message, token: str) -> Position:
        """The position in a token. Raises InvalidArgumentError PAGE_TOKEN_MISMATCH for any token not made for it."""
        body = self._checked_body(token)
        list_id, offset, fingerprint = _TOKEN.unpack(body)
        if fingerprint != _fingerprint(request):
            raise _mismatch("the page token belongs to a request with other filters")
        return Position(list_id, offset)

    def _checked_body(self, token: str) -> bytes:
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except ValueError:
            raise _mismatch("the page token was not made by this server") from None
        body, signature = raw[: _TOKEN.size], raw[_TOKEN.size :]
        # A token that was made for a message decodes to itself alone: base64 has spare bits in its last character.
        same = base64.urlsafe_b64encode(raw).decode().rstrip("=") == token
        if not same or not hmac.compare_digest(signature, self._signature(body)):
            raise _mismatch("the page token was not made by this server")
        return body

    def _signature(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")[:_SIGNATURE_BYTES]


@dataclass(slots=True)
class KeptList(Generic[T]):
    """One list as its first page saw it; `deadline` moves on with each page that is read.

    `summary` is what every page of it carries beside elements and token, if there is such a thing.
    """

    list_id: int
    revision: int
    elements: Sequence[T]
    deadline: float
    summary: Message | None = None


class KeptLists(Generic[T]):
    """Lists whose next page may be asked for; the one that was used longest ago goes first when there are too many."""

    def __init__(self, now: Callable[[], float], most: int, seconds: float) -> None:
        self._now = now
        self._most = most
        self._seconds = seconds
        self._next_id = 1
        self._lists: OrderedDict[int, KeptList[T]] = OrderedDict()

    def keep(self, revision: int, elements: Sequence[T], summary: Message | None = None) -> KeptList[T]:
        self._forget_old()
        kept = KeptList(self._next_id, revision, elements, self._now() + self._seconds, summary)
        self._next_id += 1
        self._lists[kept.list_id] = kept
        if len(self._lists) > self._most:
            self._lists.popitem(last=False)
        return kept

    def find(self, list_id: int) -> KeptList[T]:
        """The list of an earlier page. Raises OutOfRangeError REVISION_COMPACTED if it is no longer kept."""
        self._forget_old()
        kept = self._lists.get(list_id)
        if kept is None:
            raise OutOfRangeError(
                "REVISION_COMPACTED", "the list that this page token continues is gone; list again"
            )
        kept.deadline = self._now() + self._seconds
        self._lists.move_to_end(list_id)
        return kept

    def drop(self, list_id: int) -> None:
        """Forget a list whose last page was read."""
        self._lists.pop(list_id, None)

    def __len__(self) -> int:
        return len(self._lists)

    def _forget_old(self) -> None:
        now = self._now()
        while self._lists and next(iter(self._lists.values())).deadline < now:
            self._lists.popitem(last=False)


class PageBudget:
    """Counts the bytes of a page: an element is taken if it fits, and the first one always."""

    def __init__(self, used: int = 0) -> None:
        self._room = PAGE_BYTES - used
        self._taken = 0

    def takes(self, message: Message) -> bool:
        size = message.ByteSize() + 6
        if self._taken and size > self._room:
            return False
        self._room -= size
        self._taken += 1
        return True


def _fingerprint(request: M) -> bytes:
    """What must stay the same between pages: all of the request but its page."""
    filters = type(request)()
    filters.CopyFrom(request)
    for name in _FIELDS_OF_PAGE:
        filters.ClearField(name)
    kind = type(request).__name__.encode()
    return hashlib.blake2b(kind + filters.SerializeToString(deterministic=True), digest_size=16).digest()


def _mismatch(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "PAGE_TOKEN_MISMATCH",
        message,
        [Violation("pageToken", INVALID, f"{message}; start at the first page")],
    )
