"""Events encoded once: bytes that stand for a response, by object and type, in bounded memory."""

import pytest

from muster.engine.log_entries import EventType
from muster.model.pod import Pod
from muster.rpc import events
from muster.rpc.events import EncodedEvents
from muster.v1 import cluster_service_pb2 as pb


def decoded(*parts: bytes) -> list[tuple[int, str]]:
    response = pb.WatchResponse.FromString(b"".join(parts))
    return [(event.type, event.object.pod.metadata.name) for event in response.events]


def test_events_one_behind_the_other_are_one_response_of_all() -> None:
    encoded = EncodedEvents().encoded
    old, new = Pod(name="old"), Pod(name="new")

    parts = [encoded(EventType.DELETED, old), encoded(EventType.ADDED, new)]

    assert decoded(*parts) == [(pb.EVENT_TYPE_DELETED, "old"), (pb.EVENT_TYPE_ADDED, "new")]


def test_an_event_is_encoded_once_for_all_who_watch() -> None:
    encoded = EncodedEvents().encoded
    pod = Pod(name="a")

    first, second = (encoded(EventType.MODIFIED, pod) for _ in range(2))

    assert first is second


def test_one_object_has_an_event_of_each_type() -> None:
    encoded = EncodedEvents().encoded
    pod = Pod(name="a")

    types = [decoded(encoded(kind, pod))[0][0] for kind in EventType]

    assert types == [pb.EVENT_TYPE_ADDED, pb.EVENT_TYPE_MODIFIED, pb.EVENT_TYPE_DELETED]


@pytest.mark.parametrize(("bound", "value"), [("MOST_KEPT", 2), ("MOST_KEPT_BYTES", 64)])
def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, bound: str, value: int) -> None:
    monkeypatch.setattr(events, bound, value)
    encoded = EncodedEvents().encoded
    pods = [Pod(name=f"p{number}") for number in range(4)]
    first = encoded(EventType.ADDED, pods[0])

    for each in pods:
        encoded(EventType.ADDED, each)

    again = encoded(EventType.ADDED, pods[0])
    assert again is not first
    assert again == first
