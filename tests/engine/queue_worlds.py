"""Small worlds in which one unit fails for one reason, and everything that may then happen around it.

The node "n" is the unit's hope. "busy" runs on it and is what may go away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from muster.core.decision import Decision, DecisionCode
from muster.core.tree import Unit
from muster.engine.api import BindingFailed, PhaseChanged, PodReport, ReportCall
from muster.engine.binder import commit_decision
from muster.engine.mutation import Mutation
from muster.engine.ports import DecisionRecord, UnitState
from muster.engine.queueing_hints import EventKind
from muster.engine.reports import report
from muster.model.disruption import PodDisruptionBudget
from muster.model.meta import LabelSelector, ObjectKey
from muster.model.node import Node, Taint
from muster.model.objects import ClusterObject
from muster.model.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from muster.model.priority import PriorityClass
from muster.model.selectors import NO_SCHEDULE
from tests import dsl
from tests.engine.tree_cluster import PROFILE, TreeCluster, leaf, workload

UNIT = ObjectKey("Pod", "default", "unit")
GANG = ObjectKey("PodGroup", "default", "unit")
TREE = ObjectKey("CompositePodGroup", "default", "unit")
SECOND_US = 1_000_000


class QueueWorld(TreeCluster):
    """Counts how often units are tried; the safety net is out of reach."""

    def __init__(self, *objects: ClusterObject) -> None:
        super().__init__()
        self.cluster.profiles = {PROFILE.name: PROFILE}
        self.attempts = 0
        self.apply(*objects)

    def commit(self, unit: Unit, decision: Decision) -> DecisionRecord:
        self.attempts += 1
        record = DecisionRecord("", 0, self.cluster.state.revision, decision, profile=PROFILE.name)
        return commit_decision(self.cluster, unit, record, Mutation(self.cluster, self.now_us), self.eviction)

    @property
    def unit(self) -> ObjectKey:
        """The one that the world is about."""
        return next(key for key in (TREE, GANG, UNIT) if self.cluster.state.get(key) is not None)

    def node(self, name: str) -> Node | None:
        found = self.cluster.state.objects["Node"].get(("", name))
        assert found is None or isinstance(found, Node)
        return found

    def has_pod(self, name: str) -> bool:
        return self.cluster.state.pod("default", name) is not None

    def could_be_placed(self) -> bool:
        """Whether a cycle would place the unit now, backoff or not; asked of the core, past the queue."""
        _, decision = self.decided(self.unit)
        self.cluster.feed.flush()
        return decision.code is DecisionCode.SCHEDULED

    def rested(self) -> None:
        """Until the unit's backoff is over."""
        row = self.cluster.queue.rows.get(self.unit)
        assert row is not None
        self.now_us = max(self.now_us, row.not_before_us)
        self.cluster.queue.due(self.now_us)

    def to_second_failure(self) -> None:
        """So that an event that helps finds the unit in a backoff."""
        self.cycles()
        self.cluster.queue.activate(self.unit)
        self.cycles()
        row = self.cluster.queue.rows[self.unit]
        assert row.state is UnitState.UNSCHEDULABLE
        assert row.attempts > 1

    def reported(self, name: str, said: BindingFailed | PhaseChanged) -> None:
        call = ReportCall("default", [PodReport("default", name, "", said)])
        self.change(lambda mutation: report(mutation, call))

    def changed_node(self, name: str, **fields: object) -> None:
        old = self.node(name)
        if old is not None:
            self.apply(replace(old, **fields))  # type: ignore[arg-type]


def ours(pod: Pod, *, on: str = "", group: str = "") -> Pod:
    spec = replace(pod.spec, scheduler_name="default-scheduler")
    return replace(pod, spec=spec, node_name=on, group=group)


def node(name: str = "n", **fields: object) -> Node:
    labels = {"zone": "a", "disk": "hdd"}
    return dsl.node(name, **{"cpu": "4", "labels": labels, **fields})  # type: ignore[arg-type]


def busy(cpu: str = "4", **fields: object) -> Pod:
    return ours(dsl.pod("busy", cpu=cpu, **{"labels": {"app": "web"}, **fields}), on="n")  # type: ignore[arg-type]


