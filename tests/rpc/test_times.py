"""Times and lengths of time in requests: what is none is refused, with a text that says what is wrong with it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from muster.rpc.deadlines import Deadlines
from muster.rpc.limits import MAX_WAIT_SECONDS, ServingLimits
from muster.rpc.reports import decode_reports
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.pod_report_pb2 import PodPhaseChanged, PodReport
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, apply, batch, pod, ref, refused

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


@pytest.mark.parametrize("nanos", [-1, 10**9])
@pytest.mark.parametrize("field", ["start_time", "end_time"])
async def test_a_time_whose_nanos_are_none_is_not_listed_by(api: Api, field: str, nanos: int) -> None:
    request = spb.ListDecisionsRequest(**{field: Timestamp(seconds=5, nanos=nanos)})  # type: ignore[arg-type]

    answer = await refused(api.scheduler.ListDecisions(request))

    assert f"a time must have nanos from 0 to 999999999, not {nanos}" in answer.message


@pytest.mark.parametrize("seconds", [-62_135_596_801, 253_402_300_800])
async def test_a_time_in_no_year_is_not_listed_by(api: Api, seconds: int) -> None:
    request = spb.ListDecisionsRequest(start_time=Timestamp(seconds=seconds))

    answer = await refused(api.scheduler.ListDecisions(request))

    assert "a time is between the years 1 and 9999" in answer.message


@pytest.mark.parametrize("group", ["", "g"])
@pytest.mark.parametrize("nanos", [-1, 10**9])
async def test_a_pod_that_started_at_no_time_is_refused(
    api: Api, engine: FakeEngine, group: str, nanos: int
) -> None:
    sent = pod("a")
    sent.pod.status.start_time.CopyFrom(Timestamp(seconds=5, nanos=nanos))
    if group:
        sent.pod.spec.scheduling_group.pod_group_name = group
    template = batch(["b"])
    template.pod_batch.template.status.CopyFrom(sent.pod.status)

    answer = await refused(apply(api, pod("right"), sent, template))

    assert answer.fields == {
        "objects[1].pod.status.startTime": "INVALID",
        "objects[2].podBatch.template.status.startTime": "INVALID",
    }
    assert not engine.clusters["default"].objects


@pytest.mark.parametrize("nanos", [-1, 10**9])
def test_a_report_of_a_start_at_no_time_says_nothing(nanos: int) -> None:
    started = PodPhaseChanged(phase="Running", start_time=Timestamp(seconds=5, nanos=nanos))

    (decoded,) = decode_reports([PodReport(name="a", phase_changed=started)])

    assert decoded.report is None


async def test_a_wait_out_of_range_sets_no_timer_for_so_long(
    api: Api, limits: ServingLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    within, seconds_set = Deadlines.within, []

    async def noted(self: Deadlines, seconds: float, method: str, work: Awaitable[Any]) -> object:
        seconds_set.append(seconds)
        return await within(self, seconds, method, work)

    monkeypatch.setattr(Deadlines, "within", noted)

    await refused(WITH_A_LENGTH["Schedule"](api, Duration(seconds=10**12)))

    assert seconds_set == [limits.deadline_seconds + MAX_WAIT_SECONDS]
