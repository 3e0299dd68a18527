"""Objects with a time that no text can say, as a service of an earlier version may have stored them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import grpc
import pytest
import yaml
from click.testing import CliRunner, Result
from google.protobuf.timestamp_pb2 import Timestamp

from muster.cli.main import muster
from muster.v1.cluster_service_pb2 import Event, EventType, ListResponse, WatchResponse
from muster.v1.meta_pb2 import Condition, ObjectMeta
from muster.v1.object_pb2 import Object
from muster.v1.pod_pb2 import Pod, PodStatus
from tests.clients.toy_server import Failure, ToyServer, running_toy

YEAR_10000 = Timestamp(seconds=253_402_300_800)
NOON = Timestamp(seconds=43_200)
ODD = Object(
    pod=Pod(
        metadata=ObjectMeta(
            name="odd",
            namespace="far",
            labels={"a": "b"},
            creation_timestamp=NOON,
            deletion_timestamp=YEAR_10000,
        ),
        status=PodStatus(conditions=[Condition(type="Ready", last_transition_time=YEAR_10000)]),
    )
)
USUAL = Object(pod=Pod(metadata=ObjectMeta(name="usual", creation_timestamp=NOON)))
NOTES = [
    "note: far/pod/odd metadata.deletionTimestamp is a time that cannot be written; it is left out",
    "note: far/pod/odd status.conditions[0].lastTransitionTime is a time that cannot be written; it is left out",
]
METADATA = {
    "name": "odd",
    "namespace": "far",
    "creationTimestamp": "1970-01-01T12:00:00Z",
    "labels": {"a": "b"},
}


@pytest.fixture
async def toy() -> AsyncIterator[ToyServer]:
    async with running_toy() as server:
        yield server


async def _run(toy: ToyServer, *line: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, muster, ["--server", toy.address, *line])


async def test_json_leaves_such_a_time_out_and_a_note_names_it(toy: ToyServer) -> None:
    toy.lists.append(ListResponse(objects=[USUAL, ODD]))

    result = await _run(toy, "get", "pods", "-o", "json")

    assert result.exit_code == 0
    usual, odd = (each["pod"] for each in json.loads(result.stdout)["objects"])
    assert usual["metadata"]["creationTimestamp"] == "1970-01-01T12:00:00Z"
    assert odd["metadata"].items() >= METADATA.items()
    assert "deletionTimestamp" not in odd["metadata"]
    assert result.stderr.splitlines() == NOTES


async def test_manifests_leave_such_a_time_out_and_a_note_names_it(toy: ToyServer) -> None:
    toy.lists.append(ListResponse(objects=[USUAL, ODD]))

    result = await _run(toy, "get", "pods", "-o", "yaml")

    assert result.exit_code == 0
    usual, odd = yaml.safe_load_all(result.stdout)
    assert usual["metadata"]["name"] == "usual"
    assert odd["metadata"].keys() == METADATA.keys()
    assert result.stderr.splitlines() == NOTES


async def test_a_watch_goes_on_after_such_a_time(toy: ToyServer) -> None:
    events = [Event(type=EventType.EVENT_TYPE_ADDED, object=each) for each in (ODD, USUAL)]
    toy.watches.append([WatchResponse(events=events), Failure(grpc.StatusCode.INVALID_ARGUMENT)])

    result = await _run(toy, "watch", "pods", "-o", "json")

    names = [json.loads(line)["object"]["pod"]["metadata"]["name"] for line in result.stdout.splitlines()]
    assert names == ["odd", "usual"]
    assert result.stderr.splitlines()[:2] == NOTES


async def test_tables_show_objects_with_such_a_time(toy: ToyServer) -> None:
    toy.lists.append(ListResponse(objects=[ODD]))

    result = await _run(toy, "get", "pods")

    assert result.exit_code == 0
    assert "odd" in result.stdout
