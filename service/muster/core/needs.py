"""What a node must have to take one pod of a unit that failed: the question that queueing hints ask of a changed node.

A node that cannot take one of the unit's pods with all those gone that the unit may preempt adds nothing to any
placement of it (semantics 4). Filters that read other pods are left to the placement itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.core.bound_pods import BoundPods
from muster.core.decision import Decision, DecisionCode
from muster.core.framework import NodeFilter, Profile
from muster.core.node_table import NodeTable
from muster.core.signature import Signature, SignatureTable
from muster.core.snapshot import carries_terms
from muster.core.tree import Unit, leaves
from muster.model.node import Node
from muster.model.priority import NEVER
from muster.model.resources import Amounts

_MOST_SHAPES = 16


@dataclass(frozen=True, slots=True)
class Needs:
    """shapes: one signature of each shape of the unit's pods, by index when they were found.

    least: of each resource, what the least demanding pod asks for. preempts: whether pods of lower priority may have to go.
    resolvable: whether room could help at all; if not, only nodes that change or come can.
    """

    shapes: tuple[Signature, ...]
    priority: int
    preempts: bool
    resolvable: bool
    profile: str
    least: tuple[tuple[str, int], ...]


def needs_of(
    unit: Unit, decision: Decision, signatures: SignatureTable, bound: BoundPods, profile: Profile
) -> Needs | None:
    """The needs of the unit's pods, which were decided so; None if no single node could be told to be of no use.

    That is so with more kinds of pods than are worth it, or where kinds differ and what hinders one of them may depend on
    where others run, be it by its own terms or by those of bound pods.
    """
    indexes = sorted({index for leaf in leaves(unit.root) for index in set(leaf.pods.signatures)})
    by_shape = {signatures[index].shape: index for index in reversed(indexes)}
    shapes = [signatures[index] for index in sorted(by_shape.values())]
    if not shapes or len(shapes) > _MOST_SHAPES:
        return None
    if len(indexes) > 1 and (bound.carriers or any(map(_reads_other_pods, shapes))):
        return None
    return Needs(
        tuple(shapes),
        unit.priority,
        unit.preemption_policy != NEVER,
        decision.code is not DecisionCode.UNSCHEDULABLE_AND_UNRESOLVABLE,
        profile.name,
        _least(shapes),
    )


def admits_one(
    shapes: Iterable[Signature], filters: Iterable[NodeFilter], nodes: NodeTable, room: Iterable[Amounts]
) -> bool:
    """Whether a node could take a pod of one of the shapes. room: what is to be had on each, in the order of slots."""
    rooms = list(room)
    return any(_admits(shape, filters, nodes, rooms) for shape in shapes)


def table_of(nodes: Iterable[Node]) -> NodeTable:
    """A table of these nodes alone; their slots are in their order."""
    table = NodeTable()
    for node in nodes:
        table.put(node)
    return table


def fits(requests: Iterable[tuple[str, int]], room: Amounts) -> bool:
    """Whether the room has all that is asked for; nothing asked for fits everywhere."""
    return all(amount <= room.get(resource, 0) for resource, amount in requests if amount)


def _admits(shape: Signature, filters: Iterable[NodeFilter], nodes: NodeTable, rooms: list[Amounts]) -> bool:
    slots = [slot for slot, room in enumerate(rooms) if fits(shape.requests.items(), room)]
    for each in filters if slots else ():
        mask = each.mask(shape, nodes)
        if mask is not None:
            slots = [slot for slot in slots if mask[slot]]
    return bool(slots)


def _least(shapes: list[Signature]) -> tuple[tuple[str, int], ...]:
    common = set(shapes[0].requests).intersection(*(each.requests for each in shapes))
    return tuple((name, min(each.requests[name] for each in shapes)) for name in sorted(common))


def _reads_other_pods(signature: Signature) -> bool:
    """Whether where other pods run bears on such a pod, but for the room that they take."""
    return bool(signature.spec.topology_spread_constraints) or carries_terms(signature)
