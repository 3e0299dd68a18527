"""Watches: what is promised by a revision, bookmarks, slow watchers, limits, the end."""

import asyncio
from collections.abc import AsyncIterable
from dataclasses import replace
from itertools import count
from typing import Any, cast

import grpc
import pytest
from grpc import aio

from muster.core.decision import Decision, DecisionCode
from muster.engine.api import DecisionBatch
from muster.engine.ports import AssignmentColumns, DecisionRecord
from muster.model.meta import ObjectKey
from muster.rpc.decisions import DecisionMessages
from muster.rpc.server import RpcServer
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import cluster_service_pb2_grpc, meta_pb2
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision as DecisionMessage
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import (
    PATIENCE_SECONDS,
    SHORT_LIMITS,
    Api,
    RecordingTelemetry,
    apply,
    batch,
    names,
    pod,
    pod_group,
    ref,
    refused,
)

GROUP = ObjectKey("PodGroup", "default", "g")


async def read(stream: Any, count: int = 1) -> list[Any]:
    """The next messages of a stream."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await stream.read() for _ in range(count)]


async def read_until(stream: AsyncIterable[pb.WatchResponse], revision: int) -> list[pb.WatchResponse]:
    """Messages up to the one that completes a revision."""
    messages: list[pb.WatchResponse] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for message in stream:
            messages.append(message)
            if message.revision >= revision:
                break
    return messages


def events_of(messages: list[pb.WatchResponse]) -> list[tuple[int, str]]:
    return [(each.type, names([each.object])[0]) for message in messages for each in message.events]


async def test_the_present_state_comes_first_and_is_declared_complete(api: Api) -> None:
    await apply(api, pod("a"), pod("b"))

    [message] = await read(api.cluster.Watch(pb.WatchRequest()))

    assert events_of([message]) == [(1, "a"), (1, "b")]
    assert (message.revision, message.initial_state_complete) == (2, True)


async def test_a_watch_from_a_revision_gets_what_came_after_it(api: Api) -> None:
    revision = (await apply(api, pod("a"))).revision
    await apply(api, pod("a", {"x": "y"}))
    await api.cluster.Delete(pb.DeleteRequest(refs=[pb.DeleteTarget(ref=ref("Pod", "a"))]))

    messages = await read_until(api.cluster.Watch(pb.WatchRequest(from_revision=revision)), revision + 2)

    assert events_of(messages) == [(2, "a"), (3, "a")]


async def test_only_the_last_message_of_a_revision_moves_the_watch_to_it(api: Api) -> None:
    await apply(api, pod("first"))
    stream = api.cluster.Watch(pb.WatchRequest(from_revision=2))
    await apply(api, batch(f"p-{index}" for index in range(450)))

    messages = await read_until(stream, 3)

    assert [len(each.events) for each in messages if each.events] == [200, 200, 50]
    assert [each.revision for each in messages if each.events] == [2, 2, 3]


async def test_a_message_holds_no_more_than_a_mebibyte(api: Api) -> None:
    await apply(api, *(pod(f"p-{index}", note="x" * 100_000) for index in range(30)))

    messages = await read_until(api.cluster.Watch(pb.WatchRequest(from_revision=1)), 2)

    assert len(messages) > 2
    assert max(each.ByteSize() for each in messages) <= 1024 * 1024 + 100
    assert [each.revision for each in messages[:-1]] == [1] * (len(messages) - 1)


async def test_kinds_and_labels_are_filters(api: Api) -> None:
    selector = meta_pb2.LabelSelector(match_labels={"app": "x"})
    await apply(api, pod("a", {"app": "x"}), pod("b"), pod_group("g"))

    [message] = await read(api.cluster.Watch(pb.WatchRequest(kinds=["Pod"], label_selector=selector)))

    assert events_of([message]) == [(1, "a")]


async def test_silence_is_filled_with_bookmarks(api: Api) -> None:
    [state, *bookmarks] = await read(api.cluster.Watch(pb.WatchRequest()), 3)

    assert [len(each.events) for each in bookmarks] == [0, 0]
    assert {each.revision for each in bookmarks} == {state.revision}
    assert not any(each.initial_state_complete for each in bookmarks)


@pytest.mark.parametrize(
    ("revision", "reason", "metadata"),
    [
        (3, "REVISION_COMPACTED", {"oldest_revision": "5"}),
        (99, "REVISION_IN_FUTURE", {"current_revision": "7"}),
    ],
)
async def test_a_revision_that_cannot_be_served_says_why(
    api: Api, engine: FakeEngine, revision: int, reason: str, metadata: dict[str, str]
) -> None:
    engine.clusters["default"].revision, engine.clusters["default"].compacted = 7, 5

    answer = await refused(api.cluster.Watch(pb.WatchRequest(from_revision=revision)).read())

    assert (answer.code, answer.reason, answer.metadata) == (grpc.StatusCode.OUT_OF_RANGE, reason, metadata)


@pytest.mark.parametrize("limits", [replace(SHORT_LIMITS, watches=2)], ids=["two watches"])
async def test_watches_beyond_the_limit_are_refused_until_one_ends(api: Api) -> None:
    first, second = (
        api.cluster.Watch(pb.WatchRequest()),
        api.scheduler.WatchDecisions(spb.WatchDecisionsRequest()),
    )
    await read(first)
    await read(second)

    answer = await refused(api.cluster.Watch(pb.WatchRequest()).read())
    first.cancel()
    await refused_until_there_is_room(api)

    assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WATCHES")


async def refused_until_there_is_room(api: Api) -> None:
    """The server learns of a caller that left a little later."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await api.cluster.Watch(pb.WatchRequest()).read()
            except aio.AioRpcError:
                continue
            return


