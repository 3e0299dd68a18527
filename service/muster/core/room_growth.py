"""Whether a domain has more room for a unit than it had when a search for the unit failed (semantics 5.5).

Room is the capacity bound: how many pods of each shape a domain's nodes could hold, each node by itself. What was
freed in one place and taken in another place of the same domain is no growth of the domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.core.arrays import IntArray
from muster.core.capacity import pods_by_shape, rooms_of
from muster.core.domains import value_totals
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit, leaves

_MOST_SHAPES = 32


@dataclass(frozen=True, slots=True)
class Room:
    """Pods that domains could hold, by (shape, label key; "" for the whole cluster); at most 32 shapes of a unit count.

    The entries of an array stand for `values`, a column's list of label values, which only ever grows.
    """

    totals: dict[tuple[int, str], IntArray]
    values: dict[str, list[str]]

    def has_grown_since(self, before: Room) -> bool:
        """Whether a domain holds more pods of a shape than before. A new domain did not hold any."""
        if self.totals.keys() != before.totals.keys():
            return True
        if any(self.values[key] is not before.values[key] for key in self.values):
            return True
        return any(_has_grown(now, before.totals[place]) for place, now in self.totals.items())


def room_of(snapshot: Snapshot, unit: Unit, placer: PodPlacer) -> Room:
    """The room for the unit's pods in the domains that it may use: those of its constraints, else the cluster."""
    rooms, keys = rooms_of(snapshot, placer), _label_keys(unit.root)
    columns = {key: snapshot.nodes.column(key) for key in keys}
    totals: dict[tuple[int, str], IntArray] = {}
    for signature in _shapes(snapshot, unit):
        per_slot = rooms.per_slot(signature)
        for key, column in columns.items():
            totals[signature.shape, key] = value_totals(per_slot, column)
        if unit.root.topology_key is None:
            totals[signature.shape, ""] = per_slot.sum(keepdims=True)
    return Room(totals, {key: column.values for key, column in columns.items()})


def _has_grown(now: IntArray, before: IntArray) -> bool:
    known = len(before)
    return bool((now[:known] > before).any() or now[known:].any())


def _label_keys(group: GroupTree) -> set[str]:
    own = {group.topology_key} if group.topology_key is not None else set()
    return own.union(*map(_label_keys, group.children))


def _shapes(snapshot: Snapshot, unit: Unit) -> list[Signature]:
    """One signature of each shape, those of the first leaves first."""
    found: dict[int, Signature] = {}
    for leaf in leaves(unit.root):
        for signature in pods_by_shape(snapshot, leaf):
            found.setdefault(signature.shape, signature)
    return list(found.values())[:_MOST_SHAPES]
