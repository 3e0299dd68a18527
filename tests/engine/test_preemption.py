"""A preemption is carried out whole in one revision (semantics 5.6, 5.7)."""

from __future__ import annotations

from dataclasses import replace

from muster.core.decision import PreemptionEnd
from muster.engine.eviction import PREEMPTION_BY_SCHEDULER
from muster.engine.log_entries import EventType
from muster.engine.ports import UnitState
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import Condition
from muster.model.pod import Pod
from tests.engine.preempting_cluster import (
    CLIENTS_EVICT,
    GRACE,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITING,
    full_cluster,
    gang,
    leaving,
    low,
    names_of,
    nominated,
    remove,
    room_being_left,
    target,
)
from tests.engine.tree_cluster import TreeCluster, composite, leaf, node, pods


def test_victims_without_grace_go_in_the_revision_of_the_decision() -> None:
    cluster, group = full_cluster()

    decision = cluster.cycle()

    assert decision is not None
    assert decision.code is WAITING
    [entry] = [
        each for each in cluster.cluster.writes().entries if each.revision == cluster.cluster.state.revision
    ]
    gone = [change.object for change in entry.changes if change.type is EventType.DELETED]
    assert len(gone) == 2
    assert {target(pod.status.conditions) for pod in gone if isinstance(pod, Pod)} == {
        ("True", PREEMPTION_BY_SCHEDULER)
    }
    assert nominated(cluster) == {"high-0": "n", "high-1": "n"}
    assert cluster.state_of(group) is UnitState.ACTIVE
    assert cluster.cycles() == [SCHEDULED]
    assert {"high-0", "high-1"} <= cluster.bound()
    assert nominated(cluster) == {}


def test_victims_with_grace_are_marked_and_use_their_room_until_it_ends() -> None:
    cluster, group = full_cluster(grace=GRACE)

    codes = cluster.cycles()

    assert codes == [WAITING]
    assert len(leaving(cluster)) == 2
    assert cluster.bound().isdisjoint({"high-0", "high-1"})
    assert cluster.state_of(group) is UnitState.WAITING_FOR_PREEMPTION
    status, reason, message = cluster.says(group)
    assert (status, reason) == ("False", "Unschedulable")
    assert message == "waiting for preemption of 2 pods"
    for name in leaving(cluster):
        assert cluster.pod(name).deletion_grace_seconds == GRACE
        assert target(cluster.pod(name).status.conditions) == ("True", PREEMPTION_BY_SCHEDULER)

    cluster.later(GRACE)

    assert cluster.cycles() == [SCHEDULED]
    assert {"high-0", "high-1"} <= cluster.bound()


def test_where_clients_evict_victims_stay_until_they_are_reported_removed() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)

    cluster.later(10)
    before = cluster.cycles(), names_of(cluster) >= victims
    first, second = victims
    remove(cluster, first)
    between = cluster.cycles(), cluster.state_of(group)
    remove(cluster, second)

    assert before == ([], True)
    assert between == ([WAITING], UnitState.WAITING_FOR_PREEMPTION)
    assert cluster.says(group)[2] == "waiting for preemption of 1 pod"
    assert cluster.cycles() == [SCHEDULED]


def test_the_record_names_victims_nominations_and_those_who_could_stay() -> None:
    cluster, group = full_cluster()

    cluster.cycle()

    record = cluster.cluster.last_decisions.get(group.key)
    assert record is not None
    preemption = record.decision.preemption
    assert preemption is not None
    assert preemption.end is PreemptionEnd.NOMINATED
    assert (len(preemption.victims), len(preemption.reprieved)) == (2, 1)
    assert (record.nominations.pods, record.nominations.nodes) == (("high-0", "high-1"), ("n",))
    named = dict(zip(record.disrupted.ordinals, record.disrupted.names, strict=True))
    assert {named[ordinal] for unit in preemption.victims for ordinal in unit.pods} == {
        "low-0",
        "low-1",
        "low-2",
    } - names_of(cluster)


def test_a_group_that_goes_whole_and_all_below_it_say_so() -> None:
    cluster = TreeCluster(node("n", cpu=3))
    top = composite("top", priority=1, whole=True)
    child = leaf("child", 1, priority=1, parent=top, whole=True)
    beside = leaf("beside", 1, priority=1, whole=True)
    groups: list[AnyGroup] = [top, child, beside]
    cluster.apply(*groups, *pods(child, 2, priority=1, on="n"), *pods(beside, 1, priority=1, on="n"))
    group, members = gang()
    cluster.apply(group, *members)

    cluster.cycle()

    told = {each.name: target(_conditions(cluster, each)) for each in groups}
    assert told == {
        "top": ("True", PREEMPTION_BY_SCHEDULER),
        "child": ("True", PREEMPTION_BY_SCHEDULER),
        "beside": ("", ""),
    }
    assert "beside-0" in names_of(cluster)


def _conditions(cluster: TreeCluster, group: AnyGroup) -> tuple[Condition, ...]:
    found = cluster.get(group)
    assert isinstance(found, PodGroup | CompositePodGroup)
    return found.conditions


def test_two_preemptors_do_not_get_the_same_room() -> None:
    cluster = TreeCluster(node("n", cpu=4))
    cluster.eviction = CLIENTS_EVICT
    cluster.apply(*low(4))
    one, two = gang("one"), gang("two")
    cluster.apply(one[0], two[0], *one[1], *two[1])

    codes = cluster.cycles()
    remove(cluster, *leaving(cluster))

    assert codes == [WAITING, WAITING]
    assert cluster.cycles() == [SCHEDULED, SCHEDULED]
    assert len(cluster.bound()) == 4


def test_a_third_preemptor_without_room_left_evicts_nobody() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)
    other, members = gang("other", 2)

    cluster.apply(other, *members)
    codes = cluster.cycles()

    assert codes == [UNSCHEDULABLE]
    assert leaving(cluster) == victims
    assert cluster.state_of(other) is UnitState.UNSCHEDULABLE


def test_room_that_is_being_left_already_is_nominated_without_victims() -> None:
    cluster = room_being_left()
    group, members = gang()

    cluster.apply(group, *members)

    codes = cluster.cycles()
    assert codes == [WAITING]
    record = cluster.cluster.last_decisions.get(group.key)
    assert record is not None
    preemption = record.decision.preemption
    assert preemption is not None
    assert (preemption.victims, len(preemption.awaited)) == ((), 2)
    assert cluster.says(group)[2].startswith("waiting for preemption of 2 pods")
    cluster.later(GRACE)
    assert cluster.cycles() == [SCHEDULED]


def test_a_victim_that_finishes_by_itself_is_gone() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    for name in leaving(cluster):
        pod = cluster.pod(name)
        cluster.apply(replace(pod, status=replace(pod.status, phase="Succeeded")))

    assert cluster.cycles()[-1] is SCHEDULED
