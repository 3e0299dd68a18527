"""A full cluster, a gang of higher priority, and the words for what preemption makes of them."""

from __future__ import annotations

from dataclasses import replace

from muster.core.decision import DecisionCode
from muster.engine.api import PodReport, Removed, ReportCall
from muster.engine.eviction import Eviction
from muster.engine.reports import report
from muster.model.group import PodGroup
from muster.model.meta import Condition
from muster.model.pod import DISRUPTION_TARGET, Pod
from tests.engine.tree_cluster import TreeCluster, leaf, node, pods

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


def room_being_left() -> TreeCluster:
    """A node that is full of important pods, which clients are asked to remove already."""
    cluster = TreeCluster(node("n", cpu=2))
    cluster.eviction = CLIENTS_EVICT
    important = low(2, grace=GRACE, priority=50)
    cluster.apply(*important)
    cluster.delete(*important)
    return cluster


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
