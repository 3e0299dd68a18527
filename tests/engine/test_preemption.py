"""A preemption is carried out whole in one revision, and its unit waits for the room (semantics 5.6, 5.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.core.decision import DecisionCode, PreemptionEnd
from muster.engine.api import PodReport, Removed, ReportCall
from muster.engine.eviction import PREEMPTION_BY_SCHEDULER, Eviction
from muster.engine.ports import EventType, UnitState
from muster.engine.reports import report
from muster.model.group import AnyGroup, CompositePodGroup, PodGroup
from muster.model.meta import Condition
from muster.model.pod import DISRUPTION_TARGET, Pod
from tests.engine.tree_cluster import TreeCluster, composite, leaf, node, pods

SCHEDULED, WAITING = DecisionCode.SCHEDULED, DecisionCode.WAITING_FOR_PREEMPTION
UNSCHEDULABLE = DecisionCode.UNSCHEDULABLE
GRACE = 30
CLIENTS_EVICT = Eviction(by_clients=True)


def low(count: int = 3, *, grace: int = 0, on: str = "n", first: int = 0, priority: int = 1) -> list[Pod]:
    """Pods of one core without a group, that already run."""
    made = pods(leaf("low"), count, first=first, priority=priority, on=on)
    return [
        replace(pod, group="", spec=replace(pod.spec, termination_grace_period_seconds=grace)) for pod in made
    ]


def gang(name: str = "high", size: int = 2, *, priority: int = 10) -> tuple[PodGroup, list[Pod]]:
    group = leaf(name, size, priority=priority)
    return group, pods(group, size, priority=priority)


def full_cluster(
    *, cores: int = 3, grace: int = 0, eviction: Eviction | None = None
) -> tuple[TreeCluster, PodGroup]:
    """A node that is full of pods of low priority, of one core each, and a gang that needs two cores."""
    cluster = TreeCluster(node("n", cpu=cores))
    cluster.eviction = eviction or cluster.eviction
    cluster.apply(*low(cores, grace=grace))
    group, members = gang()
    cluster.apply(group, *members)
    return cluster, group


def names_of(cluster: TreeCluster) -> set[str]:
    return {name for _, name in cluster.cluster.state.objects["Pod"]}


def nominated(cluster: TreeCluster) -> dict[str, str]:
    return {pod.name: pod.status.nominated_node_name for pod in cluster.cluster.state.nominated.values()}


def leaving(cluster: TreeCluster) -> set[str]:
    return {pod.name for pod in cluster.cluster.disruption.leaving.values()}


def target(conditions: tuple[Condition, ...]) -> tuple[str, str]:
    found = next((each for each in conditions if each.type == DISRUPTION_TARGET), None)
    return (found.status, found.reason) if found is not None else ("", "")


def remove(cluster: TreeCluster, *names: str) -> None:
    """A client reports pods as removed."""
    reports = [PodReport("default", name, "", Removed()) for name in names]
    cluster.change(lambda mutation: report(mutation, ReportCall("default", reports), clients_evict=True))


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

    record = cluster.cluster.last_decisions[group.key]
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


@pytest.mark.parametrize("priority", [10, 5], ids=["equal", "lower"])
def test_nominated_room_is_not_given_to_equal_or_lower_units(priority: int) -> None:
    cluster, _ = full_cluster(cores=2, eviction=CLIENTS_EVICT)
    cluster.cycles()
    remove(cluster, next(iter(leaving(cluster))))
    other, members = gang("other", 1, priority=priority)

    cluster.apply(other, *members)

    assert set(cluster.cycles()) == {WAITING, UNSCHEDULABLE}
    assert cluster.state_of(other) is UnitState.UNSCHEDULABLE
    assert nominated(cluster) == {"high-0": "n", "high-1": "n"}


def test_nominated_room_may_be_taken_by_a_higher_unit() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    other, members = gang("other", 3, priority=20)
    cluster.apply(other, *members)

    assert cluster.cycles() == [WAITING]
    remove(cluster, "low-0", "low-1", "low-2")
    codes = cluster.cycles()

    assert codes[0] is SCHEDULED
    assert {"other-0", "other-1", "other-2"} <= cluster.bound()
    assert nominated(cluster) == {}
    assert cluster.state_of(group) is UnitState.UNSCHEDULABLE


def test_nobody_else_is_evicted_while_victims_are_leaving() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)

    cluster.apply(node("unrelated", cpu=1))
    cluster.later(2)

    assert set(cluster.cycles()) == {WAITING}
    assert leaving(cluster) == victims


def test_a_unit_that_waits_is_bound_elsewhere_once_it_fits_there() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    cluster.apply(node("new", cpu=2))

    assert cluster.cycles() == [SCHEDULED]
    assert {cluster.pod(name).node_name for name in ("high-0", "high-1")} == {"new"}
    assert nominated(cluster) == {}


def test_a_wait_that_takes_too_long_ends_and_the_condition_names_who_stayed() -> None:
    cluster, group = full_cluster(grace=GRACE, eviction=Eviction(by_clients=True, timeout_seconds=60))
    cluster.cycles()
    stayed = sorted(leaving(cluster))

    cluster.later(GRACE + 59)
    early = cluster.cycles(), len(nominated(cluster))
    cluster.later(1)

    assert early == ([], 2)
    assert nominated(cluster) == {}
    expected = f"2 pods did not leave in time: Pod default/{stayed[0]}, Pod default/{stayed[1]}"
    assert expected in cluster.says(group)[2]
    assert cluster.cycles() == [UNSCHEDULABLE]
    assert expected in cluster.says(group)[2]


def test_pods_that_stayed_are_not_waited_for_again_until_they_are_gone() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    stayed = leaving(cluster)
    cluster.later(61)
    cluster.cycles()

    cluster.apply(node("m", cpu=2), *low(2, on="m", first=7))
    codes = cluster.cycles()
    others = leaving(cluster) - stayed
    remove(cluster, *others)

    assert codes == [WAITING]
    assert len(others) == 2
    assert cluster.cycles() == [SCHEDULED]
    assert stayed == leaving(cluster)


def test_a_preemptor_that_is_deleted_frees_its_room_for_others() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    remove(cluster, next(iter(leaving(cluster))))
    cluster.cycles()
    other, members = gang("other", 1, priority=5)
    cluster.apply(other, *members)
    waits = cluster.cycles()

    cluster.delete(*pods(group, 2), group)

    assert SCHEDULED not in waits
    assert cluster.cycles() == [SCHEDULED]
    assert cluster.cluster.waits.units() == []
    assert cluster.stored_waits() == []


def test_a_preemptor_that_becomes_gated_gives_up_its_nominations() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    cluster.delete(pods(group, 1)[0])

    assert cluster.state_of(group) is UnitState.GATED
    assert nominated(cluster) == {}
    assert cluster.stored_waits() == []


def test_a_preemptor_whose_layout_is_at_fault_gives_up_its_nominations() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    cluster.delete(group, force=True)
    assert nominated(cluster) == {}

    cluster.apply(replace(group, spec=replace(group.spec, priority=10)))

    assert cluster.cycles() == [WAITING]
    assert set(nominated(cluster)) == {"high-0", "high-1"}


def test_a_restart_resumes_a_wait() -> None:
    cluster, group = full_cluster(grace=GRACE)
    cluster.cycles()

    again = cluster.restarted()

    assert again.state_of(group) is UnitState.WAITING_FOR_PREEMPTION
    assert nominated(again) == {"high-0": "n", "high-1": "n"}
    assert again.cycles() == []
    again.later(GRACE)
    assert again.cycles() == [SCHEDULED]
    assert {"high-0", "high-1"} <= again.bound()


def test_a_restart_remembers_when_a_wait_ends_and_who_stayed() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    again = cluster.restarted()
    again.later(61)
    given_up = nominated(again), again.says(group)[2]
    again.cycles()
    third = again.restarted()

    assert given_up[0] == {}
    assert "2 pods did not leave in time" in given_up[1]
    assert len(third.cluster.waits.stayed(group.key)) == 2
    assert third.cycles() == []


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


def test_pods_that_join_a_unit_that_waits_do_not_disturb_it() -> None:
    cluster, group = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()
    victims = leaving(cluster)

    cluster.apply(*pods(group, 1, first=2, priority=10))
    codes = cluster.cycles()
    remove(cluster, *victims)
    cluster.cycles()

    assert codes == [WAITING]
    assert {"high-0", "high-1"} <= cluster.bound()


def test_room_that_is_being_left_already_is_nominated_without_victims() -> None:
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = CLIENTS_EVICT
    important = low(2, grace=GRACE, priority=50)
    cluster.apply(*important)
    cluster.delete(*important)
    group, members = gang()

    cluster.apply(group, *members)

    codes = cluster.cycles()
    assert codes == [WAITING]
    preemption = cluster.cluster.last_decisions[group.key].decision.preemption
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


def test_a_unit_that_waits_is_tried_a_second_apart_at_least() -> None:
    cluster, _ = full_cluster(eviction=CLIENTS_EVICT)
    cluster.cycles()

    tried = []
    for number in range(3):
        cluster.apply(node(f"useless-{number}", cpu=0))
        tried.append(cluster.cycles())
    cluster.later(2)
    tried.append(cluster.cycles())
    cluster.later(2)
    tried.append(cluster.cycles())

    assert tried == [[WAITING], [], [], [WAITING], []]
