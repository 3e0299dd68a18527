"""A service whose profile makes reservations: what it tells of one, and that a restart comes to the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from muster.model.run_time import MAX_RUN_TIME_SECONDS
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision, DecisionCode, Reason
from muster.v1.meta_pb2 import ObjectRef
from muster.v1.object_pb2 import Object
from muster.v1.pod_report_pb2 import PodReport
from tests.endtoend.cluster import CALL_SECONDS, Cluster
from tests.endtoend.service import LOCAL, Service, gang, member, node
from tests.endtoend.test_preemption import until

_numbers = itertools.count(1)
PROFILE = """
profile_definitions:
  - name: default-scheduler
    reservation:
      afterSeconds: 0
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("reserving")
    config = folder / "server.yaml"
    config.write_text(PROFILE, encoding="utf-8")
    arguments = (*LOCAL, "--config", str(config))
    with Service(f"sqlite:///{folder / 'muster.db'}", folder / "log", arguments) as running:
        yield running


@pytest.fixture
def cluster(service: Service) -> Cluster:
    """A gang that needs the whole node, and the pod that is in its way for an hour."""
    cluster = Cluster(service, f"cluster-{next(_numbers)}")
    busy = single("busy", 3_600)
    busy.pod.spec.node_name = "n"
    cluster.apply(node("n", cpu="4"), busy)
    cluster.apply(*gang("crew", 4))
    until(lambda: reserved(cluster) != [])
    return cluster


def single(name: str, run_seconds: int) -> Object:
    made = member(name, "")
    made.pod.spec.ClearField("scheduling_group")
    made.pod.metadata.annotations[MAX_RUN_TIME_SECONDS] = str(run_seconds)
    return made


def reserved(cluster: Cluster) -> list[Reason]:
    return [each for each in cluster.queued("crew").reasons if each.code == "RESERVED"]


def decided(cluster: Cluster, name: str) -> Decision:
    return cluster.schedule("Pod", name).decision


def test_the_queue_tells_of_the_room_and_of_the_estimated_start(cluster: Cluster) -> None:
    [reason] = reserved(cluster)

    assert reason.node_count == 1
    assert reason.details["pods"] == "4"
    assert reason.message == (
        f"room on 1 node is reserved, estimated start {reason.details['estimated_start']}"
    )


def test_a_restart_comes_to_the_same_reservation(service: Service, cluster: Cluster) -> None:
    before = reserved(cluster)

    service.kill()
    service.start()
    until(lambda: reserved(cluster) != [])

    assert reserved(cluster) == before


def test_a_short_pod_uses_the_room_and_a_long_one_waits(cluster: Cluster) -> None:
    cluster.apply(single("short", 1_000), single("long", 7_200))

    codes = {name: decided(cluster, name).code for name in ("short", "long")}

    assert codes == {
        "short": DecisionCode.DECISION_CODE_SCHEDULED,
        "long": DecisionCode.DECISION_CODE_UNSCHEDULABLE,
    }


def test_a_decision_that_a_reservation_bound_comes_out_equal_when_it_is_made_again(
    service: Service, cluster: Cluster
) -> None:
    cluster.apply(single("long", 7_200))
    decision = decided(cluster, "long")

    request = spb.GetDecisionRequest(cluster=cluster.name, id=decision.id, rerun=True)
    again = service.scheduler.GetDecision(request, timeout=CALL_SECONDS).rerun

    assert not again.not_possible
    assert (again.same_input, again.equal) == (True, True)


def test_an_explanation_and_a_simulation_know_of_the_reservation(service: Service, cluster: Cluster) -> None:
    cluster.apply(single("long", 7_200))
    decided(cluster, "long")
    unit = ObjectRef(kind="Pod", name="long")

    explained = service.scheduler.Explain(
        spb.ExplainRequest(cluster=cluster.name, unit=unit), timeout=CALL_SECONDS
    )
    simulated = service.scheduler.Simulate(
        spb.SimulateRequest(cluster=cluster.name, units=[unit]), timeout=CALL_SECONDS
    )

    assert "ROOM_PROMISED" in {reason.code for reason in explained.result.reasons}
    assert [each.code for each in simulated.decisions] == [DecisionCode.DECISION_CODE_UNSCHEDULABLE]


def test_the_gang_starts_once_the_room_is_free_before_a_pod_that_waits_for_it_too(cluster: Cluster) -> None:
    cluster.apply(single("long", 7_200))
    report = PodReport(name="busy")
    report.phase_changed.phase = "Succeeded"

    cluster.report(report)

    until(lambda: {f"crew-{i}" for i in range(4)} <= cluster.bound())
    assert "long" not in cluster.bound()
