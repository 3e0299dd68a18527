"""The reading side of the API for a way in that is not gRPC, such as the console.

Decides nothing of its own: tokens, limits, deadlines, pages, refusals and metrics are those of the RPCs. A call counts
as the method `console.NAME`, so that the figures of the RPCs stay theirs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from muster.engine.api import PositionedUnit, SchedulingEngine
from muster.rpc.admission import Admission
from muster.rpc.auth import Tokens
from muster.rpc.deadlines import Deadlines
from muster.rpc.decisions import DecisionLister
from muster.rpc.errors import as_refusal, to_wire
from muster.rpc.pagination import KeptLists, PageTokens
from muster.rpc.queue_pages import QueueLister
from muster.rpc.telemetry_port import RpcTelemetry

Answer = TypeVar("Answer")
METHOD_PREFIX = "console."


class Reading:
    """`engine`, `queue` and `decisions` answer what is asked inside of `call`, on the event loop's thread."""

    def __init__(
        self,
        engine: SchedulingEngine,
        admission: Admission,
        telemetry: RpcTelemetry,
        tokens: Tokens | None,
        page_tokens: PageTokens,
        units: KeptLists[PositionedUnit],
    ) -> None:
        self.engine = engine
        self.queue = QueueLister(engine, page_tokens, units)
        self.decisions = DecisionLister(engine, page_tokens)
        self._admission = admission
        self._telemetry = telemetry
        self._tokens = tokens
        self._deadlines = Deadlines()

    async def call(self, name: str, authorization: str, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """What the work gives to the caller with this `authorization` ("Bearer TOKEN"). Raises nothing but `Refusal`s."""
        method, started = METHOD_PREFIX + name, time.perf_counter()
        code = grpc.StatusCode.CANCELLED
        self._telemetry.rpc_started(method)
        try:
            answer = await self._admitted(method, authorization, work)
            code = grpc.StatusCode.OK
            return answer
        except Exception as error:
            refusal = as_refusal(error, method)
            code = to_wire(refusal).code
            self._telemetry.refused(method, refusal.reason)
            raise refusal from error
        finally:
            self._telemetry.rpc_ended(method, code.name, time.perf_counter() - started)

    async def _admitted(
        self, method: str, authorization: str, work: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        with self._admission.unary_call():
            if self._tokens is not None:
                metadata = [("authorization", authorization)] if authorization else []
                self._tokens.check(method, metadata)
            return await self._deadlines.within(self._admission.limits.deadline_seconds, method, work())
