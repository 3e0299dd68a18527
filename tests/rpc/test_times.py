"""Times and lengths of time in requests: what is none is refused, with a text that says what is wrong with it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, pod, ref, refused

WITH_A_LENGTH: dict[str, Callable[[Api, Duration], Awaitable[Any]]] = {
    "Apply": lambda api, length: api.cluster.Apply(pb.ApplyRequest(objects=[pod("a")], wait=length)),
    "Schedule": lambda api, length: api.scheduler.Schedule(
        spb.ScheduleRequest(unit=ref("Pod", "a"), wait=length)
    ),
    "Simulate": lambda api, length: api.scheduler.Simulate(
        spb.SimulateRequest(whole_queue=True, time_limit=length)
    ),
}


@pytest.mark.parametrize("method", WITH_A_LENGTH)
@pytest.mark.parametrize(
    ("length", "text"),
    [
        pytest.param(
            Duration(seconds=1, nanos=-1), "seconds and nanos of one sign, not 1 and -1", id="two signs"
        ),
        pytest.param(
            Duration(seconds=1, nanos=10**9),
            "nanos from -999999999 to 999999999, not 1000000000",
            id="nanos of a second",
        ),
        pytest.param(Duration(seconds=600, nanos=1), "seconds, not 600.000000001", id="a little more"),
        pytest.param(Duration(nanos=-1), "seconds, not -0.000000001", id="a little less"),
    ],
)
async def test_what_is_no_length_or_out_of_range_is_told_as_that(
    api: Api, engine: FakeEngine, method: str, length: Duration, text: str
) -> None:
    answer = await refused(WITH_A_LENGTH[method](api, length))

    assert answer.fields == {"timeLimit" if method == "Simulate" else "wait": "INVALID"}
    assert text in answer.message
    assert not engine.clusters["default"].objects
