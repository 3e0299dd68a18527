"""Small worlds in which one hierarchy fails for one reason: a domain that lacks something, a fault of its own.

As in `queue_worlds`, the node "n" is the unit's hope, and "busy" runs on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from muster.model.group import AnyGroup
from muster.model.pod import Affinity, Pod
from tests import dsl
from tests.engine.queue_worlds import APART, FAR, NEAR, QueueWorld, busy, node, ours, spread, unit
from tests.engine.tree_cluster import composite, leaf, template, workload

ROOT = "unit"


def members(group: str, count: int, cpu: str = "2", **fields: object) -> list[Pod]:
    return [
        replace(ours(dsl.pod(cpu=cpu, **fields), group=group), name=f"{group}-{i}")  # type: ignore[arg-type]
        for i in range(count)
    ]


def in_a_zone(cpu: str = "2", busy_cpu: str = "4", **fields: object) -> QueueWorld:
    """A gang of two that must keep to a zone."""
    gang = leaf(ROOT, 2, same="zone", workload="")
    return QueueWorld(node(), FAR, busy(busy_cpu), gang, *members(ROOT, 2, cpu, **fields))


def tree_in_a_zone(busy_cpu: str = "4", cpu: str = "2", affinity: Affinity | None = None) -> QueueWorld:
    """Two groups that must share a zone."""
    root = composite(ROOT, 2, same="zone")
    groups = [leaf(name, 1, parent=root) for name in ("a", "b")]
    pods = [pod for group in groups for pod in members(group.name, 1, cpu, affinity=affinity)]
    return QueueWorld(node(), FAR, busy(busy_cpu), root, *groups, *pods)


def short_of_memory() -> QueueWorld:
    return QueueWorld(node(memory="8Gi"), busy("1", memory="4Gi"), unit("1", memory="6Gi"))


def not_ready() -> QueueWorld:
    """A tree that holds by what runs; the only pods that wait are in a group that is short of members."""
    root = composite(ROOT, 1)
    runs, short = leaf("runs", 1, parent=root), leaf("short", 3, parent=root)
    running = [replace(pod, node_name="n") for pod in members("runs", 1, "1")]
    return QueueWorld(node(), busy("1"), root, runs, short, *running, *members("short", 1, "1"))


def other_scheduler() -> QueueWorld:
    gang = leaf(ROOT, 1, workload="")
    ours_too, theirs = members(ROOT, 2)
    theirs = replace(theirs, spec=replace(theirs.spec, scheduler_name="another"), node_name="n")
    return QueueWorld(node(), busy("1"), gang, replace(theirs, node_name="n"), ours_too)


def other_policy() -> QueueWorld:
    gang = leaf(ROOT, 2, workload="")
    usual, never = members(ROOT, 2)
    return QueueWorld(
        node(), busy("1"), gang, usual, replace(never, spec=replace(never.spec, preemption_policy="Never"))
    )


def broken_layout(*groups: AnyGroup, templates: bool = False) -> QueueWorld:
    """A tree at fault with a pod in its last group; with or without a Workload that knows one template of it."""
    known = [workload("wl", composites=(template("t-unit", leaves=(template("t-a"),)),))] if templates else []
    return QueueWorld(node(), busy("1"), *known, *groups, *members(groups[-1].name, 1))


def deep() -> QueueWorld:
    names = [ROOT, "second", "third", "fourth"]
    groups = [composite(name, 1, parent=parent) for name, parent in zip(names, ["", *names], strict=False)]
    return broken_layout(*groups, leaf("fifth", 1, parent="fourth"))


TREE_WORLDS: dict[str, Callable[[], QueueWorld]] = {
    "INSUFFICIENT_DOMAIN": in_a_zone,
    "INSUFFICIENT_DOMAIN of a tree": tree_in_a_zone,
    "INSUFFICIENT_DOMAIN by affinity": lambda: in_a_zone("1", "1", affinity=NEAR),
    "INSUFFICIENT_DOMAIN by anti-affinity": lambda: in_a_zone("1", "1", affinity=APART),
    "INSUFFICIENT_DOMAIN by spread": lambda: in_a_zone(
        "1", "1", labels={"app": "web"}, spread=(spread("zone"),)
    ),
    "INSUFFICIENT_DOMAIN of a tree by affinity": lambda: tree_in_a_zone("1", "1", NEAR),
    "INSUFFICIENT_DOMAIN of a tree by anti-affinity": lambda: tree_in_a_zone("1", "1", APART),
    "INSUFFICIENT_MEMORY": short_of_memory,
    "NOT_READY": not_ready,
    "SCHEDULER_NAME_CLASH": other_scheduler,
    "PREEMPTION_POLICY_CLASH": other_policy,
    "TREE_TOO_DEEP": deep,
    "SEVERAL_WORKLOADS": lambda: broken_layout(
        composite(ROOT, 1), leaf("a", 1, parent=ROOT, workload="another")
    ),
    "GROUP_PRIORITY_CLASH": lambda: broken_layout(composite(ROOT, 1), leaf("a", 1, parent=ROOT, priority=5)),
    "DISRUPTION_MODE_CLASH": lambda: broken_layout(composite(ROOT, 1, whole=True), leaf("a", 1, parent=ROOT)),
    "TEMPLATE_UNKNOWN": lambda: broken_layout(
        composite(ROOT, 1), leaf("a", 1, parent=ROOT, template="t-none"), templates=True
    ),
    "TEMPLATE_OF_OTHER_KIND": lambda: broken_layout(
        composite(ROOT, 1, template="t-a"), leaf("a", 1, parent=ROOT), templates=True
    ),
    "TEMPLATE_ELSEWHERE": lambda: broken_layout(
        composite(ROOT, 1),
        composite("b", 1, parent=ROOT, template="t-unit"),
        leaf("a", 1, parent="b"),
        templates=True,
    ),
}
"""By the code that the unit fails for, and more words where it can be met in several ways."""
