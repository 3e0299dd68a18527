"""What changes between a decision that preempts and its commit: it is carried out as decided, or decided anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.core.decision import Decision, DecisionCode
from muster.core.tree import Unit
from muster.engine.binder import still_holds
from muster.model.pod import Pod, PodStatus
from tests.engine.tree_cluster import PROFILE, TreeCluster, composite, leaf, node, pods

VICTIMS = leaf("victims", 2, priority=1, parent="top", whole=True)
HIGH = leaf("high", 3, priority=10)
LONE = replace(pods(leaf("lone"), 1, priority=1, on="n")[0], group="")
IMPORTANT = replace(LONE.spec, priority=50)


def member(number: int, *, on: str = "n") -> Pod:
    return pods(VICTIMS, 1, first=number, priority=1, on=on)[0]


class Race:
    """A gang of three that needs all of a node with a whole group of two and a pod: decided, and not committed yet."""

    def __init__(self) -> None:
        self.cluster = TreeCluster(node("n", cpu=3), node("other", cpu=1))
        self.cluster.apply(VICTIMS, member(0), member(1), LONE)
        self.cluster.apply(replace(LONE, name="elsewhere", node_name="other", spec=IMPORTANT))
        self.cluster.apply(HIGH, *pods(HIGH, 3, priority=10))
        row = self.cluster.cluster.queue.pop()
        assert row is not None
        self.unit, self.decision = self.cluster.decided(row.key)
        assert self.decision.preemption is not None

    def outcome(self) -> Decision | None:
        """The decision as it may be committed now."""
        unit: Unit = self.unit
        return still_holds(self.cluster.cluster, unit, PROFILE, self.decision, changed=True)


def test_a_change_elsewhere_leaves_a_preemption_as_it_was_decided() -> None:
    race = Race()

    race.cluster.apply(node("unrelated"))

    assert race.outcome() == race.decision


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.apply(leaf("high", 2, priority=10)),
        lambda cluster: cluster.apply(*pods(HIGH, 1, first=3, priority=10)),
    ],
    ids=["the minimum is lower now", "a pod joins the gang"],
)
def test_a_preemption_is_carried_out_as_decided_if(change: Callable[[TreeCluster], object]) -> None:
    race = Race()

    change(race.cluster)

    assert race.outcome() == race.decision


@pytest.mark.parametrize(
    "change",
    [
        lambda cluster: cluster.delete(LONE),
        lambda cluster: cluster.apply(replace(LONE, status=PodStatus(phase="Succeeded"))),
        lambda cluster: cluster.apply(replace(LONE, deletion_us=1)),
        lambda cluster: (cluster.delete(LONE), cluster.apply(LONE)),
        lambda cluster: cluster.delete(member(0)),
        lambda cluster: cluster.apply(member(2, on="other")),
        lambda cluster: cluster.apply(composite("top", priority=10)),
        lambda cluster: cluster.apply(composite("top", priority=1, whole=True)),
        lambda cluster: cluster.delete(*pods(HIGH, 1)),
        lambda cluster: cluster.apply(leaf("high", 4, priority=10)),
        lambda cluster: cluster.apply(leaf("high", 4, priority=10), *pods(HIGH, 1, first=3, priority=10)),
        lambda cluster: cluster.apply(node("n", cpu=2)),
        lambda cluster: cluster.apply(replace(LONE, name="new", spec=IMPORTANT)),
    ],
    ids=[
        "a victim is deleted",
        "a victim finishes",
        "a victim is leaving",
        "a victim is replaced by another of its name",
        "a pod of a victim is gone",
        "a pod joins a victim",
        "a victim is of higher priority now",
        "a victim is part of a larger unit now",
        "a nominated pod is gone",
        "the minimum is beyond its members now",
        "the minimum is beyond the room that was found now",
        "a nominated node shrinks",
        "another pod takes the room",
    ],
)
def test_a_preemption_is_decided_anew_if(change: Callable[[TreeCluster], object]) -> None:
    race = Race()

    change(race.cluster)

    assert race.outcome() is None


def test_a_unit_that_may_never_preempt_evicts_nobody() -> None:
    cluster = TreeCluster(node("n", cpu=3))
    cluster.apply(VICTIMS, member(0), member(1), LONE)
    never = replace(HIGH, spec=replace(HIGH.spec, preemption_policy="Never"))
    members = [
        replace(pod, spec=replace(pod.spec, preemption_policy="Never")) for pod in pods(HIGH, 3, priority=10)
    ]

    cluster.apply(never, *members)

    assert cluster.cycles() == [DecisionCode.UNSCHEDULABLE]
    assert len(cluster.cluster.disruption.running) == 3