def unit(cpu: str = "2", **fields: object) -> Pod:
    return ours(dsl.pod("unit", cpu=cpu, **fields))  # type: ignore[arg-type]


def term(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=LabelSelector({"app": app}), topology_key=key)


def spread(key: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(1, key, "DoNotSchedule", LabelSelector({"app": "web"}))


NEAR = Affinity(pod_affinity=PodAffinity((term("friend", "zone"),)))
APART = Affinity(pod_anti_affinity=PodAffinity((term("web", "zone"),)))
TAINT = Taint("dedicated", "", NO_SCHEDULE)
FAR = dsl.node("far", "1", labels={"zone": "b", "disk": "hdd"})


def failed_binding() -> QueueWorld:
    world = QueueWorld(node(), unit())
    world.cycles()
    world.reported("unit", BindingFailed("n", "NoLuck", "no luck"))
    world.rested()
    return world


def split_gang() -> QueueWorld:
    """Members run in two zones, so that no zone may take the third."""
    gang = leaf("unit", 1, same="zone", workload="")
    members = [ours(dsl.pod(f"m{i}", cpu="1"), on=on, group="unit") for i, on in enumerate(("n", "far", ""))]
    return QueueWorld(node(), FAR, gang, *members)


def homeless_gang() -> QueueWorld:
    gang = leaf("unit", 1, same="rack", workload="")
    return QueueWorld(node(), gang, ours(dsl.pod("m", cpu="1"), group="unit"))


def clashing_gang() -> QueueWorld:
    gang = leaf("unit", 2, workload="")
    members = [ours(dsl.pod(f"m{i}", priority=i), group="unit") for i in range(2)]
    return QueueWorld(node(), gang, *members)


WORLDS: dict[str, Callable[[], QueueWorld]] = {
    "INSUFFICIENT_CPU": lambda: QueueWorld(node(), busy(), unit()),
    "TOO_MANY_PODS": lambda: QueueWorld(node(pods=1), busy("1"), unit()),
    "NODE_UNSCHEDULABLE": lambda: QueueWorld(node(unschedulable=True), busy("1"), unit()),
    "NODE_TAINTED": lambda: QueueWorld(node(taints=(TAINT,)), busy("1"), unit()),
    "NODE_AFFINITY": lambda: QueueWorld(node(), busy("1"), unit(node_selector={"disk": "ssd"})),
    "HOST_PORTS": lambda: QueueWorld(node(), busy("1", host_port=80), unit(host_port=80)),
    "TOPOLOGY_SPREAD_KEY": lambda: QueueWorld(node(), busy("1"), unit(spread=(spread("rack"),))),
    "TOPOLOGY_SPREAD": lambda: QueueWorld(
        node(), FAR, busy("1"), unit(labels={"app": "web"}, spread=(spread("zone"),))
    ),
    "POD_AFFINITY": lambda: QueueWorld(node(), busy("1"), unit(affinity=NEAR)),
    "POD_ANTI_AFFINITY": lambda: QueueWorld(node(), busy("1"), unit(affinity=APART)),
    "NO_NODES": lambda: QueueWorld(unit()),
    "BINDING_FAILED": failed_binding,
    "PINNED_APART": split_gang,
    "NO_DOMAIN": homeless_gang,
    "PRIORITY_CLASH": clashing_gang,
}


def deleted(name: str) -> Callable[[QueueWorld], None]:
    def act(world: QueueWorld) -> None:
        if world.has_pod(name):
            world.delete(world.pod(name))

    return act


def finished(world: QueueWorld) -> None:
    if world.has_pod("busy"):
        world.reported("busy", PhaseChanged("Succeeded", "", ""))


def leaving(world: QueueWorld) -> None:
    if world.has_pod("busy"):
        world.apply(replace(world.pod("busy"), deletion_us=world.now_us + 10**12))


def relabelled_pod(world: QueueWorld) -> None:
    if world.has_pod("busy"):
        world.apply(replace(world.pod("busy"), labels={"app": "friend"}))


def removed_node(world: QueueWorld) -> None:
    found = world.node("n")
    if found is not None:
        world.delete(found)


def labelled(world: QueueWorld) -> None:
    found = world.node("n")
    if found is not None:
        world.apply(replace(found, labels={**found.labels, "disk": "ssd", "rack": "r"}))


def rezoned(world: QueueWorld) -> None:
    found = world.node("n")
    if found is not None:
        world.apply(replace(found, labels={**found.labels, "zone": "b"}))


def resized(**amounts: str) -> Callable[[QueueWorld], None]:
    def act(world: QueueWorld) -> None:
        found = world.node("n")
        if found is not None:
            world.apply(replace(found, allocatable={**found.allocatable, **amounts}))

    return act


def forgiven(world: QueueWorld) -> None:
    if world.cluster.failed_bindings.forgive(world.now_us + 400 * SECOND_US):
        world.cluster.queue.happened((EventKind.BINDING_FORGIVEN,), world.now_us)


def _applied(item: ClusterObject) -> Callable[[QueueWorld], None]:
    return lambda world: world.apply(item)


NEW_NODE = dsl.node("new", "8", labels={"zone": "b", "disk": "ssd", "rack": "r"})
TINY_NODE = dsl.node("tiny", "1", labels={"zone": "a"}, taints=(TAINT,))
FRIEND = ours(dsl.pod("friend", cpu="0", labels={"app": "friend"}), on="n")
STRANGER = ours(dsl.pod("stranger", cpu="0"), on="n")
BUDGET = PodDisruptionBudget(name="b", namespace="default", min_available="1", selector=LabelSelector())

ACTS: dict[str, Callable[[QueueWorld], None]] = {
    "a good node comes": _applied(NEW_NODE),
    "a node comes that takes nothing": _applied(TINY_NODE),
    "the node grows": resized(cpu="32", pods="110"),
    "the node shrinks": resized(memory="1Gi"),
    "the node is labelled": labelled,
    "the node moves to another zone": rezoned,
    "the node is tainted": lambda world: world.changed_node("n", taints=(TAINT,)),
    "the taint goes": lambda world: world.changed_node("n", taints=()),
    "the node is cordoned": lambda world: world.changed_node("n", unschedulable=True),
    "the node is uncordoned": lambda world: world.changed_node("n", unschedulable=False),
    "the node goes": removed_node,
    "the pod is deleted": deleted("busy"),
    "the pod finishes": finished,
    "the pod is leaving": leaving,
    "the pod gets other labels": relabelled_pod,
    "a pod that is looked for is bound": _applied(FRIEND),
    "some pod is bound": _applied(STRANGER),
    "a failed binding is forgiven": forgiven,
    "a budget comes": _applied(BUDGET),
    "a class comes": _applied(PriorityClass(name="urgent", value=1000)),
    "a Workload of others comes": _applied(workload("others")),
    "a group of others comes": _applied(leaf("others", 2, workload="")),
}


@dataclass(frozen=True)
class Outcome:
    """attempts: cycles after the event. cured: a cycle places the unit now; placed: one did."""

    attempts: int
    cured: bool
    placed: bool


def outcome_of(world: QueueWorld, act: str) -> Outcome:
    """What comes of one thing that happens, once the backoff is over; before that nothing is tried."""
    world.to_second_failure()
    before = world.attempts
    ACTS[act](world)
    cured = world.could_be_placed()
    world.cycles()
    assert world.attempts == before, "tried before its backoff was over"
    world.rested()
    world.cycles()
    return Outcome(world.attempts - before, cured, world.unit not in world.cluster.queue.rows)


def outcome_in_flight(world: QueueWorld, act: str) -> Outcome:
    """What comes of one thing that happens while the unit is being decided, once the backoff is over."""
    world.to_second_failure()
    world.cluster.queue.activate(world.unit)
    popped = world.cluster.queue.pop()
    assert popped is not None
    unit, decision = world.decided(popped.key)
    ACTS[act](world)
    cured = world.could_be_placed()
    world.commit(unit, decision)
    before = world.attempts
    world.rested()
    world.cycles()
    return Outcome(world.attempts - before, cured, world.unit not in world.cluster.queue.rows)
