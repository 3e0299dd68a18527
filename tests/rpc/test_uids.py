"""A uid that is set in a reference must be that of the object, wherever a request may name one."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from muster.core.decision import Decision, DecisionCode
from muster.engine.ports import DecisionRecord
from muster.model.meta import ObjectKey
from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.meta_pb2 import ObjectRef
from tests.fakes.engine import FakeEngine
from tests.rpc.calls import Api, apply, pod, pod_group, ref, refused

OTHER = ref("Pod", "a", uid="other")

NAMING: dict[str, Callable[[Api, ObjectRef], Awaitable[Any]]] = {
    "Get": lambda api, named: api.cluster.Get(pb.GetRequest(ref=named)),
    "Schedule": lambda api, named: api.scheduler.Schedule(spb.ScheduleRequest(unit=named)),
    "Preempt": lambda api, named: api.scheduler.Preempt(spb.PreemptRequest(unit=named)),
    "Explain": lambda api, named: api.scheduler.Explain(spb.ExplainRequest(unit=named)),
    "ListDecisions": lambda api, named: api.scheduler.ListDecisions(spb.ListDecisionsRequest(unit=named)),
    "WatchDecisions": lambda api, named: api.scheduler.WatchDecisions(
        spb.WatchDecisionsRequest(units=[named])
    ).read(),
}


@pytest.mark.parametrize("method", NAMING)
async def test_another_uid_than_that_of_the_object_is_a_conflict(api: Api, method: str) -> None:
    await apply(api, pod("a"))

    answer = await refused(NAMING[method](api, OTHER))

    assert (answer.code, answer.reason) == (grpc.StatusCode.ABORTED, "UID_MISMATCH")
    (violation,) = answer.detail(error_details_pb2.PreconditionFailure).violations
    assert violation.subject == "Pod default/a"


async def test_another_uid_than_that_of_the_group_is_a_conflict_in_a_list(api: Api) -> None:
    await apply(api, pod_group("g"))
    request = pb.ListRequest(kind="Pod", group=ref("PodGroup", "g", uid="other"))

    answer = await refused(api.cluster.List(request))

    assert answer.reason == "UID_MISMATCH"


async def test_a_watch_names_all_units_of_other_uids(api: Api) -> None:
    await apply(api, pod("a"), pod("b"), pod("c"))
    units = [OTHER, ref("Pod", "b"), ref("Pod", "c", uid="other")]

    answer = await refused(api.scheduler.WatchDecisions(spb.WatchDecisionsRequest(units=units)).read())

    violations = answer.detail(error_details_pb2.PreconditionFailure).violations
    assert [each.subject for each in violations] == ["Pod default/a", "Pod default/c"]


async def test_decisions_on_a_unit_that_is_gone_are_listed_whatever_uid_it_had(
    api: Api, engine: FakeEngine
) -> None:
    decision = Decision(ObjectKey("Pod", "default", "a"), DecisionCode.SCHEDULED)
    engine.add_decision(DecisionRecord("1", 0, 0, decision))

    listed = await api.scheduler.ListDecisions(spb.ListDecisionsRequest(unit=OTHER))

    assert [each.id for each in listed.decisions] == ["1"]
