"""What one revision changed around waiting units: which nodes, what may be had there now, and which pods.

Made for every revision that is followed by an event, and looked into only if a unit waits that one of the events may
help: then the touched nodes are looked up, and the room on them is worked out from objects, for few nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from muster.core.framework import Profile
from muster.core.needs import Needs, admits_one, fits, table_of
from muster.core.node_table import NodeTable
from muster.model.meta import NODE
from muster.model.node import Node
from muster.model.pod import Pod
from muster.model.resources import Amounts, node_allocatable
from muster.plugins.pod_bearing import bears_on

if TYPE_CHECKING:
    from muster.engine.array_feed import ArrayFeed
    from muster.engine.cluster_state import ClusterState
    from muster.engine.edits import Edits

_NOBODY, _EVERYBODY = float("inf"), float("-inf")
MOST_NODES = 64
"""With more touched nodes than that, one of them is taken to be of use for any unit."""


class Change:
    """`profiles` by name: whose filters say which pods a node takes."""

    def __init__(
        self,
        edits: Edits,
        state: ClusterState,
        feed: ArrayFeed,
        profiles: Mapping[str, Profile],
    ) -> None:
        self._edits = edits
        self._state = state
        self._feed = feed
        self._profiles = profiles
        self._nodes: list[Node] | None = None
        self._pods: frozenset[int] | None = None
        self._are_many = False
        self._table: NodeTable | None = None
        self._rooms: dict[float, list[Amounts]] = {}

    def admits(self, needs: Needs) -> bool:
        """Whether a touched node could take one of the pods once all are gone that they may preempt."""
        if not self._is_few():
            return True
        rooms = self._rooms_for(_staying(needs))
        if not any(fits(needs.least, room) for room in rooms):
            return False
        if self._table is None:
            self._table = table_of(self._nodes or ())
        return admits_one(needs.shapes, self._profiles[needs.profile].node_filters, self._table, rooms)

    def concerns(self, needs: Needs) -> bool:
        """Whether a pod that came, went or changed bears on where one of the pods may run."""
        signatures = self._feed.signatures
        touched = [signatures[index] for index in self._touched_pods()]
        return any(bears_on(other, shape) for other in touched for shape in needs.shapes)

    def most(self, priority: int | None) -> Amounts | None:
        """Of each resource, the most that a touched node could offer to a unit up to a priority; None if not known.

        Without a priority, the most that it offers at all.
        """
        if not self._is_few():
            return None
        most: Amounts = {}
        for room in self._rooms_for(_NOBODY if priority is None else priority):
            for resource, amount in room.items():
                most[resource] = max(most.get(resource, 0), amount)
        return most

    def _is_few(self) -> bool:
        if self._nodes is None:
            touched = self._touched()
            self._are_many = len(touched) > MOST_NODES
            self._nodes = [] if self._are_many else self._found(touched)
        return not self._are_many

    def _touched(self) -> dict[str, None]:
        """Names of nodes that changed, and of those on which a pod gave its room back, which none in a run does."""
        touched: dict[str, None] = {}
        for key, edit in self._edits.singles.items():
            if key.kind == NODE:
                touched[key.name] = None
            elif isinstance(edit.old, Pod) and edit.old.node_name and not edit.old.is_terminal:
                new = edit.new
                if not isinstance(new, Pod) or new.is_terminal or new.node_name != edit.old.node_name:
                    touched[edit.old.node_name] = None
        return touched

    def _touched_pods(self) -> frozenset[int]:
        """Signatures of pods that took room, gave it back, got a deletion mark or changed, as they were and are."""
        if self._pods is None:
            states = (
                pod
                for edit in chain(self._edits.singles.values(), self._edits.in_runs)
                if isinstance(edit.old or edit.new, Pod)
                for pod in (edit.old, edit.new, edit.last)
            )
            bound = (pod for pod in states if isinstance(pod, Pod) and pod.node_name)
            self._pods = frozenset(map(self._feed.signature_of, bound))
        return self._pods

    def _found(self, names: Iterable[str]) -> list[Node]:
        nodes = self._state.objects[NODE]
        found = (nodes.get(("", name)) for name in names)
        return [each for each in found if isinstance(each, Node)]

    def _rooms_for(self, priority: float) -> list[Amounts]:
        """By touched node, what is free once pods below the priority are gone, and those that leave anyway."""
        rooms = self._rooms.get(priority)
        if rooms is None:
            rooms = self._rooms[priority] = [self._room(node, priority) for node in self._nodes or ()]
        return rooms

    def _room(self, node: Node, priority: float) -> Amounts:
        room = dict(node_allocatable(node))
        for pod in self._state.pods_on(node.name) if priority < _NOBODY else ():
            if pod.is_member and (pod.spec.priority or 0) >= priority:
                for resource, amount in self._feed.signatures[self._feed.signature_of(pod)].requests.items():
                    room[resource] = room.get(resource, 0) - amount
        return room


def _staying(needs: Needs) -> float:
    """From which priority on pods count as staying."""
    if not needs.resolvable:
        return _NOBODY
    return needs.priority if needs.preempts else _EVERYBODY
