"""Answers once for each request id (api.md, rule 7): in work, kept in memory, or kept in the store.

Only successes are kept. A repeat while the first is in work waits for it; the same id with another request is refused.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.engine.api import RequestIdentity
from muster.engine.errors import InvalidArgumentError
from muster.engine.ports import RequestRecord

Answer = TypeVar("Answer")
Key = tuple[str, str, str]
_MOST_KEPT = 50_000


@dataclass(slots=True)
class _Kept:
    digest: bytes
    answer: asyncio.Task[Any]
    encode: Callable[[Any], bytes]


class RequestLog:
    """`look_up(cluster, method, request_id)` asks the store."""

    def __init__(self, look_up: Callable[[str, str, str], Awaitable[RequestRecord | None]]) -> None:
        self._look_up = look_up
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()

    async def find(self, cluster: str, identity: RequestIdentity) -> bytes | None:
        """The kept answer of the same request, None if it is new. Raises InvalidArgumentError REQUEST_ID_REUSED."""
        kept = self._kept.get((cluster, identity.method, identity.request_id))
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
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept(identity.digest, asyncio.ensure_future(_run(work)), encode)
            self._kept[key] = kept
            kept.answer.add_done_callback(lambda done: self._settle(key, done))
        _check(kept.digest, identity)
        answer: Answer = await asyncio.shield(kept.answer)
        return answer

    def _settle(self, key: Key, done: asyncio.Task[Any]) -> None:
        """Forget failures, and the oldest answers beyond the bound: the store has them."""
        if done.cancelled() or done.exception() is not None:
            self._kept.pop(key, None)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


async def _run(work: Callable[[], Awaitable[Answer]]) -> Answer:
    return await work()


def _check(digest: bytes, identity: RequestIdentity) -> None:
    if digest != identity.digest:
        text = f"request id {identity.request_id!r} was used for another {identity.method} request"
        raise InvalidArgumentError("REQUEST_ID_REUSED", text)
