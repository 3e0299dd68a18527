"""What the domains of some levels hold and use, followed from one unit to the next node by node.

For pods of one shape. Between two small units a handful of nodes change, so sums over domains are moved by what those
nodes gained and lost, in plain integers; after many changes all are added up anew. Which domains moved is written down,
for whoever keeps something derived of each (`core.standings`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import numpy as np

from muster.core.arrays import IntArray
from muster.core.capacity import MANY, Rooms
from muster.core.cuts import Level, levels_of
from muster.core.domains import CLUSTER
from muster.core.signature import Signature

_FEW_CHANGES = 64
_LONGEST_LOG = 4096
_LARGEST_SUM = 2**62


@dataclass(slots=True)
class LevelSums:
    """Of the domains of one level, by place.

    room, room_if_empty: pods by free and by allocatable amounts. used, allocatable: per domain one amount a row asked
    about. place_of: per slot the node's domain, -1 for none. moved: places of the domains that changed, oldest first.
    """

    level: Level
    room: list[int]
    room_if_empty: list[int]
    used: list[list[int]]
    allocatable: list[tuple[int, ...]]
    place_of: list[int]
    moved: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RunningSums:
    """The cluster cut by `path`. rows: resources of which use is added up. requests: what a pod takes of each of them."""

    rooms: Rooms
    signature: Signature
    path: tuple[str, ...]
    rows: tuple[int, ...]
    requests: tuple[int, ...] = ()
    levels: tuple[LevelSums, ...] = ()
    _version: int = -1
    _position: int = -1
    _fitting: list[int] = field(default_factory=list)
    _admitted: list[bool] = field(default_factory=list)
    _amounts: tuple[tuple[int, int], ...] = ()
    _free: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """When all was added up; `_seen` has what nodes that changed have now."""
    _seen: dict[int, list[int]] = field(default_factory=dict)

    def follow(self) -> bool:
        """Take in what nodes gained or lost since; False, and nothing is taken in, if all must be added up anew."""
        snapshot = self.rooms.snapshot
        nodes, changes = snapshot.nodes, snapshot.changes
        if self._version != nodes.version or self._free.shape != nodes.free.shape:
            return False
        if changes.position - self._position > _FEW_CHANGES or len(self.levels[0].moved) > _LONGEST_LOG:
            return False
        slots = changes.since(self._position)
        if slots is None:
            return False
        self._take_in(slots)
        self._position = changes.position
        return True

    def _take_in(self, slots: list[int]) -> None:
        free, seen = self.rooms.snapshot.nodes.free, self._seen
        for slot in slots:
            before, now = seen.get(slot), free[:, slot].tolist()
            if before is None:
                before = self._free[:, slot].tolist()
            if before != now:
                seen[slot] = now
                self._move(slot, before, now)

    def add_up(self) -> bool:
        """All sums anew, with nothing written down as moved; False, and nothing is known, if one might overflow."""
        rooms, snapshot = self.rooms, self.rooms.snapshot
        nodes = snapshot.nodes
        if not all(map(self._is_safe, self.rows)):
            self._version = -1
            return False
        admission = rooms.admission(self.signature)
        self._admitted, self._amounts = admission.admitted.tolist(), admission.amounts
        requests = snapshot.requests(self.signature.index).tolist()
        self.requests = tuple(requests[row] for row in self.rows)
        self.levels = tuple(map(self._added_up, levels_of(snapshot, CLUSTER, self.path)))
        self._fitting = rooms.per_slot(self.signature).tolist()
        self._free, self._seen = nodes.free.copy(), {}
        self._version, self._position = nodes.version, snapshot.changes.position
        return True

    def _added_up(self, level: Level) -> LevelSums:
        nodes = self.rooms.snapshot.nodes
        offered = [level.static_sums(row, partial(itemgetter(row), nodes.allocatable)) for row in self.rows]
        used = [sums - level.sums(nodes.free[row]) for row, sums in zip(self.rows, offered, strict=True)]
        place_of = np.full(nodes.size, -1, dtype=np.int64)
        place_of[level.slots] = level.members
        return LevelSums(
            level=level,
            room=self.rooms.sums(self.signature, level, "free").tolist(),
            room_if_empty=self.rooms.sums(self.signature, level, "allocatable").tolist(),
            used=np.transpose(used).tolist(),
            allocatable=list(map(tuple, np.transpose(offered).tolist())),
            place_of=place_of.tolist(),
        )

    def _move(self, slot: int, before: list[int], now: list[int]) -> None:
        more_room = self._more_room(slot, now) if self._admitted[slot] else 0
        for sums in self.levels:
            place = sums.place_of[slot]
            if place >= 0:
                sums.room[place] += more_room
                used = sums.used[place]
                for at, row in enumerate(self.rows):
                    used[at] += before[row] - now[row]
                sums.moved.append(place)

    def _more_room(self, slot: int, free: list[int]) -> int:
        """How many pods more than before a node holds that admits them."""
        room = MANY
        for row, amount in self._amounts:
            number = free[row] // amount
            if number < room:
                room = max(0, number)
        before, self._fitting[slot] = self._fitting[slot], room
        return room - before

    def _is_safe(self, row: int) -> bool:
        nodes = self.rooms.snapshot.nodes
        least, most = int(nodes.free[row].min()), int(nodes.allocatable[row].max())
        return max(-least, most) < _LARGEST_SUM // nodes.size
