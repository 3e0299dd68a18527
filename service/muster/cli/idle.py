"""When a cluster's queue is idle: nothing is active, and no worker decides anything.

Units in backoff, without room or with members missing may be left: nothing happens to them until something else does.
"""

from __future__ import annotations

import asyncio
import contextlib

from muster.client.client import Client
from muster.v1.queue_pb2 import UnitState
from muster.v1.scheduler_service_pb2 import GetQueueRequest, GetQueueResponse

BUSY = (UnitState.UNIT_STATE_ACTIVE, UnitState.UNIT_STATE_IN_FLIGHT)
FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.1
PAGE = GetQueueRequest(states=BUSY, page_size=1)


async def until_idle(client: Client, news: asyncio.Event | None = None) -> GetQueueResponse:
    """Returns once the queue is idle, with the counts of that moment.

    `news`, if given, is set by others whenever a decision is seen: then the queue is looked at without further waiting.
    """
    pause = FIRST_PAUSE_SECONDS
    news = news or asyncio.Event()
    while True:
        news.clear()
        queue = await client.get_queue(PAGE)
        if not any(each.count for each in queue.counts if each.state in BUSY):
            return queue
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
