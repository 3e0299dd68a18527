"""Ways to place a tree anew with some units gone: by the recursion, or by counting where that is as good.

A placer is asked often whether the wanted pods fit, and seldom where. All of them count what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import Status
from muster.core.domains import CLUSTER, Domain
from muster.core.preemption.counted_return import Entries, Holding, Returning
from muster.core.preemption.eligible import tried_pods
from muster.core.preemption.ground import Ground
from muster.core.preemption.placement import Kind, Placement
from muster.core.preemption.victims import runs
from muster.core.tree import GroupTree

_PLACING = 20
_NODES_A_STEP = 40
_PODS_A_STEP = 2
_CONSTRAINED_GROUP = 150
"""Steps that choosing the domain of one group costs."""


class Placer(Protocol):
    """Places the pods of a tree that are wanted, or finds that they do not fit."""

    def may_fit(self, evicted: BoolArray) -> bool:
        """False if sums of amounts rule out at once that they fit with these units [U] gone."""
        ...

    def fits(self, evicted: BoolArray) -> bool:
        """Whether they were found to fit then."""
        ...

    def place(self, evicted: BoolArray) -> Placement | None:
        """Where they fit then; None if they were not found to."""
        ...


class TreePlacer(Placer, Protocol):
    """Places the whole tree in one domain of its root. wanted: how many pods must be placed, all groups together."""

    wanted: int

    def most(self, evicted: BoolArray) -> Placement | None:
        """All that can be placed then; None if the root does not hold."""
        ...


@dataclass(slots=True)
class RecursionPlacer:
    """Places `root` inside `outer` by the recursion. wanted: how many pods must be placed, all groups together."""

    ground: Ground
    root: GroupTree
    outer: Domain = CLUSTER
    wanted: int = 0
    _cost: int = field(init=False)
    _known: dict[bytes, Placement | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.ground.snapshot.nodes
        size = len(nodes.order if self.outer.slots is None else self.outer.slots)
        domains = (
            1 if self.root.topology_key is None else len(set(nodes.column(self.root.topology_key).values))
        )
        work = self.ground.unit.pod_count // _PODS_A_STEP + _CONSTRAINED_GROUP * _constrained(self.root)
        self._cost = _PLACING + size // _NODES_A_STEP + domains * work

    def may_fit(self, evicted: BoolArray) -> bool:
        nodes = self.ground.snapshot.nodes
        self.ground.budget.spend(_PLACING + nodes.size // _NODES_A_STEP)
        asked = self.ground.kinds.least_amounts(self.wanted)
        rows = np.flatnonzero(asked)
        where = np.ix_(rows, nodes.order if self.outer.slots is None else self.outer.slots)
        room = nodes.free[where] + self.ground.usage.freed(evicted)[where]
        return bool((np.maximum(room, 0).sum(axis=1) >= asked[rows]).all())

    def fits(self, evicted: BoolArray) -> bool:
        return self.may_fit(evicted) and self.place(evicted) is not None

    def place(self, evicted: BoolArray) -> Placement | None:
        placement = self.most(evicted)
        return placement if placement is not None and len(placement) >= self.wanted else None

    def most(self, evicted: BoolArray) -> Placement | None:
        """All that can be placed with these units gone; None if the root does not hold."""
        key = evicted.tobytes()
        if key not in self._known:
            self._known[key] = self._placed(evicted)
        return self._known[key]

    def _placed(self, evicted: BoolArray) -> Placement | None:
        ground = self.ground
        ground.budget.spend(self._cost)
        mark = ground.snapshot.mark()
        ground.remove(evicted)
        recursion = ground.fresh_recursion()
        trial = recursion.minimum(self.root, self.outer)
        placement = None
        if trial.status is Status.SUCCESS:
            recursion.fill(trial, self.outer)
            placement = ground.kinds.placement(trial, recursion.ledger, self.outer)
        ground.snapshot.rollback(mark)
        return placement


@dataclass(slots=True)
class CountingPlacer:
    """For pods of one kind, of which each node holds so many: they fit if the sum is large enough."""

    placer: RecursionPlacer
    kind: Kind
    _known: dict[bytes, int] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        return self.placer.wanted

    @wanted.setter
    def wanted(self, wanted: int) -> None:
        self.placer.wanted = wanted

    def may_fit(self, evicted: BoolArray) -> bool:
        return self.fits(evicted)

    def fits(self, evicted: BoolArray) -> bool:
        return self.number(evicted) >= self.wanted

    def number(self, evicted: BoolArray) -> int:
        """How many of the wanted pods all nodes hold with these units gone."""
        key = evicted.tobytes()
        if key not in self._known:
            self._known[key] = self._total(self._room(evicted))
        return min(self.wanted, self._known[key])

    def place(self, evicted: BoolArray) -> Placement | None:
        return self.placer.place(evicted)

    def most(self, evicted: BoolArray) -> Placement | None:
        return self.placer.most(evicted)

    def can_be_back(self, evicted: BoolArray, order: IntArray) -> BoolArray:
        """For each unit of the order, whether the pods still fit, somewhere, with it and those before it back."""
        taken = self.placer.ground.usage.by_unit
        rows = np.flatnonzero(self.kind.requests)
        room = np.array(list(self._room(evicted)), dtype=np.int64)
        spare = self._total(room) - self.wanted
        sizes = taken.firsts[order + 1] - taken.firsts[order]
        places = runs(taken.firsts[order], sizes)
        amounts = taken.amounts[np.ix_(rows, places)]
        entries = Entries(np.repeat(np.arange(len(order)), sizes), taken.slots[places], amounts)
        return Returning(entries, len(order), room, self._holding, self.kind.admitted, spare).run()

    def _room(self, evicted: BoolArray) -> Iterator[IntArray]:
        """[size] free amounts of each requested resource in turn."""
        ground = self.placer.ground
        ground.budget.spend(_PLACING + ground.snapshot.nodes.size // _NODES_A_STEP)
        free, freed = ground.snapshot.nodes.free, ground.usage.freed(evicted)
        return (free[row] + freed[row] for row in np.flatnonzero(self.kind.requests).tolist())

    def _total(self, room: Iterable[IntArray]) -> int:
        """How many pods all nodes hold that admit them, by the room of all nodes."""
        return int(self._holding.counts(room)[self.kind.admitted].sum())

    @property
    def _holding(self) -> Holding:
        return Holding(tuple(self.kind.requests[self.kind.requests > 0].tolist()), self.wanted)


def placer_in(ground: Ground, domain: Domain) -> RecursionPlacer | CountingPlacer:
    """Places all pods with the root in this domain, by counting if it can; CLUSTER: wherever it may be."""
    root = ground.unit.root
    if domain is not CLUSTER:
        root = replace(root, topology_key=None)
    placer = RecursionPlacer(ground, root, domain, tried_pods(root))
    is_free = root.is_leaf and root.topology_key is None
    if (
        is_free
        and ground.by_amounts
        and len(set(root.pods.signatures)) == 1
        and not ground.unit.excluded_nodes
    ):
        return CountingPlacer(placer, ground.kinds.kind(root.pods.ids[0], domain))
    return placer


def _constrained(group: GroupTree) -> int:
    """Groups below that must choose a domain, this one left out."""
    return sum((child.topology_key is not None) + _constrained(child) for child in group.children)
