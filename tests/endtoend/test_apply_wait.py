"""One Apply that waits: what it tells of gangs and trees is what was decided, and durable."""

import threading
import time
from pathlib import Path

from muster.v1 import cluster_service_pb2 as pb
from muster.v1.decision_pb2 import DecisionCode
from muster.v1.object_pb2 import Object
from tests.endtoend.cluster import Cluster
from tests.endtoend.service import Service, gang, member, node
from tests.instances.instance import GroupPlan, Instance, NodePlan, PodPlan
from tests.instances.objects import sets_of

SCHEDULED = DecisionCode.DECISION_CODE_SCHEDULED
UNSCHEDULABLE = DecisionCode.DECISION_CODE_UNSCHEDULABLE


def waiting(cluster: str, objects: list[Object], seconds: float) -> pb.ApplyRequest:
    request = pb.ApplyRequest(cluster=cluster, objects=objects)
    request.wait.FromNanoseconds(int(seconds * 1e9))
    return request


def two_leaves() -> Instance:
    """A gang of two gangs of one pod each, and a node with room for more."""
    root = GroupPlan("root", is_leaf=False, parent=None, minimum=2)
    leaves = [GroupPlan(name, is_leaf=True, parent="root", minimum=1) for name in ("left", "right")]
    pods = [PodPlan(f"{leaf.name}-0", {"cpu": 1_000}, leaf.name) for leaf in leaves]
    return Instance(
        target="root",
        groups={each.name: each for each in (root, *leaves)},
        nodes={"node": NodePlan("node", {"cpu": 8_000, "memory": 8_192}, {})},
        pods={each.name: each for each in pods},
    )


def alone(name: str) -> Object:
    made = member(name, "")
    made.pod.spec.ClearField("scheduling_group")
    return made


def test_a_gang_and_a_tree_are_placed_by_one_call(cluster: Cluster) -> None:
    sets = sets_of(two_leaves())
    objects = [*gang("crew", 2), *sets.surroundings, *sets.parts, sets.root]

    response = cluster.service.cluster.Apply(waiting(cluster.name, objects, 30))

    assert [(each.unit.name, each.code) for each in response.decisions] == [
        ("crew", SCHEDULED),
        ("root", SCHEDULED),
    ]
    assert [list(each.assignments.pods) for each in response.decisions] == [
        ["crew-0", "crew-1"],
        ["left-0", "right-0"],
    ]
    assert cluster.bound() == {"crew-0", "crew-1", "left-0", "right-0"}
    assert {each.id for each in cluster.list_decisions()} == {each.id for each in response.decisions}


def test_what_finds_no_room_is_told_when_the_time_is_over(cluster: Cluster) -> None:
    started = time.monotonic()

    response = cluster.service.cluster.Apply(
        waiting(cluster.name, [node("node", cpu="2"), *gang("wide", 3)], 0.5)
    )

    assert 0.5 <= time.monotonic() - started < 10
    assert [each.code for each in response.decisions] == [UNSCHEDULABLE]
    assert "cpu" in response.decisions[0].message


def test_room_that_comes_ends_the_wait(cluster: Cluster) -> None:
    cluster.apply(node("small", cpu="2"))
    room = threading.Timer(0.5, lambda: cluster.apply(node("large", cpu="8")))
    room.start()

    response = cluster.service.cluster.Apply(waiting(cluster.name, gang("wide", 3), 60))

    room.join()
    assert [each.code for each in response.decisions] == [SCHEDULED]


def test_another_schedulers_pods_are_not_waited_for(cluster: Cluster) -> None:
    mine, foreign = alone("mine"), alone("foreign")
    foreign.pod.spec.scheduler_name = "another"
    objects = [node("node"), foreign, mine]

    response = cluster.service.cluster.Apply(waiting(cluster.name, objects, 30))

    assert [each.unit.name for each in response.decisions] == ["mine"]


def test_in_a_stream_each_answer_has_its_own_decision(cluster: Cluster) -> None:
    cluster.apply(node("node"))
    requests = [waiting(cluster.name, gang(f"crew-{number}", 2), 30) for number in range(3)]

    answers = list(cluster.service.cluster.ApplyStream(iter(requests)))

    told = [[(each.unit.name, each.code) for each in answer.response.decisions] for answer in answers]
    assert told == [[(f"crew-{number}", SCHEDULED)] for number in range(3)]


def test_what_was_told_outlives_the_process(store_url: str, tmp_path: Path) -> None:
    with Service(store_url, tmp_path / "log") as service:
        told = service.cluster.Apply(waiting("", [node("node"), *gang("crew", 2)], 30))
        service.kill()
        service.start()

        bound = [each.pod.spec.node_name for each in service.objects("Pod")]

    assert [each.code for each in told.decisions] == [SCHEDULED]
    assert bound == ["node", "node"]
