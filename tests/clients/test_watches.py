"""Watches resume where they were cut off, and say when they could not."""

from collections import deque
from collections.abc import AsyncIterator
from typing import TypeVar

import grpc
import pytest

from muster.client.client import Client
from muster.client.errors import InvalidArgumentError
from muster.client.watches import Changes, Decisions, watch_decisions, watch_objects
from muster.v1.cluster_service_pb2 import (
    Event,
    EventType,
    ListRequest,
    ListResponse,
    WatchRequest,
    WatchResponse,
)
from muster.v1.decision_pb2 import Decision
from muster.v1.meta_pb2 import ObjectMeta
from muster.v1.object_pb2 import Object
from muster.v1.pod_pb2 import Pod, PodSpec
from muster.v1.scheduler_service_pb2 import WatchDecisionsRequest, WatchDecisionsResponse
from tests.clients.toy_server import Failure, ToyServer, running_toy

CUT_OFF = Failure(grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")
TOO_SLOW = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "WATCHER_TOO_SLOW")
Seen = TypeVar("Seen")

COMPACTED = Failure(grpc.StatusCode.OUT_OF_RANGE, "REVISION_COMPACTED")
WRONG = Failure(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


@pytest.fixture
async def toy() -> AsyncIterator[ToyServer]:
    async with running_toy() as server:
        yield server


@pytest.fixture
async def client(toy: ToyServer) -> AsyncIterator[Client]:
    async with Client(toy.address) as client:
        yield client


def _event(name: str) -> Event:
    return Event(type=EventType.EVENT_TYPE_ADDED, object=_pod(name))


def _pod(name: str, node: str = "") -> Object:
    return Object(pod=Pod(metadata=ObjectMeta(name=name), spec=PodSpec(node_name=node)))


async def _until_refused(stream: AsyncIterator[Seen]) -> list[Seen]:
    """All that comes until the server refuses the request for good."""
    seen = []
    try:
        async for each in stream:
            seen.append(each)  # noqa: PERF401 - what came before the error counts
    except InvalidArgumentError:
        return seen
    raise AssertionError("the stream ended without an error")


async def _changes(client: Client, request: WatchRequest) -> list[Changes]:
    return await _until_refused(watch_objects(client, request))


async def _decisions(client: Client, request: WatchDecisionsRequest) -> list[Decisions]:
    return await _until_refused(watch_decisions(client, request))


def _starts(toy: ToyServer) -> list[int | None]:
    """The revision from which each watch was opened; None is the present state."""
    opened = (each for each in toy.requests if isinstance(each, WatchRequest | WatchDecisionsRequest))
    return [each.from_revision if each.HasField("from_revision") else None for each in opened]


@pytest.mark.parametrize("failure", [CUT_OFF, TOO_SLOW], ids=["server stops", "watcher too slow"])
async def test_a_watch_goes_on_after_its_last_revision(
    toy: ToyServer, client: Client, failure: Failure
) -> None:
    first = WatchResponse(events=[_event("a")], revision=3, initial_state_complete=True)
    later = WatchResponse(events=[_event("b")], revision=4)
    toy.watches = deque([[first, failure], [later, WRONG]])

    seen = await _changes(client, WatchRequest())

    assert _starts(toy) == [None, 3]
    assert [(each.revision, each.in_sync, each.restarted) for each in seen] == [
        (3, True, False),
        (4, True, False),
    ]


async def test_a_present_state_that_broke_off_is_sent_again_from_its_start(
    toy: ToyServer, client: Client
) -> None:
    part = WatchResponse(events=[_event("a")])
    whole = WatchResponse(events=[_event("a"), _event("b")], revision=3, initial_state_complete=True)
    toy.watches = deque([[part, CUT_OFF], [whole, WRONG]])

    seen = await _changes(client, WatchRequest())

    assert _starts(toy) == [None, None]
    assert [(each.in_sync, each.restarted) for each in seen] == [(False, False), (True, True)]


async def test_a_compacted_revision_leads_to_the_present_state(toy: ToyServer, client: Client) -> None:
    state = WatchResponse(events=[_event("a")], revision=90, initial_state_complete=True)
    toy.watches = deque([[COMPACTED], [state, WRONG]])

    seen = await _changes(client, WatchRequest(from_revision=2))

    assert _starts(toy) == [2, None]
    assert seen == [Changes((_event("a"),), 90, in_sync=True, restarted=True)]


async def test_decisions_go_on_after_their_last_revision(toy: ToyServer, client: Client) -> None:
    toy.decisions = deque(
        [
            [WatchDecisionsResponse(decisions=[Decision(id="a")], revision=3), CUT_OFF],
            [WatchDecisionsResponse(decisions=[Decision(id="b")], revision=4), WRONG],
        ]
    )

    seen = await _decisions(client, WatchDecisionsRequest(from_revision=1))

    assert _starts(toy) == [1, 3]
    assert [each.decisions[0].id for each in seen] == ["a", "b"]


async def test_lost_decisions_are_made_up_for_by_the_pods_that_they_may_concern(
    toy: ToyServer, client: Client
) -> None:
    toy.decisions = deque([[COMPACTED], [WRONG]])
    toy.lists = deque(
        [
            ListResponse(objects=[_pod("placed", "n"), _pod("waiting")], revision=70),
            ListResponse(objects=[_pod("leaving", "n")], revision=71),
        ]
    )

    seen = await _decisions(client, WatchDecisionsRequest(from_revision=2))

    assert _starts(toy) == [2, 70]
    assert seen == [Decisions((), 70, True, (_pod("placed", "n"),), (_pod("leaving", "n"),))]
    assert [(each.phase, each.deleting) for each in toy.requests if isinstance(each, ListRequest)] == [
        ("Pending", False),
        ("", True),
    ]
