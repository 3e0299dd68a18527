"""Answers once for each request id (api.md, rule 7): in work, kept in memory, or kept in the store.

Only successes are kept. A repeat while the first is in work waits for it; the same id with another request is refused.
In memory are the newest answers alone; all are in the store, those of calls that wrote nothing, too: by the time of a
repeat they might.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.engine.api import ApplyAnswer, DeleteAnswer, ReportAnswer, RequestIdentity
from muster.engine.errors import InvalidArgumentError
from muster.engine.ports import RequestRecord
from muster.validation.violations import INVALID, Violation

Answer = TypeVar("Answer")
Key = tuple[str, str, str]
MOST_WEIGHT = 65_536
"""How much the kept answers may weigh together: about a hundred bytes each."""
_WEIGHT_OF_ONE = 8
"""What an answer weighs beside the objects that it tells of."""


@dataclass(slots=True)
class _Kept:
    digest: bytes
    answer: asyncio.Task[Any]
    encode: Callable[[Any], bytes]


class RequestLog:
    """`look_up(cluster, method, request_id)` asks the store."""

    def __init__(self, look_up: Callable[[str, str, str], Awaitable[RequestRecord | None]]) -> None:
        self._look_up = look_up
        self._in_work: dict[Key, _Kept] = {}
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._weight = 0

    async def find(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        """The kept answer of the same request, None if it is new. Raises InvalidArgumentError REQUEST_ID_REUSED."""
        kept = self._known((cluster, identity.method, identity.request_id))
        if kept is not None:
            _check(kept.digest, identity)
            return kept.encode(await asyncio.shield(kept.answer))
        record = await self._look_up(cluster, identity.method, identity.request_id)
        if record is None:
            return None
        _check(record.digest, identity)
        return record.response

    async def once(
        self,
        cluster: str,
        identity: RequestIdentity | None,
        encode: Callable[[Answer], bytes] | None,
        work: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """Do the work, or share what the same request is doing already. A caller that leaves does not stop it."""
        if identity is None or encode is None:
            return await work()
        key = (cluster, identity.method, identity.request_id)
        kept = self._known(key)
        if kept is None:
            kept = _Kept(identity.digest, asyncio.ensure_future(_run(work)), encode)
            self._in_work[key] = kept
            kept.answer.add_done_callback(lambda done: self._settle(key, done))
        _check(kept.digest, identity)
        answer: Answer = await asyncio.shield(kept.answer)
        return answer

    def _known(self, key: Key) -> _Kept | None:
        return self._in_work.get(key) or self._kept.get(key)

    def _settle(self, key: Key, done: asyncio.Task[Any]) -> None:
        """Forget failures, and the oldest answers beyond the bound."""
        kept = self._in_work.pop(key)
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = kept
        self._weight += _weight(kept)
        while self._weight > MOST_WEIGHT:
            _, oldest = self._kept.popitem(last=False)
            self._weight -= _weight(oldest)


def _weight(kept: _Kept) -> int:
    match kept.answer.result():
        case ApplyAnswer(results=told) | DeleteAnswer(outcomes=told) | ReportAnswer(outcomes=told):
            return _WEIGHT_OF_ONE + len(told)
    return _WEIGHT_OF_ONE


async def _run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    return await work()


def _check(digest: bytes, identity: RequestIdentity) -> None:
    if digest != identity.digest:
        text = f"request id {identity.request_id!r} was used for another {identity.method} request"
        raise InvalidArgumentError("REQUEST_ID_REUSED", text, [Violation("requestId", INVALID, text)])
