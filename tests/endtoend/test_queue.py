"""What GetQueue tells of units that wait, from a real service."""

from pathlib import Path

from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.cluster_service_pb2 import ApplyRequest
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.queue_pb2 import UnitState
from muster.v1.scheduler_service_pb2_grpc import SchedulerServiceStub
from tests.endtoend.service import Service, gang, member, node


def test_a_waiting_gang_shows_its_state_and_how_many_pods_want_a_node(
    sqlite_database: str, tmp_path: Path
) -> None:
    with Service(sqlite_database, tmp_path / "log") as service:
        service.cluster.Apply(ApplyRequest(objects=[node("node", cpu="2"), *gang("wide", 3)]))
        stub = SchedulerServiceStub(service.channel)
        stub.Schedule(spb.ScheduleRequest(unit=ObjectRef(kind="PodGroup", name="wide")))

        waiting = stub.GetQueue(spb.GetQueueRequest()).units

        assert [(unit.unit.name, unit.state, unit.pending_pod_count) for unit in waiting] == [
            ("wide", UnitState.UNIT_STATE_UNSCHEDULABLE, 3)
        ]


def test_a_scheduled_gang_answers_schedule_with_its_last_decision(
    sqlite_database: str, tmp_path: Path
) -> None:
    with Service(sqlite_database, tmp_path / "log") as service:
        service.cluster.Apply(ApplyRequest(objects=[node("node"), *gang("crew", 2)]))
        stub = SchedulerServiceStub(service.channel)
        request = spb.ScheduleRequest(unit=ObjectRef(kind="Pod", name="crew-0"))
        first = stub.Schedule(request)

        again = stub.Schedule(request)

        assert (again.fresh, again.decision.id) == (False, first.decision.id)
        assert sorted(again.decision.assignments.pods) == ["crew-0", "crew-1"]


def test_a_pod_without_its_group_waits_in_the_pending_structures_until_the_group_comes(
    sqlite_database: str, tmp_path: Path
) -> None:
    with Service(sqlite_database, tmp_path / "log") as service:
        service.cluster.Apply(ApplyRequest(objects=[node("node"), member("early", "late")]))
        stub = SchedulerServiceStub(service.channel)
        before = stub.GetQueue(spb.GetQueueRequest())

        service.cluster.Apply(ApplyRequest(objects=[gang("late", 1)[0]]))

        stub.Schedule(spb.ScheduleRequest(unit=ObjectRef(kind="PodGroup", name="late")))
        after = stub.GetQueue(spb.GetQueueRequest())
        assert [each.ref.name for each in before.pending_pod_group_members] == ["early"]
        assert not after.pending_pod_group_members
        assert [item.pod.spec.node_name for item in service.objects("Pod")] == ["node"]
