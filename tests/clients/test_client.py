"""The client against a real server: what it fills in, what it repeats, what it raises."""

from collections import deque
from collections.abc import AsyncIterator

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, PreconditionFailure, RetryInfo

from muster.client.client import Client
from muster.client.connection import Connection
from muster.client.errors import (
    MESSAGE_TOO_LARGE,
    ConflictError,
    InvalidArgumentError,
    MusterError,
    Precondition,
    ResourceExhaustedError,
    UnavailableError,
    Violation,
)
from muster.v1.cluster_service_pb2 import ApplyRequest, ApplyResponse, ListRequest, ListResponse
from muster.v1.meta_pb2 import ObjectMeta
from muster.v1.node_pb2 import Node
from muster.v1.object_pb2 import Object
from tests.clients.toy_server import Failure, ToyServer, running_toy

UNAVAILABLE = Failure(grpc.StatusCode.UNAVAILABLE, "SERVER_DRAINING")


@pytest.fixture
async def toy() -> AsyncIterator[ToyServer]:
    async with running_toy() as server:
        yield server


@pytest.fixture
async def client(toy: ToyServer) -> AsyncIterator[Client]:
    async with Client(toy.address, cluster="lab", retry_seconds=20) as client:
        yield client


def _requests(toy: ToyServer) -> list[ApplyRequest]:
    return [each for each in toy.requests if isinstance(each, ApplyRequest)]


def _named(name: str) -> Object:
    return Object(node=Node(metadata=ObjectMeta(name=name)))


async def test_a_request_gets_the_client_s_cluster_and_an_id_of_its_own(
    toy: ToyServer, client: Client
) -> None:
    toy.applies.extend([ApplyResponse(), ApplyResponse()])
    request = ApplyRequest()

    await client.apply(request)
    await client.apply(request)

    first, second = _requests(toy)
    assert first.cluster == second.cluster == "lab"
    assert first.request_id
    assert first.request_id != second.request_id
    assert request == ApplyRequest()


async def test_what_the_request_says_itself_stays(toy: ToyServer, client: Client) -> None:
    toy.applies.append(ApplyResponse())

    await client.apply(ApplyRequest(cluster="own", request_id="mine"))

    assert _requests(toy) == [ApplyRequest(cluster="own", request_id="mine")]


async def test_an_unavailable_server_is_asked_again_with_the_same_id(toy: ToyServer, client: Client) -> None:
    toy.applies.extend([UNAVAILABLE, UNAVAILABLE, ApplyResponse(revision=5)])

    response = await client.apply(ApplyRequest())

    assert response.revision == 5
    assert len({each.request_id for each in _requests(toy)}) == 1
    assert len(toy.requests) == 3


async def test_a_message_that_grpc_itself_refuses_has_a_reason_and_the_limit() -> None:
    large = Object(node=Node(metadata=ObjectMeta(name="n", annotations={"text": "x" * 5_000_000})))

    async with running_toy(most_bytes=1_000_000) as toy, Client(toy.address) as client:
        with pytest.raises(
            ResourceExhaustedError, match="larger than the 1,000,000 that are taken"
        ) as caught:
            await client.apply(ApplyRequest(objects=[large]))

    assert caught.value.reason == MESSAGE_TOO_LARGE


async def test_a_message_too_large_for_grpc_s_own_retry_is_repeated_too(
    toy: ToyServer, client: Client
) -> None:
    toy.applies.extend([UNAVAILABLE, ApplyResponse(revision=5)])
    large = Object(node=Node(metadata=ObjectMeta(name="n", annotations={"text": "x" * 900_000})))

    response = await client.apply(ApplyRequest(objects=[large]))

    assert response.revision == 5


async def test_a_server_with_too_many_calls_is_asked_again_after_the_time_it_names(
    toy: ToyServer, client: Client
) -> None:
    wait = RetryInfo()
    wait.retry_delay.FromMilliseconds(10)
    toy.applies.extend(
        [Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS", [wait]), ApplyResponse(revision=2)]
    )

    assert (await client.apply(ApplyRequest())).revision == 2


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Failure(grpc.StatusCode.INVALID_ARGUMENT), id="a wrong request"),
        pytest.param(Failure(grpc.StatusCode.INTERNAL), id="a broken server"),
        pytest.param(Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT"), id="another limit"),
        pytest.param(Failure(grpc.StatusCode.ABORTED), id="a conflict"),
    ],
)
async def test_any_other_failure_is_raised_at_once(toy: ToyServer, client: Client, failure: Failure) -> None:
    toy.applies.append(failure)

    with pytest.raises(MusterError) as caught:
        await client.apply(ApplyRequest())

    assert caught.value.code is failure.code
    assert len(toy.requests) == 1


async def test_an_unavailable_server_is_given_up_when_the_time_is_over(toy: ToyServer) -> None:
    toy.applies.append(UNAVAILABLE)

    async with Client(toy.address, retry_seconds=0) as client:
        with pytest.raises(UnavailableError) as caught:
            await client.apply(ApplyRequest())

    assert caught.value.reason == "SERVER_DRAINING"


async def test_an_error_carries_every_violation(toy: ToyServer, client: Client) -> None:
    faults = BadRequest(
        field_violations=[
            BadRequest.FieldViolation(field="objects[0].pod.spec", reason="REQUIRED", description="must")
        ]
    )
    toy.applies.append(Failure(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_OBJECTS", [faults]))

    with pytest.raises(InvalidArgumentError) as caught:
        await client.apply(ApplyRequest())

    assert caught.value.reason == "INVALID_OBJECTS"
    assert caught.value.details.violations == (Violation("objects[0].pod.spec", "REQUIRED", "must"),)


async def test_a_conflict_names_the_objects(toy: ToyServer, client: Client) -> None:
    faults = PreconditionFailure(
        violations=[
            PreconditionFailure.Violation(type="RESOURCE_VERSION", subject="Node n", description="is 5")
        ]
    )
    toy.applies.append(Failure(grpc.StatusCode.ABORTED, "RESOURCE_VERSION_MISMATCH", [faults]))

    with pytest.raises(ConflictError) as caught:
        await client.apply(ApplyRequest())

    assert caught.value.details.preconditions == (Precondition("RESOURCE_VERSION", "Node n", "is 5"),)


async def test_a_token_goes_with_every_call(toy: ToyServer) -> None:
    toy.applies.append(ApplyResponse())

    async with Client(Connection(toy.address, token="secret")) as client:
        await client.apply(ApplyRequest())

    assert toy.metadata[0]["authorization"] == "Bearer secret"


async def test_all_pages_are_read_one_after_the_other(toy: ToyServer, client: Client) -> None:
    toy.lists = deque(
        [
            ListResponse(objects=[_named("a"), _named("b")], next_page_token="more"),
            ListResponse(objects=[_named("c")]),
        ]
    )

    names = [each.node.metadata.name async for each in client.list_all(ListRequest(kind="Node"))]

    assert names == ["a", "b", "c"]
    assert [each.page_token for each in toy.requests if isinstance(each, ListRequest)] == ["", "more"]
