"""Gangs that end: what was scheduled is taken away again after some seconds, so that a cluster under load does not grow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.meta_pb2 import ObjectRef
from tests.bench.served import CALL_SECONDS, Served

STAY_SECONDS = 5.0
ROUND_SECONDS = 0.5
"""How often those that have stayed for their time go, all of them in one call."""


@asynccontextmanager
async def ending(service: Served) -> AsyncIterator[None]:
    """While the block runs, every gang that is scheduled has an end. Raises what a call that takes some away was refused with."""
    since: deque[tuple[float, Decision]] = deque()
    work = [asyncio.create_task(_noted(service, since)), asyncio.create_task(_taken_away(service, since))]
    try:
        yield
    finally:
        broken = [each.exception() for each in work if each.done()]
        for each in work:
            each.cancel()
        await asyncio.wait(work)
    for error in filter(None, broken):
        raise error


async def _noted(service: Served, since: deque[tuple[float, Decision]]) -> None:
    """Note when each gang was scheduled."""
    codes = [DecisionCode.DECISION_CODE_SCHEDULED]
    watching = service.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(cluster=service.cluster, codes=codes)
    )
    async for message in watching:
        now = asyncio.get_running_loop().time()
        since.extend((now, decision) for decision in message.decisions)


async def _taken_away(service: Served, since: deque[tuple[float, Decision]]) -> None:
    while True:
        await asyncio.sleep(ROUND_SECONDS)
        request = pb.DeleteRequest(cluster=service.cluster)
        over = asyncio.get_running_loop().time() - STAY_SECONDS
        while since and since[0][0] < over:
            _, decision = since.popleft()
            request.refs.add(ref=ObjectRef(kind=decision.unit.kind, name=decision.unit.name))
            for pod in decision.assignments.pods:
                request.refs.add(ref=ObjectRef(kind="Pod", name=pod))
        if request.refs:
            await service.objects.Delete(request, timeout=CALL_SECONDS)
