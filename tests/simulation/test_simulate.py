"""Simulate as clients see it: what would be decided, what it adds up to, and that nothing comes of it."""

from __future__ import annotations

import pytest

from muster.v1 import object_pb2
from muster.v1.meta_pb2 import ObjectRef
from tests.endtoend.service import gang, node
from tests.endtoend.test_preemption import high, running
from tests.simulation.asking import Simulated, code, codes, labelled, places


def test_objects_of_an_overlay_are_decided_and_not_stored(cluster: Simulated) -> None:
    cluster.apply(node("n"))
    before = cluster.revision()

    answer = cluster.simulate("g", objects=gang("g", 3))

    assert codes(answer) == {"g": "SCHEDULED"}
    assert places(answer.decisions[0]) == {"g-0": "n", "g-1": "n", "g-2": "n"}
    assert (answer.revision, cluster.revision()) == (before, before)
    assert not cluster.nodes()
    assert not cluster.list_decisions()


def test_a_simulation_sees_what_was_acknowledged_before_it(cluster: Simulated) -> None:
    cluster.apply(node("n", "2"))
    cluster.simulate("first", objects=gang("first", 1))
    cluster.apply(node("m", "8"))

    answer = cluster.simulate("g", objects=gang("g", 8))

    assert codes(answer) == {"g": "SCHEDULED"}
    assert "m" in places(answer.decisions[0]).values()


def test_each_unit_is_decided_on_what_those_before_it_leave(cluster: Simulated) -> None:
    cluster.apply(node("n", "4"))

    answer = cluster.simulate("a", "b", objects=[*gang("a", 3), *gang("b", 3)])

    assert codes(answer) == {"a": "SCHEDULED", "b": "UNSCHEDULABLE"}


def test_the_whole_queue_is_decided_in_its_order(cluster: Simulated) -> None:
    cluster.apply(node("n", "1"))
    cluster.apply(*gang("low", 2))
    cluster.apply(*high(3))
    for name in ("low", "high"):
        cluster.schedule("PodGroup", name)

    answer = cluster.simulate(objects=[node("new", "3")])

    assert [(each.unit.name, code(each)) for each in answer.decisions] == [
        ("high", "SCHEDULED"),
        ("low", "UNSCHEDULABLE"),
    ]


def test_removed_objects_make_room(cluster: Simulated) -> None:
    cluster.apply(node("n", "3"), *gang("old", 3))
    cluster.until_scheduled("old")
    members = [ObjectRef(kind="Pod", name=f"old-{i}") for i in range(3)]

    answer = cluster.simulate(
        "new", objects=gang("new", 3), removed=[*members, ObjectRef(kind="PodGroup", name="old")]
    )

    assert codes(answer) == {"new": "SCHEDULED"}
    assert len(cluster.bound()) == 3


def test_pods_of_a_drained_node_look_for_another(cluster: Simulated) -> None:
    cluster.apply(node("a", "4"), *gang("g", 3))
    cluster.until_scheduled("g")
    cluster.apply(node("b", "4"))

    answer = cluster.simulate(drained=["a"])

    assert codes(answer) == {"g": "SCHEDULED"}
    assert set(places(answer.decisions[0]).values()) == {"b"}
    assert set(cluster.nodes().values()) == {"a"}


def test_a_drained_node_takes_nothing_new(cluster: Simulated) -> None:
    cluster.apply(node("a", "4"))

    answer = cluster.simulate("g", objects=gang("g", 3), drained=["a"])

    assert codes(answer) == {"g": "UNSCHEDULABLE_AND_UNRESOLVABLE"}


def test_victims_are_named_and_stay(cluster: Simulated) -> None:
    cluster.apply(node("n", "4"), *running(4))

    answer = cluster.simulate("high", objects=high(2))

    assert codes(answer) == {"high": "WAITING_FOR_PREEMPTION"}
    assert (answer.totals.preempting_units, answer.totals.victim_pods, answer.totals.placed_pods) == (1, 2, 2)
    assert len(answer.decisions[0].preemption.victims) == 2
    assert len(cluster.bound()) == 4


def test_without_preemption_nobody_has_to_go(cluster: Simulated) -> None:
    cluster.apply(node("n", "4"), *running(4))

    answer = cluster.simulate("high", objects=high(2), without_preemption=True)

    assert codes(answer) == {"high": "UNSCHEDULABLE"}
    assert not answer.decisions[0].HasField("preemption")
    assert (answer.totals.unscheduled_units, answer.totals.pending_pods) == (1, 2)


def test_objects_sent_along_are_a_cluster_of_their_own(cluster: Simulated) -> None:
    cluster.apply(node("real", "16"))

    answer = cluster.simulate("g", inline=[node("sent", "2"), *gang("g", 2)])

    assert places(answer.decisions[0]) == {"g-0": "sent", "g-1": "sent"}
    assert answer.revision == 0


def test_an_overlay_may_lie_on_objects_sent_along(cluster: Simulated) -> None:
    answer = cluster.simulate(
        "g", inline=[node("a", "2"), *gang("g", 2)], objects=[node("b", "2")], drained=["a"]
    )

    assert places(answer.decisions[0]) == {"g-0": "b", "g-1": "b"}


def test_a_gated_unit_says_so(cluster: Simulated) -> None:
    answer = cluster.simulate("g", inline=gang("g", 3)[:2])

    assert codes(answer) == {"g": "GATED"}


def test_a_unit_with_nothing_pending_is_left_alone(cluster: Simulated) -> None:
    cluster.apply(node("n"), *gang("g", 1))
    cluster.until_scheduled("g")

    answer = cluster.simulate("g")

    assert codes(answer) == {"g": "UNCHANGED"}


def test_objects_of_one_unit_name_it_once(cluster: Simulated) -> None:
    answer = cluster.simulate("g", "g", inline=[node("n"), *gang("g", 1)])

    assert len(answer.decisions) == 1


def test_use_is_told_by_resource_before_and_after(cluster: Simulated) -> None:
    cluster.apply(node("n", "10"), *gang("old", 2))
    cluster.until_scheduled("old")

    [cpu] = [
        each
        for each in cluster.simulate("g", objects=gang("g", 3)).totals.resources
        if each.resource == "cpu"
    ]

    assert (cpu.allocatable, cpu.used_before, cpu.used) == ("10", "2", "5")
    assert cpu.utilization == pytest.approx(0.5)


def test_use_is_told_by_the_domains_that_groups_are_constrained_by(cluster: Simulated) -> None:
    cluster.apply(labelled("a", "4", rack="r1"), labelled("b", "8", rack="r2"), labelled("c", "8"))
    group, *pods = gang("g", 6)
    group.pod_group.spec.scheduling_constraints.topology.add(key="rack")

    domains = cluster.simulate("g", objects=[group, *pods]).totals.domains

    assert [(each.key, each.value, each.nodes) for each in domains] == [("rack", "r1", 1), ("rack", "r2", 1)]
    used = {each.value: {use.resource: use.used for use in each.resources}["cpu"] for each in domains}
    assert used == {"r1": "0", "r2": "6"}


def test_what_is_free_in_pieces_too_small_is_fragmented(cluster: Simulated) -> None:
    nodes = [node("a", "1"), node("b", "1"), node("c", "2")]
    pods: list[object_pb2.Object] = gang("g", 1)
    pods[1].pod.spec.containers[0].resources.requests["cpu"] = "2"
    pods[1].pod.spec.node_name = "c"

    [cpu] = [
        each for each in cluster.simulate(inline=[*nodes, *pods]).totals.resources if each.resource == "cpu"
    ]

    assert cpu.fragmentation == pytest.approx(1.0)
