"""Helps carried out: a world with the change that a help names, and worlds with one less of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from muster.core.explain.explanation import Help, HelpCode
from muster.model.node import Node
from muster.model.pod import Pod, PodSpec, Toleration
from tests.dsl.groups import GroupPlan, gang
from tests.dsl.nodes import HOSTNAME
from tests.explain.world import World

_EVERYTHING = (Toleration(operator="Exists"),)
_RELAXED: dict[str, Callable[[PodSpec], PodSpec]] = {
    "NODE_AFFINITY": lambda spec: replace(spec, node_selector={}, affinity=None),
    "NODE_TAINTED": lambda spec: replace(spec, tolerations=_EVERYTHING),
    "HOST_PORTS": lambda spec: replace(spec, containers=tuple(replace(c, ports=()) for c in spec.containers)),
    "POD_AFFINITY": lambda spec: replace(spec, affinity=None),
    "POD_ANTI_AFFINITY": lambda spec: replace(spec, affinity=None),
    "TOPOLOGY_SPREAD": lambda spec: replace(spec, topology_spread_constraints=()),
    "TOPOLOGY_SPREAD_KEY": lambda spec: replace(spec, topology_spread_constraints=()),
}


def applied(world: World, help_: Help) -> World:  # noqa: PLR0911 - one a code
    """The world with the change made."""
    names = [ref.name for ref in help_.refs]
    match help_.code:
        case HelpCode.LOWER_MINIMUM:
            return with_minimum(world, names[0], help_.count)
        case HelpCode.ADD_NODES:
            return with_nodes(world, names[0], help_.count)
        case HelpCode.REMOVE_PODS:
            return replace(world, runners=tuple(each for each in world.runners if each.name not in names))
        case HelpCode.UNCORDON_NODES:
            return replace(world, nodes=tuple(_opened(each, names) for each in world.nodes))
        case HelpCode.RELEASE_ROOM:
            return replace(world, promised=())
        case HelpCode.ADD_MEMBERS:
            return _with_members(world, names[0], help_.count)
        case HelpCode.REMOVE_GATES:
            return _without_gates(world, names, help_.count)
    return _relaxed(world, help_)


def one_less(world: World, help_: Help) -> Iterator[World]:
    """Worlds in which the change is made by one less; none where nothing is counted."""
    names = [ref.name for ref in help_.refs]
    match help_.code:
        case HelpCode.LOWER_MINIMUM:
            yield with_minimum(world, names[0], help_.count + 1)
        case HelpCode.ADD_NODES:
            yield with_nodes(world, names[0], help_.count - 1)
        case HelpCode.REMOVE_PODS:
            for spared in names:
                gone = set(names) - {spared}
                yield replace(world, runners=tuple(each for each in world.runners if each.name not in gone))
        case HelpCode.ADD_MEMBERS:
            yield _with_members(world, names[0], help_.count - 1)
        case HelpCode.REMOVE_GATES:
            yield _without_gates(world, names, help_.count - 1)
        case HelpCode.RELEASE_ROOM:
            yield replace(world, promised=world.promised[: len(world.promised) - help_.count + 1])
        case HelpCode.UNCORDON_NODES:
            for name in names:
                opened = [each for each in names if each != name]
                yield replace(world, nodes=tuple(_opened(each, opened) for each in world.nodes))


def with_minimum(world: World, group: str, minimum: int) -> World:
    return _with_plan(world, group, lambda plan: replace(plan, policy=gang(minimum)))


def with_nodes(world: World, like: str, count: int) -> World:
    template = next(node for node in world.nodes if node.name == like)
    added = tuple(
        replace(
            template, name=f"new-{i}", labels={**template.labels, HOSTNAME: f"new-{i}"}, unschedulable=False
        )
        for i in range(count)
    )
    return replace(world, nodes=world.nodes + added)


def _opened(node: Node, names: list[str]) -> Node:
    return replace(node, unschedulable=False) if node.name in names else node


def _with_members(world: World, leaf: str, count: int) -> World:
    def completed(plan: GroupPlan) -> GroupPlan:
        more = tuple(replace(plan.pods[-1], name=f"new-{i}") for i in range(count))
        return replace(plan, pods=plan.pods + more)

    return _with_plan(world, leaf, completed)


def _without_gates(world: World, leaves: list[str], count: int) -> World:
    """So many of the gated pods let in, in the order of the leaves."""
    for leaf in leaves:
        opened = world.gated[leaf][:count]
        count -= len(opened)
        left = world.gated[leaf][len(opened) :]
        others = {name: pods for name, pods in world.gated.items() if name != leaf}
        world = replace(world, gated={**others, leaf: left} if left else others)
        world = _with_plan(world, leaf, partial(_joined_by, opened))
    return world


def _joined_by(more: tuple[Pod, ...], plan: GroupPlan) -> GroupPlan:
    return replace(plan, pods=plan.pods + more)


def _relaxed(world: World, help_: Help) -> World:
    constraint = help_.details["constraint"]
    if constraint == "TOPOLOGY":
        return _with_plan(world, help_.refs[0].name, lambda plan: replace(plan, topology_key=None))
    if constraint == "BINDING_FAILED":
        return replace(world, excluded={})
    return replace(world, plan=_with_specs(world.plan, _RELAXED[constraint]))


def _with_specs(plan: GroupPlan | Pod, change: Callable[[PodSpec], PodSpec]) -> GroupPlan | Pod:
    if isinstance(plan, Pod):
        return replace(plan, spec=change(plan.spec))
    pods = tuple(replace(each, spec=change(each.spec)) for each in plan.pods)
    children = tuple(_with_specs(child, change) for child in plan.children)
    return replace(plan, pods=pods, children=children)  # type: ignore[arg-type]  # children are groups


def _with_plan(world: World, name: str, change: Callable[[GroupPlan], GroupPlan]) -> World:
    """The world with one group changed, and pre-enqueue answered anew."""
    assert isinstance(world.plan, GroupPlan)
    return replace(world, plan=_ready(_replaced(world.plan, name, change), world))


def _replaced(plan: GroupPlan, name: str, change: Callable[[GroupPlan], GroupPlan]) -> GroupPlan:
    if plan.name == name:
        return change(plan)
    return replace(plan, children=tuple(_replaced(child, name, change) for child in plan.children))


def _ready(plan: GroupPlan, world: World) -> GroupPlan:
    children = tuple(_ready(child, world) for child in plan.children)
    number = len(plan.pods) + len(plan.bound) if plan.is_leaf else sum(each.admissible for each in children)
    is_held = plan.name in world.gated and len(plan.bound) < plan.policy.minimum
    return replace(plan, children=children, admissible=number >= plan.policy.minimum and not is_held)