async def test_a_watcher_that_does_not_read_is_cut_off_and_others_are_not(
    api: Api, server: RpcServer, telemetry: RecordingTelemetry
) -> None:
    options = [("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0)]
    async with aio.insecure_channel(server.addresses[0], options=options) as channel:
        slow = cluster_service_pb2_grpc.ClusterServiceStub(channel).Watch(pb.WatchRequest(from_revision=1))
        quick = api.cluster.Watch(pb.WatchRequest(from_revision=1))
        await slow.wait_for_connection()
        for index in range(20):
            await apply(api, *(pod(f"p-{index}-{number}", note="x" * 200_000) for number in range(5)))

        messages = await read_until(quick, 21)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await telemetry.refusals.get()
            answer = await refused(drained(slow))

    assert sum(len(each.events) for each in messages) == 100
    assert (answer.code, answer.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "WATCHER_TOO_SLOW")


async def drained(stream: Any) -> None:
    while await stream.read() is not aio.EOF:
        pass


async def test_decisions_are_streamed_in_order(api: Api, engine: FakeEngine) -> None:
    stream = api.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(from_revision=1, units=[ref("PodGroup", "g")])
    )
    other = ObjectKey("PodGroup", "default", "other")
    for index, key in enumerate([GROUP, other, GROUP]):
        engine.add_decision(DecisionRecord(f"d-{index}", 0, 0, Decision(key, DecisionCode.SCHEDULED)))

    found: list[str] = []
    while len(found) < 2:
        [message] = await read(stream)
        found += [each.id for each in message.decisions]

    assert found == ["d-0", "d-2"]


@pytest.mark.parametrize("units", [["g"], ["g", "h"]])
async def test_decisions_are_filtered_by_unit_and_code(
    api: Api, engine: FakeEngine, units: list[str]
) -> None:
    stream = api.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(
            from_revision=1,
            units=[ref("PodGroup", name) for name in units],
            codes=[1],  # type: ignore[list-item]
        )
    )
    await read(stream)
    for name in ("other", "g"):
        for code in (DecisionCode.UNSCHEDULABLE, DecisionCode.SCHEDULED):
            decision = Decision(ObjectKey("PodGroup", "default", name), code)
            engine.add_decision(DecisionRecord(f"{name} {code.value}", 0, 0, decision))

    found: list[str] = []
    while not found:
        [message] = await read(stream)
        found += [each.id for each in message.decisions]

    assert found == ["g SCHEDULED"]


async def test_a_decision_too_large_for_a_message_comes_without_its_columns(
    api: Api, engine: FakeEngine
) -> None:
    names_of_pods = tuple(f"a-long-name-of-a-pod-{index:080}" for index in range(40_000))
    columns = AssignmentColumns("default", ("n",), names_of_pods, names_of_pods, (0,) * 40_000)
    watch = api.scheduler.WatchDecisions(spb.WatchDecisionsRequest(from_revision=1))
    await watch.wait_for_connection()
    engine.add_decision(DecisionRecord("d", 0, 0, Decision(GROUP, DecisionCode.SCHEDULED), columns))

    told = await first_decision(watch)
    got = await api.scheduler.GetDecision(spb.GetDecisionRequest(id="d"))
    scheduled = await api.scheduler.Schedule(spb.ScheduleRequest(unit=ref("PodGroup", "g")))

    for decision in (told, got.decision, scheduled.decision):
        assert decision.assignments_omitted
        assert not decision.HasField("assignments")
        assert decision.ByteSize() < 3 * 1024 * 1024


async def test_decisions_on_others_alone_are_silence_which_bookmarks_fill(
    api: Api, engine: FakeEngine
) -> None:
    units = [ref("PodGroup", name) for name in ("g", "h")]
    watch = api.scheduler.WatchDecisions(spb.WatchDecisionsRequest(from_revision=1, units=units))
    other = ObjectKey("PodGroup", "default", "other")

    async def decide() -> None:
        for number in count():
            engine.add_decision(DecisionRecord(f"d-{number}", 0, 0, Decision(other, DecisionCode.SCHEDULED)))
            await asyncio.sleep(SHORT_LIMITS.bookmark_seconds / 8)

    deciding = asyncio.create_task(decide())
    bookmarks = await read(watch, 3)
    deciding.cancel()

    revisions = [each.revision for each in bookmarks]
    assert [len(each.decisions) for each in bookmarks] == [0, 0, 0]
    assert revisions[0] < revisions[1] < revisions[2]


async def first_decision(watch: Any) -> DecisionMessage:
    while True:
        [message] = await read(watch)
        if message.decisions:
            [decision] = message.decisions
            return cast("DecisionMessage", decision)


def test_many_decisions_come_in_several_messages_of_which_the_last_has_their_revision() -> None:
    decision = Decision(GROUP, DecisionCode.SCHEDULED)
    batch = DecisionBatch(tuple(DecisionRecord(f"d-{n}", n, 0, decision) for n in range(450)), 9)

    sent = list(DecisionMessages("default", 3, frozenset()).of(batch))

    read_back = [spb.WatchDecisionsResponse.FromString(cast("bytes", each)) for each in sent]
    assert [len(each.decisions) for each in read_back] == [200, 200, 50]
    assert [each.revision for each in read_back] == [3, 3, 9]
    assert [each.id for message in read_back for each in message.decisions] == [f"d-{n}" for n in range(450)]


async def test_draining_ends_watches_with_its_reason(api: Api, server: RpcServer) -> None:
    watches = [
        api.cluster.Watch(pb.WatchRequest()),
        api.scheduler.WatchDecisions(spb.WatchDecisionsRequest()),
    ]
    for each in watches:
        await read(each)

    await server.drain(5)

    for each in watches:
        answer = await refused(drained(each))
        assert (answer.code, answer.reason) == (grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")
