"""The present state of a cluster as List and Watch tell it, once it is durable."""

from __future__ import annotations

from collections.abc import Iterator

from muster.engine.api import ListAnswer, ObjectFilter, WatchBatch
from muster.engine.cluster_service import ClusterService
from muster.engine.log_entries import EventType
from muster.engine.selection import select

WATCH_BATCH = 200


async def listed(service: ClusterService, selection: ObjectFilter) -> ListAnswer:
    """What is selected at the moment of the call, once it is durable. Raises UnavailableError."""
    state = service.cluster.state
    answer = ListAnswer(state.revision, await select(state, selection))
    service.check_available()
    if service.cluster.state is not state:
        # What was selected may have been lost while it was looked at.
        raise service.being_loaded()
    await service.durable()
    return answer


def as_added(answer: ListAnswer) -> Iterator[WatchBatch]:
    """The present state as ADDED; the last batch, which may be empty, completes it."""
    objects = answer.objects
    starts = range(0, len(objects) or 1, WATCH_BATCH)
    for start in starts:
        part = objects[start : start + WATCH_BATCH]
        is_last = start == starts[-1]
        types = [EventType.ADDED] * len(part)
        yield WatchBatch(types, part, answer.revision if is_last else 0, initial_state_complete=is_last)
