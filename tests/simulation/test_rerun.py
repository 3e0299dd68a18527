"""Decisions on record, made again: equal as long as their input is kept, and told apart where it is not."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest

from muster.core.decision import Decision as CoreDecision
from muster.core.decision import DecisionCode, GroupResult, Reason, Status
from muster.engine.log_entries import EventType, LogEntry
from muster.engine.ports import DecisionInput, DecisionRecord
from muster.engine.rerun import Moved, RerunQuestion, differing
from muster.engine.rerun_batches import ClusterAccess, rerun_together
from muster.engine.rerun_way import way_back
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.v1 import scheduler_service_pb2 as spb
from muster.v1.decision_pb2 import Decision
from tests.endtoend.cluster import CALL_SECONDS
from tests.endtoend.service import Service, gang, node
from tests.endtoend.test_preemption import high, running
from tests.engine.small_cluster import node as model_node
from tests.simulation import random_cases
from tests.simulation.asking import Simulated, code


def again(cluster: Simulated, decision: Decision) -> spb.DecisionRerun:
    request = spb.GetDecisionRequest(cluster=cluster.name, id=decision.id, rerun=True)
    return cluster.service.scheduler.GetDecision(request, timeout=CALL_SECONDS).rerun


def assert_equal(rerun: spb.DecisionRerun) -> None:
    assert not rerun.not_possible
    assert rerun.same_input
    assert rerun.equal, list(rerun.differences)


def test_a_decision_that_bound_pods_comes_out_equal(cluster: Simulated) -> None:
    cluster.apply(*(node(f"n{i}", "4") for i in range(3)), *gang("g", 5))
    decision = cluster.until_scheduled("g")

    assert_equal(again(cluster, decision))


def test_it_is_made_on_the_state_that_it_saw(cluster: Simulated) -> None:
    cluster.apply(node("n", "4"), *gang("g", 3))
    decision = cluster.until_scheduled("g")
    cluster.apply(node("a", "64"), *gang("later", 3))
    cluster.until_scheduled("later")
    cluster.delete("Pod", "g-0", force=True)
    cluster.delete("Node", "n")

    assert_equal(again(cluster, decision))


def test_one_that_failed_comes_out_equal(cluster: Simulated) -> None:
    cluster.apply(node("n", "2"), *gang("g", 3))
    decision = cluster.schedule("PodGroup", "g").decision
    assert code(decision) == "UNSCHEDULABLE"

    assert_equal(again(cluster, decision))


def test_one_that_preempted_comes_out_equal_though_its_victims_are_gone(cluster: Simulated) -> None:
    cluster.apply(node("n", "4"), *running(4))
    cluster.apply(*high(2))
    cluster.until_scheduled("high")
    decisions = cluster.list_decisions()

    assert [code(each) for each in decisions] == ["SCHEDULED", "WAITING_FOR_PREEMPTION"]
    for each in decisions:
        assert_equal(again(cluster, each))


def test_every_decision_of_random_units_comes_out_equal(cluster: Simulated) -> None:
    random = Random(5)
    cluster.apply(*random_cases.nodes(random, 0, 8))
    for number in range(15):
        cluster.apply(*random_cases.unit(random, f"u{number}"))
        cluster.schedule("Pod", f"u{number}-p0") if f"u{number}-p0" in cluster.nodes() else None

    decisions = cluster.list_decisions()

    assert len(decisions) >= 15
    for each in decisions:
        assert_equal(again(cluster, each))


def test_decisions_made_again_together_while_the_cluster_changes_come_out_equal(cluster: Simulated) -> None:
    cluster.apply(*(node(f"n{i}", "4") for i in range(4)))
    for number in range(12):
        cluster.apply(*gang(f"g{number}", 2))
        cluster.schedule("PodGroup", f"g{number}")
    decisions = cluster.list_decisions()

    with ThreadPoolExecutor(len(decisions)) as pool:
        asked = [pool.submit(again, cluster, decision) for decision in decisions]
        for number in range(10):
            cluster.apply(node(f"late-{number}", "4"))

    assert {code(decision) for decision in decisions} == {"SCHEDULED", "UNSCHEDULABLE"}
    for each in asked:
        assert_equal(each.result())


def crowded(cluster: Simulated, seed: int) -> list[spb.DecisionRerun]:
    """All decisions on units that come and go while those of other clusters ask for the same worker, made again."""
    random = Random(seed)
    cluster.apply(*random_cases.nodes(random, 0, 6))
    for number in range(30):
        cluster.apply(*random_cases.unit(random, f"u{number}"))
        if running := sorted(cluster.bound()):
            cluster.delete("Pod", random.choice(running), force=True, allow_missing=True)
    return [again(cluster, each) for each in cluster.list_decisions()]


def test_decisions_that_had_to_wait_for_their_worker_come_out_equal(service: Service) -> None:
    clusters = [Simulated(service, f"crowded-{seed}") for seed in range(4)]
    with ThreadPoolExecutor(len(clusters)) as pool:
        rerun = [each for some in pool.map(crowded, clusters, range(4)) for each in some]

    made = [each for each in rerun if not each.not_possible]
    assert len(made) > 100
    for each in made:
        assert_equal(each)


def test_decisions_say_what_they_were_made_on(cluster: Simulated) -> None:
    cluster.apply(node("n", "2"), *gang("g", 3))
    first = cluster.schedule("PodGroup", "g").decision
    cluster.apply(node("m", "2"))
    second = cluster.until_scheduled("g")

    assert len(first.input_digest) == len(second.input_digest) == 32
    assert first.input_digest != second.input_digest


def refused(reasons: dict[int, str]) -> CoreDecision:
    """A decision on a group in a group, by the number of a signature of its pods and why none takes them."""
    inner = GroupResult(
        ObjectKey("PodGroup", "default", "inner"),
        Status.UNSCHEDULABLE,
        pod_reasons={number: (Reason(why, why),) for number, why in reasons.items()},
    )
    root = ObjectKey("CompositePodGroup", "default", "root")
    result = GroupResult(root, Status.UNSCHEDULABLE, children=(inner,))
    return CoreDecision(root, DecisionCode.UNSCHEDULABLE, result=result)


def test_signatures_that_another_start_numbered_make_no_difference() -> None:
    before, after = refused({9: "CPU", 11: "TAINT"}), refused({1: "TAINT", 26: "CPU"})

    assert list(differing(before, after)) == []


def test_another_reason_of_the_same_signature_is_a_difference() -> None:
    before, after = refused({9: "CPU", 11: "TAINT"}), refused({9: "CPU", 11: "CPU"})

    assert list(differing(before, after)) == ["result"]


class Log:
    """A log in memory, whose entries up to `compacted` are gone."""

    def __init__(self, entries: Iterable[LogEntry], compacted: int = 0) -> None:
        self._entries = list(entries)
        self._compacted = compacted

    async def read(self, after_revision: int, limit: int) -> list[LogEntry]:
        least = max(after_revision, self._compacted)
        return [each for each in self._entries if each.revision > least][:limit]

    async def compacted_revision(self) -> int:
        return self._compacted


def log(compacted: int = 0) -> Log:
    """A node comes at 1, changes at 2 and 4; another comes at 3 and goes at 5."""
    one, two = model_node("one"), model_node("two")
    steps = [
        (1, EventType.ADDED, one),
        (2, EventType.MODIFIED, replace(one, unschedulable=True)),
        (3, EventType.ADDED, two),
        (4, EventType.MODIFIED, one),
        (5, EventType.DELETED, two),
    ]
    return Log((LogEntry(at, 0, [kind], [item]) for at, kind, item in steps), compacted)


async def test_the_way_back_has_earlier_states_and_what_came_later() -> None:
    way = await way_back(log(), 5, [2])

    [step] = way.steps
    assert (way.start, step.revision) == (5, 2)
    assert step.came_later == {ObjectKey("Node", "", "two")}
    [earlier] = step.earlier.values()
    assert isinstance(earlier, Node)
    assert earlier.unschedulable


async def test_what_went_since_is_there_again() -> None:
    way = await way_back(log(), 5, [4])

    assert [key.name for key in way.steps[0].earlier] == ["two"]


async def test_each_step_takes_back_what_came_after_the_revision_that_it_leads_to() -> None:
    way = await way_back(log(), 5, [1, 4, 3])

    assert [step.revision for step in way.steps] == [4, 3, 1]
    assert [sorted(key.name for key in step.earlier) for step in way.steps] == [["two"], ["one"], ["one"]]
    assert [sorted(key.name for key in step.came_later) for step in way.steps] == [[], [], ["two"]]


@pytest.mark.parametrize(
    ("compacted", "revision", "why"),
    [
        (3, 2, "revision 2 is not kept any more: the oldest is 3"),
        (3, 3, "the state of Node one at revision 3"),
    ],
)
async def test_a_way_that_is_not_kept_is_told(compacted: int, revision: int, why: str) -> None:
    way = await way_back(log(compacted), 5, [revision])

    assert not way.steps
    assert way.not_kept[revision].startswith(why)


async def test_what_is_not_kept_leaves_newer_revisions_in_reach() -> None:
    way = await way_back(log(3), 5, [5, 4, 3])

    assert [step.revision for step in way.steps] == [5]
    assert set(way.not_kept) == {4, 3}


async def test_a_way_begins_later_where_the_cluster_went_on() -> None:
    older = await way_back(log(), 4, [2])

    way = older.beginning_at(await way_back(log(), 5, [older.start]))

    assert (way.start, [step.revision for step in way.steps]) == (5, [4, 2])


class Moving:
    """A cluster whose copy is always a revision further than the way back begins."""

    def __init__(self) -> None:
        self.asked: list[RerunQuestion] = []

    async def ask(self, question: RerunQuestion) -> Moved:
        self.asked.append(question)
        return Moved(question.start + 1)

    async def revision(self) -> int:
        return 5


async def test_a_cluster_that_never_rests_ends_the_attempts() -> None:
    cluster = Moving()
    decision = CoreDecision(ObjectKey("Pod", "default", "p"), DecisionCode.UNSCHEDULABLE)
    record = DecisionRecord("4", 4, 3, decision, input=DecisionInput("digest"))

    [found] = await rerun_together([record], ClusterAccess(log(), cluster.revision, cluster.ask))

    assert "changed during each of" in found.not_possible
    assert len(cluster.asked) > 1
