"""What holds over the end of a process and the start of the next one on the same store, and how a process ends."""

import threading
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from muster.v1 import cluster_service_pb2 as pb
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode
from muster.v1.queue_pb2 import UnitState
from tests.endtoend.cluster import CALL_SECONDS, Cluster, Replica, identity, outcome_of, refused
from tests.endtoend.service import Service, gang, member, node


def test_a_watch_that_resumes_after_a_kill_ends_in_the_exact_state(store_url: str, tmp_path: Path) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "watched")
        replica = Replica(cluster)
        cluster.apply(node("node"), *gang("early", 3))
        cluster.until_scheduled("early")
        replica.follow_to(cluster.revision())
        cluster.apply(*gang("unseen", 2))
        cluster.delete("Pod", "early-0")

        service.kill()
        service.start()

        cluster.apply(*gang("late", 2))
        cluster.until_scheduled("late")
        replica.follow_to(cluster.revision())
        stored = [
            item for kind in ("Node", "Pod", "PodGroup") for item in service.objects(kind, cluster.name)
        ]
        assert replica.objects == {identity(item): item for item in stored}


def test_a_repeated_request_gets_the_first_answer_from_the_next_process(
    store_url: str, tmp_path: Path
) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "repeated")
        first = cluster.apply(node("node"), *gang("crew", 2), request_id="once")
        cluster.until_scheduled("crew")
        cluster.delete("Pod", "crew-0", "crew-1")

        service.kill()
        service.start()

        again = cluster.apply(node("node"), *gang("crew", 2), request_id="once")
        assert again == first
        assert cluster.nodes() == {}
        with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
            cluster.apply(node("other"), request_id="once")
        assert refusal.error.reason == "REQUEST_ID_REUSED"


def test_a_repeat_of_a_request_that_changed_nothing_changes_nothing_later_either(
    store_url: str, tmp_path: Path
) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "unchanged")
        cluster.apply(node("node", cpu="2"))
        first = cluster.apply(node("node", cpu="2"), request_id="once")
        cluster.apply(node("node", cpu="4"))

        service.kill()
        service.start()

        assert cluster.apply(node("node", cpu="2"), request_id="once") == first
        assert cluster.get("Node", "node").node.status.allocatable["cpu"] == "4"


def test_a_repeated_schedule_gets_the_first_answer_though_the_unit_has_moved_on(
    store_url: str, tmp_path: Path
) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "asked-twice")
        cluster.apply(*gang("crew", 2))
        request = cluster.schedule_request("PodGroup", "crew")
        request.request_id = "once"
        first = service.scheduler.Schedule(request)
        cluster.apply(node("node"))
        cluster.until_scheduled("crew")

        service.kill()
        service.start()

        assert first.decision.code != DecisionCode.DECISION_CODE_SCHEDULED
        assert service.scheduler.Schedule(request) == first
        request.validate_only = True
        with refused(grpc.StatusCode.INVALID_ARGUMENT) as refusal:
            service.scheduler.Schedule(request)
        assert refusal.error.reason == "REQUEST_ID_REUSED"


def test_a_cluster_that_was_deleted_by_a_request_is_not_missed_by_its_repeat(
    store_url: str, tmp_path: Path
) -> None:
    with Service(store_url, tmp_path / "log") as service:
        Cluster(service, "doomed").apply(node("node"))
        request = pb.DeleteClusterRequest(cluster="doomed", request_id="once")

        answers = [service.cluster.DeleteCluster(request) for _ in range(2)]

        assert answers[0] == answers[1]


def test_the_queue_is_where_it_was_after_a_kill_and_goes_on(store_url: str, tmp_path: Path) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "queued")
        held = gang("held", 1)
        held[1].pod.spec.scheduling_gates.add(name="example.com/quota")
        cluster.apply(node("node", cpu="2"), *gang("wide", 3), *held, member("early", "unknown"))
        decided = cluster.schedule("PodGroup", "wide").decision
        before = cluster.queue()

        service.kill()
        service.start()

        assert cluster.queue() == before
        assert cluster.list_decisions()[0] == decided
        cluster.apply(node("room"), gang("unknown", 1)[0])
        cluster.until_scheduled("wide")
        cluster.until_scheduled("unknown")
        assert cluster.bound() == {"wide-0", "wide-1", "wide-2", "early"}
        assert cluster.queued("held").state == UnitState.UNIT_STATE_GATED


def test_decisions_are_watched_on_from_before_a_kill(store_url: str, tmp_path: Path) -> None:
    with Service(store_url, tmp_path / "log") as service:
        cluster = Cluster(service, "decided")
        start = cluster.apply(node("node")).revision
        cluster.apply(*gang("before", 2))
        first = cluster.until_scheduled("before")

        service.kill()
        service.start()

        cluster.apply(*gang("after", 2))
        last = cluster.until_scheduled("after")
        watch = service.scheduler.WatchDecisions(
            spb.WatchDecisionsRequest(cluster=cluster.name, from_revision=start), timeout=CALL_SECONDS
        )
        seen: dict[str, Decision] = {}
        for message in watch:
            seen |= {decision.id: decision for decision in message.decisions}
            if last.id in seen:
                break
        watch.cancel()
        assert (seen[first.id], seen[last.id]) == (first, last)


def test_sigterm_answers_what_was_taken_ends_watches_and_exits_with_0(
    sqlite_database: str, tmp_path: Path
) -> None:
    with Service(sqlite_database, tmp_path / "log") as service:
        service.cluster.Apply(pb.ApplyRequest(objects=[node("node")]))
        watch = service.cluster.Watch(pb.WatchRequest(), timeout=CALL_SECONDS)
        next(watch)
        ended: list[grpc.StatusCode] = []
        watching = threading.Thread(target=lambda: ended.append(outcome_of(lambda: list(watch))))
        watching.start()
        in_work = service.cluster.Apply.future(
            pb.ApplyRequest(objects=gang("crew", 2_000)), timeout=CALL_SECONDS
        )

        status = service.stop()

        watching.join()
        taken = outcome_of(in_work.result) is grpc.StatusCode.OK
        assert status == 0
        assert ended == [grpc.StatusCode.UNAVAILABLE]
        service.start()
        assert len(service.objects("Pod")) == (2_000 if taken else 0)


def test_a_unix_socket_serves_like_an_address(sqlite_database: str, tmp_path: Path) -> None:
    socket = tmp_path / "muster.sock"
    with Service(sqlite_database, tmp_path / "log", ["--listen", "", "--uds", str(socket)]) as service:
        cluster = Cluster(service, "")
        cluster.apply(node("node"), *gang("crew", 2))

        cluster.until_scheduled("crew")

        health = HealthStub(service.channel).Check(HealthCheckRequest())  # type: ignore[attr-defined]
        assert cluster.bound() == {"crew-0", "crew-1"}
        assert socket.is_socket()
        assert health.status == HealthCheckResponse.SERVING
