"""Upper bounds on what a domain can hold, so that hopeless candidates are not simulated (semantics 5.4).

Per signature, the sum over nodes of the pods that each could hold by itself: exact for one signature, never too
low for several. From free amounts it says whether to try, from allocatable ones whether removing pods could help.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from muster.core.arrays import IntArray
from muster.core.decision import Status
from muster.core.domains import Domain
from muster.core.pod_placement import PodPlacer
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree

_Amounts = Literal["free", "allocatable"]


class CapacityBound:
    """Bounds on the snapshot as it is when they are first asked for; make a new one after it changed."""

    def __init__(self, snapshot: Snapshot, placer: PodPlacer) -> None:
        self._snapshot = snapshot
        self._placer = placer
        self._room: dict[tuple[int, _Amounts], IntArray] = {}

    def failure(self, group: GroupTree, domain: Domain) -> Status | None:
        """The status that the group certainly has in the domain, None if it may hold its minimum there."""
        if self._holds(group, domain, "free"):
            return None
        if self._holds(group, domain, "allocatable"):
            return Status.UNSCHEDULABLE
        return Status.UNSCHEDULABLE_AND_UNRESOLVABLE

    def _holds(self, group: GroupTree, domain: Domain, amounts: _Amounts) -> bool:
        if not group.is_leaf:
            able = sum(child.admissible and self._holds(child, domain, amounts) for child in group.children)
            return able >= group.minimum
        return group.satisfied + self._pods(group, domain, amounts) >= group.minimum

    def _pods(self, leaf: GroupTree, domain: Domain, amounts: _Amounts) -> int:
        missing = leaf.minimum - leaf.satisfied
        held = 0
        signatures, numbers = np.unique(np.array(leaf.pods.signatures, dtype=np.int64), return_counts=True)
        for signature, number in zip(signatures.tolist(), numbers.tolist(), strict=True):
            if held >= missing:
                break
            room = self._room_of(signature, amounts)
            within = room if domain.slots is None else room[domain.slots]
            held += min(number, int(np.minimum(within, number).sum()))
        return held

    def _room_of(self, index: int, amounts: _Amounts) -> IntArray:
        known = self._room.get((index, amounts))
        if known is None:
            row = self._placer.keys.row(self._snapshot.signatures[index])
            nodes = self._snapshot.nodes
            offered = nodes.free if amounts == "free" else nodes.allocatable
            known = np.full(nodes.size, 1 if row.exclusive else np.iinfo(np.int64).max, dtype=np.int64)
            for resource, amount in row.amounts:
                np.minimum(known, np.maximum(offered[resource], 0) // amount, out=known)
            known[~row.admitted] = 0
            self._room[index, amounts] = known
        return known
