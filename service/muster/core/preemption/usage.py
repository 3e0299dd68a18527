"""What potential victims take of each node, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.preemption.victims import Victims
from muster.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """E entries, one for each unit and node on which it has pods, unit by unit.

    firsts: [U + 1] where each unit's entries begin. owners, slots: [E]. amounts: [R, E], one row a resource of the
    snapshot. size: the snapshot's number of slots.
    """

    firsts: IntArray
    owners: IntArray
    slots: Slots
    amounts: IntArray
    size: int

    def freed(self, evicted: BoolArray) -> IntArray:
        """[R, size] what these units [U] leave behind."""
        gone = np.flatnonzero(evicted[self.owners])
        freed = np.zeros((len(self.amounts), self.size), dtype=np.int64)
        slots = self.slots[gone]
        for row, amounts in enumerate(self.amounts):
            if amounts.any():
                np.add.at(freed[row], slots, amounts[gone])
        return freed


def usage_of(snapshot: Snapshot, victims: Victims) -> Usage:
    """What each unit takes where."""
    size = snapshot.nodes.size
    if not len(victims.ids):
        nothing = np.zeros(0, dtype=np.int64)
        rows = len(snapshot.nodes.rows)
        return Usage(
            np.zeros(len(victims) + 1, dtype=np.int64), nothing, nothing, nothing.reshape(rows, 0), size
        )
    places = victims.owners * size + victims.slots
    order = np.argsort(places, kind="stable")
    places = places[order]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    indexes, which = np.unique(victims.signatures[order], return_inverse=True)
    requests = np.stack([snapshot.requests(index) for index in indexes.tolist()], axis=1)
    amounts = np.add.reduceat(requests[:, which], starts, axis=1)
    owners, slots = np.divmod(places[starts], size)
    firsts = np.searchsorted(owners, np.arange(len(victims) + 1))
    return Usage(firsts, owners, slots, amounts, size)
