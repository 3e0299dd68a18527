"""A stage for pods of several shapes, or that end in domains of different sizes: each takes room on the node it would.

All domains of a level are served in one pass. A node's keys for its first, second, third pod make a column, replaced
by its running minimum; the pods of a domain go to its largest entries (`core.pod_placement` says why that is the
sequence of one at a time). Columns grow until no entry further down could be among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.capacity import MANY, Amounts, Rooms
from muster.core.cuts import Level
from muster.core.local_keys import REFUSED, KeyRow, NodeOffer
from muster.core.signature import Signature
from muster.core.stage_ids import StateIds


class _Saved(NamedTuple):
    free: IntArray
    pods: IntArray
    ids: list[IntArray]


@dataclass(slots=True)
class _StageOffer(NodeOffer):
    """Amounts of nodes as they are on the stage. staged: [R, nodes of the offer] free amounts."""

    staged: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    def free(self, row: int) -> IntArray:
        of_row: IntArray = self.staged[row]
        return of_row


@dataclass(slots=True)
class PickedStage:
    """Works on a copy of what is free on the N nodes of the first level, in their order there."""

    rooms: Rooms
    levels: tuple[Level, ...]
    _slots: Slots = field(init=False)
    _orders: list[IntArray] = field(init=False)
    _members: list[IntArray] = field(init=False)
    _free: IntArray = field(init=False)
    _pods: IntArray = field(init=False)
    _ids: StateIds = field(init=False)
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = tuple(map(len, self.levels))
        nodes = self.rooms.snapshot.nodes
        self._slots = self.levels[0].slots
        places = np.zeros(nodes.size, dtype=np.int64)
        places[self._slots] = np.arange(len(self._slots))
        self._orders = [places[level.slots] for level in self.levels]
        self._members = []
        for level, order in zip(self.levels, self._orders, strict=True):
            members = np.full(len(self._slots), -1)
            members[order] = level.members
            self._members.append(members)
        self._free = nodes.free[:, self._slots]
        self._pods = np.zeros(len(self._slots), dtype=np.int64)
        self._ids = StateIds(self.sizes, self._members)

    def parents(self, level: int) -> IntArray:
        return self.levels[level].parents

    def ids(self, level: int) -> IntArray:
        return self._ids.of(level)

    def room(self, signature: Signature, level: int) -> IntArray:
        row = self.rooms.placer.keys.row(signature)
        return self._sums(self._room_of(row, np.arange(len(self._slots))), level)

    def room_if_empty(self, signature: Signature, level: int) -> IntArray:
        return self.rooms.sums(signature, self.levels[level], "allocatable")

    def offered(self, row: int, signatures: tuple[Signature, ...], level: int, by: Amounts) -> IntArray:
        if by == "allocatable":
            return self.levels[level].sums(self.rooms.offered(row, signatures, by))
        rows, everywhere = map(self.rooms.placer.keys.row, signatures), np.arange(len(self._slots))
        fits = np.logical_or.reduce([self._room_of(each, everywhere) > 0 for each in rows])
        return self._sums(np.where(fits, np.maximum(self._free[row], 0), 0), level)

    def take(self, signature: Signature, wanted: IntArray, level: int) -> IntArray:
        """[D of the level] how many of the wanted pods each domain places; their room is taken."""
        row = self.rooms.placer.keys.row(signature)
        members = self._members[level]
        nodes = np.flatnonzero((members >= 0) & (wanted[members] > 0))
        room = self._room_of(row, nodes)
        nodes, room = nodes[room > 0], room[room > 0]
        held = np.bincount(members[nodes], weights=room, minlength=len(wanted)).astype(np.int64)
        placed = np.minimum(wanted, held)
        counts = room
        choosing = (held > placed)[members[nodes]]
        if choosing.any():
            columns = _Columns(self, row, nodes[choosing], members[nodes[choosing]], room[choosing])
            counts[choosing] = columns.counts(placed)
        for resource, amount in row.amounts:
            self._free[resource, nodes] -= amount * counts
        self._pods[nodes] += counts
        self._ids.touch(nodes[counts > 0])
        return placed

    def placed(self, level: int) -> IntArray:
        return self._sums(self._pods, level)

    def used(self, row: int, level: int) -> IntArray:
        nodes = self.rooms.snapshot.nodes
        in_use = nodes.allocatable[row][self._slots] - self._free[row]
        return self._sums(in_use, level)

    def allocatable(self, row: int, level: int) -> IntArray:
        return self.levels[level].sums(self.rooms.snapshot.nodes.allocatable[row])

    def save(self) -> _Saved:
        return _Saved(self._free.copy(), self._pods.copy(), self._ids.save())

    def restore(self, saved: _Saved) -> None:
        self._free[:] = saved.free
        self._pods[:] = saved.pods
        self._ids.restore(saved.ids)

    def take_back(self, saved: _Saved, lanes: BoolArray, level: int) -> None:
        members = self._members[level]
        concerned = np.flatnonzero((members >= 0) & lanes[members])
        self._free[:, concerned] = saved.free[:, concerned]
        self._pods[concerned] = saved.pods[concerned]
        self._ids.take_back(saved.ids, lanes, level)

    def keys(self, row: KeyRow, nodes: IntArray, taken: IntArray) -> IntArray:
        """Keys of nodes for one more pod than `taken`, which are not assumed."""
        offer = _StageOffer(
            self.rooms.snapshot.nodes,
            row.requests,
            self._slots[nodes],
            taken + 1,
            staged=self._free[:, nodes],
        )
        return self.rooms.placer.keys.keys_of(row, offer)

    def _room_of(self, row: KeyRow, nodes: IntArray) -> IntArray:
        room = np.where(row.admitted[self._slots[nodes]], MANY, 0)
        for resource, amount in row.amounts:
            np.minimum(room, np.maximum(self._free[resource, nodes], 0) // amount, out=room)
        return room

    def _sums(self, per_node: IntArray, level: int) -> IntArray:
        return self.levels[level].parted_sums(per_node[self._orders[level]])


@dataclass(slots=True)
class _Columns:
    """Nodes of domains that do not need all of their room. room: above 0."""

    stage: PickedStage
    row: KeyRow
    nodes: IntArray
    domains: IntArray
    room: IntArray

    def counts(self, placed: IntArray) -> IntArray:
        """How many pods each node takes. placed: per domain, fewer than it holds."""
        counts = np.zeros(len(self.nodes), dtype=np.int64)
        open_ = np.arange(len(self.nodes))
        sizes = np.bincount(self.domains, minlength=len(placed))
        depth = max(1, int((2 * -(-placed // np.maximum(sizes, 1))).max()) - 1)
        while len(open_):
            counts[open_], unsettled = self._taken_within(open_, placed, depth)
            open_ = open_[np.isin(self.domains[open_], unsettled)]
            depth *= 2
        return counts

    def _taken_within(self, of: IntArray, placed: IntArray, depth: int) -> tuple[IntArray, IntArray]:
        """Pods per node if columns ended at a depth, and the domains in which they must be longer."""
        taken = np.arange(depth)
        room = self.room[of]
        nodes = np.repeat(self.nodes[of], depth)
        filled = (taken < room[:, None]).ravel()
        keys = np.full(len(nodes), REFUSED, dtype=np.int64)
        at = np.tile(taken, len(of))
        keys[filled] = self.stage.keys(self.row, nodes[filled], at[filled])
        keys = np.minimum.accumulate(keys.reshape(len(of), depth), axis=1)
        domains = self.domains[of]
        entries, owners = keys.ravel(), np.repeat(np.arange(len(of)), depth)
        order = np.lexsort((at, -entries, domains[owners]))
        order = order[entries[order] != REFUSED]
        in_domain = domains[owners[order]]
        firsts = np.flatnonzero(np.diff(in_domain, prepend=-1))
        ranks = np.arange(len(order)) - np.repeat(firsts, np.diff(firsts, append=len(order)))
        chosen = order[ranks < placed[in_domain]]
        counts = np.bincount(owners[chosen], minlength=len(of))
        exhausted = (counts == depth) & (room > depth)
        return counts, np.unique(domains[exhausted])
