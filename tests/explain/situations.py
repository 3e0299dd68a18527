"""Situations made by hand: each has one cause with known numbers, on any level of a tree of three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from muster.model.meta import LabelSelector
from muster.model.node import Node, Taint
from muster.model.pod import Affinity, Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from tests.dsl import composite, gang, node, pod, pod_group, rack
from tests.dsl.groups import GroupPlan
from tests.dsl.nodes import HOSTNAME
from tests.explain.world import Runner, World

LEAF = "blamed"
LEVELS = (1, 2, 3)
_WEB = {"app": "web"}


@dataclass(frozen=True)
class Situation:
    """code, nodes, details: a reason of the blamed leaf, with the number of nodes and some details.

    helps: messages that must be among those told.
    """

    name: str
    nodes: tuple[Node, ...]
    leaf: GroupPlan
    code: str
    node_count: int = 0
    details: dict[str, str] = field(default_factory=dict)
    helps: tuple[str, ...] = ()
    runners: tuple[Runner, ...] = ()
    excluded: dict[str, list[str]] = field(default_factory=dict)
    promised: tuple[str, ...] = ()
    gated: dict[str, tuple[Pod, ...]] = field(default_factory=dict)

    def world(self, level: int) -> World:
        """The leaf on this level."""
        return World(
            self.nodes,
            on_level(self.leaf, level),
            runners=self.runners,
            excluded=self.excluded,
            promised=self.promised,
            gated=self.gated,
        )


def on_level(plan: GroupPlan, level: int) -> GroupPlan:
    """A tree with the group on this level, below groups that need nothing else."""
    for above in ("inner", "root")[-(level - 1) :] if level > 1 else ():
        plan = composite(above, gang(1), plan)
    return plan


def crew(minimum: int, make: Callable[[str], Pod], *, admissible: bool = True, number: int = 0) -> GroupPlan:
    """The leaf that is to blame, with as many pods as it needs, or another number."""
    pods = tuple(make(f"{LEAF}-{i}") for i in range(number or minimum))
    return pod_group(LEAF, gang(minimum), pods=pods, admissible=admissible)


def _selector() -> LabelSelector:
    return LabelSelector(match_labels=_WEB)


def _apart(key: str) -> Affinity:
    term = PodAffinityTerm(_selector(), topology_key=key)
    return Affinity(pod_anti_affinity=PodAffinity(required=(term,)))


def _together(key: str) -> Affinity:
    term = PodAffinityTerm(_selector(), topology_key=key)
    return Affinity(pod_affinity=PodAffinity(required=(term,)))


def _spread(key: str) -> tuple[TopologySpreadConstraint, ...]:
    return (TopologySpreadConstraint(1, key, "DoNotSchedule", _selector()),)


_TAINT = Taint("reserved", "yes", "NoSchedule")

SITUATIONS = (
    Situation(
        "too little cpu",
        (node("a", "4"), node("b", "4")),
        crew(3, lambda name: pod(name, cpu="3")),
        "INSUFFICIENT_CPU",
        2,
        {"examples": "a,b", "resource": "cpu"},
        (f"lower the minimum of PodGroup default/{LEAF} from 3 to 2", "add 1 node like a"),
    ),
    Situation(
        "a lack in numbers",
        (node("a", "4"), node("b", "4")),
        crew(4, lambda name: pod(name, cpu="3")),
        "MISSING_ROOM",
        0,
        {"pods": "2", "needed": "6", "free": "2", "largest": "1", "missing": "4", "request": "3"},
        (f"lower the minimum of PodGroup default/{LEAF} from 4 to 2", "add 2 nodes like a"),
    ),
    Situation(
        "too little memory",
        (node("a", "9", memory="4Gi"), node("b", "9", memory="4Gi")),
        crew(4, lambda name: pod(name, cpu="1", memory="3Gi")),
        "INSUFFICIENT_MEMORY",
        2,
        {"examples": "a,b"},
        ("add 2 nodes like a",),
    ),
    Situation(
        "too few devices",
        (node("a", "9", gpu="4"), node("b", "9")),
        crew(3, lambda name: pod(name, gpu="2")),
        "INSUFFICIENT_EXAMPLE_COM_GPU",
        2,
        {"examples": "a,b"},
        ("add 1 node like a",),
    ),
    Situation(
        "no pod slots",
        (node("a", "9", pods=2),),
        crew(5, pod),
        "TOO_MANY_PODS",
        1,
        {"examples": "a"},
        (f"lower the minimum of PodGroup default/{LEAF} from 5 to 2", "add 2 nodes like a"),
    ),
    Situation(
        "cordoned nodes",
        (node("a", "1"), node("b", "1", unschedulable=True), node("c", "1", unschedulable=True)),
        crew(2, pod),
        "NODE_UNSCHEDULABLE",
        2,
        {"examples": "b,c"},
        ("make 1 node schedulable again: b",),
    ),
    Situation(
        "tainted nodes",
        (node("a", "1"), node("b", "4", taints=(_TAINT,))),
        crew(2, pod),
        "NODE_TAINTED",
        1,
        {"examples": "b"},
        ("let its pods tolerate the taints of nodes", "add 1 node like a"),
    ),
    Situation(
        "a selector that few nodes match",
        (node("a", "1", labels={"disk": "ssd"}), node("b", "4"), node("c", "4")),
        crew(2, lambda name: pod(name, node_selector={"disk": "ssd"})),
        "NODE_AFFINITY",
        2,
        {"examples": "b,c"},
        ("drop node selector and required node affinity of its pods", "add 1 node like a"),
    ),
    Situation(
        "host ports in use",
        (node("a", "4"), node("b", "4")),
        crew(3, lambda name: pod(name, host_port=80)),
        "HOST_PORTS",
        2,
        {"examples": "a,b"},
        ("drop the host ports of its pods", "add 1 node like a"),
    ),
    Situation(
        "a spread over a label that no node has",
        (node("a", "4"),),
        crew(1, lambda name: pod(name, labels=_WEB, spread=_spread("zone"))),
        "TOPOLOGY_SPREAD_KEY",
        1,
        {"examples": "a"},
        ("drop the spread constraints whose label nodes lack",),
    ),
    Situation(
        "a spread that a full zone holds up",
        (node("a", "4", labels={"zone": "a"}), node("b", "0", labels={"zone": "b"})),
        crew(2, lambda name: pod(name, labels=_WEB, spread=_spread("zone"))),
        "TOPOLOGY_SPREAD",
        1,
        {"examples": "a"},
        ("let its pods be spread less evenly",),
    ),
    Situation(
        "company that runs where there is no room",
        (node("a", "1", labels={"zone": "a"}), node("b", "4", labels={"zone": "b"})),
        crew(1, lambda name: pod(name, affinity=_together("zone"))),
        "POD_AFFINITY",
        1,
        {"examples": "b"},
        (
            "drop the required pod affinity of its pods",
            "add 1 node like a with zone=a",
        ),
        runners=(
            Runner("web", ("a",), cpu="0", labels=(("app", "web"),)),
            Runner("other", ("a",), cpu="1"),
        ),
    ),
    Situation(
        "pods that keep apart",
        (node("a", "4"), node("b", "4")),
        crew(3, lambda name: pod(name, labels=_WEB, affinity=_apart(HOSTNAME))),
        "POD_ANTI_AFFINITY",
        2,
        {"examples": "a,b"},
        ("drop the required pod anti-affinity between its pods and others", "add 1 node like a"),
    ),
    Situation(
        "a binding that failed",
        (node("a", "4"),),
        crew(1, pod),
        "BINDING_FAILED",
        1,
        {"examples": "a"},
        ("try nodes again on which binding failed lately", "add 1 node like a"),
        excluded={f"{LEAF}-0": ["a"]},
    ),
    Situation("no nodes", (), crew(1, pod), "NO_NODES", 0, {"nodes": "0"}),
    Situation(
        "nodes that are admitted by nobody",
        (node("a", "4", taints=(_TAINT,)),),
        crew(1, pod),
        "MISSING_NODES",
        0,
        {"pods": "1", "admitted": "0"},
        ("let its pods tolerate the taints of nodes",),
    ),
    Situation(
        "units of higher priority in the way",
        (node("a", "4"), node("b", "4")),
        crew(2, lambda name: pod(name, cpu="3")),
        "INSUFFICIENT_CPU",
        2,
        {"examples": "a,b"},
        ("remove 1 pod of Pod default/high",),
        runners=(Runner("high", ("b",), cpu="2"),),
    ),
    Situation(
        "a group of higher priority in the way",
        (node("a", "4"), node("b", "4")),
        crew(2, lambda name: pod(name, cpu="3")),
        "INSUFFICIENT_CPU",
        2,
        {"examples": "a,b"},
        ("remove 2 pods of PodGroup default/both",),
        runners=(Runner("both", ("a", "b"), cpu="2"),),
    ),
    Situation(
        "room that is kept for others",
        (node("a", "4"),),
        crew(2, lambda name: pod(name, cpu="2")),
        "INSUFFICIENT_CPU",
        1,
        {"examples": "a"},
        ("give up the room that is kept for 1 pod of other units",),
        promised=("a",),
    ),
    Situation(
        "a fragmented cluster",
        tuple(node(name, "3") for name in "abcd"),
        crew(5, lambda name: pod(name, cpu="2")),
        "MISSING_ROOM",
        0,
        {"pods": "1", "needed": "2", "free": "4", "largest": "1", "missing": "0"},
        (f"lower the minimum of PodGroup default/{LEAF} from 5 to 4", "add 1 node like a"),
    ),
)

WIDE = (rack("r1", free=2), rack("r2", free=3), rack("r3", free=1))


def constrained(
    level: int, *, same: str = "rack", leaf: GroupPlan | None = None, **of_world: object
) -> World:
    """A tree of three levels whose group on this level keeps to one domain; its leaf needs four pods of one cpu."""
    plan = leaf or crew(4, pod)
    names = {1: "root", 2: "inner", 3: LEAF}
    keys = {name: same if names[level] == name else None for name in names.values()}
    bottom = GroupPlan(LEAF, plan.policy, keys[LEAF], plan.pods, bound=plan.bound)
    inner = composite("inner", gang(1), bottom, same=keys["inner"])
    tree = composite("root", gang(1), inner, same=keys["root"])
    nodes = of_world.pop("nodes", tuple(each for of in WIDE for each in of))
    return World(nodes, tree, **of_world)  # type: ignore[arg-type]
