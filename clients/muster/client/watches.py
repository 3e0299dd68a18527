"""Watches that go on: after a broken connection, a restart of the server, a compacted revision.

Decides from which revision a stream is opened again and what the follower is told. A revision that was cut off in the
middle is sent again whole, so that events and decisions come at least once, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc

from muster.client.client import Client
from muster.client.errors import MusterError, OutOfRangeError
from muster.client.retry import LONGEST_WAIT_SECONDS
from muster.v1.cluster_service_pb2 import Event, ListRequest, WatchRequest
from muster.v1.decision_pb2 import Decision
from muster.v1.object_pb2 import Object
from muster.v1.scheduler_service_pb2 import WatchDecisionsRequest

FIRST_WAIT_SECONDS = 0.1
# A watcher that was too slow is cut off, as all are when the server stops: both may come back.
REOPENED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})


@dataclass(frozen=True, slots=True)
class Changes:
    """Some events; everything up to `revision` has been delivered.

    in_sync: the present state is complete, what follows are changes. restarted: history was lost, and this is the
    first part of the present state: forget everything known before.
    """

    events: tuple[Event, ...]
    revision: int
    in_sync: bool
    restarted: bool


@dataclass(frozen=True, slots=True)
class Decisions:
    """Some decisions, up to `revision`.

    restarted: decisions were lost. In their place stand the pods that have a node and do not run yet (`assigned`) and
    those that carry a deletion mark (`deleting`).
    """

    decisions: tuple[Decision, ...]
    revision: int
    restarted: bool = False
    assigned: tuple[Object, ...] = ()
    deleting: tuple[Object, ...] = ()


class _Pause:
    """Waits that double while nothing comes, and are short again once something came."""

    def __init__(self) -> None:
        self._seconds = FIRST_WAIT_SECONDS

    def reset(self) -> None:
        self._seconds = FIRST_WAIT_SECONDS

    async def after(self, error: MusterError) -> None:
        """Sleeps, as long as the server asks for if it does. Raises the error if the watch cannot go on."""
        if error.code not in REOPENED:
            raise error
        await asyncio.sleep(error.details.retry_after_seconds or self._seconds)
        self._seconds = min(2 * self._seconds, LONGEST_WAIT_SECONDS)


async def watch_objects(client: Client, request: WatchRequest) -> AsyncIterator[Changes]:
    """Changes without end. Raises MusterError for requests that the server refuses for good."""
    following = client.completed(request)
    pause = _Pause()
    in_sync = following.HasField("from_revision")
    restarted = False
    while True:
        try:
            async for message in client.watch(following):
                pause.reset()
                in_sync = in_sync or message.initial_state_complete
                if in_sync:
                    following.from_revision = message.revision
                yield Changes(tuple(message.events), message.revision, in_sync, restarted)
                restarted = False
        except OutOfRangeError:
            following.ClearField("from_revision")
            in_sync = False
        except MusterError as error:
            await pause.after(error)
        # A present state that broke off is sent again from its start.
        restarted = not in_sync


async def watch_decisions(client: Client, request: WatchDecisionsRequest) -> AsyncIterator[Decisions]:
    """Decisions without end. Raises MusterError for requests that the server refuses for good."""
    following = client.completed(request)
    pause = _Pause()
    while True:
        try:
            async for message in client.watch_decisions(following):
                pause.reset()
                following.from_revision = message.revision
                yield Decisions(tuple(message.decisions), message.revision)
        except OutOfRangeError:
            restart = await _restart(client)
            following.from_revision = restart.revision
            yield restart
        except MusterError as error:
            await pause.after(error)


async def _restart(client: Client) -> Decisions:
    """What lost decisions may have come to, and the revision from which none will be missed."""
    assigned, revision = await _pods(client, ListRequest(kind="Pod", phase="Pending"))
    deleting, _ = await _pods(client, ListRequest(kind="Pod", deleting=True))
    return Decisions(
        decisions=(),
        revision=revision,
        restarted=True,
        assigned=tuple(each for each in assigned if each.pod.spec.node_name),
        deleting=deleting,
    )


async def _pods(client: Client, request: ListRequest) -> tuple[tuple[Object, ...], int]:
    page = await client.list_objects(request)
    pods = list(page.objects)
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = await client.list_objects(request)
        pods += page.objects
    return tuple(pods), page.revision
