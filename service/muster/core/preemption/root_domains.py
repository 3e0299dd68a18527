"""Which domains of a constrained root are worth a try: those that need the least of dear units (semantics 5.6, 5)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from muster.core.arrays import IntArray
from muster.core.cuts import levels_of
from muster.core.domains import CLUSTER, Domain
from muster.core.pins import allowed_places
from muster.core.preemption.ground import Ground
from muster.core.tree import leaves


def cheapest_domains(ground: Ground, number: int) -> list[Domain]:
    """Up to so many domains that the root may use; none if it is not constrained, or has no choice.

    Sorted by the lowest priority threshold at which the sum of all amounts suffices for all pending pods, then by what
    is lacking as things are, then by value.
    """
    root, snapshot = ground.unit.root, ground.snapshot
    if root.topology_key is None:
        return []
    (level,) = levels_of(snapshot, CLUSTER, (root.topology_key,))
    places, _ = allowed_places(snapshot.nodes, root, level, CLUSTER)
    if len(places) <= 1:
        return []
    wanted = _wanted(ground)
    rows = np.flatnonzero(wanted)

    def lacking(freed: IntArray) -> IntArray:
        """[D, R] what the domains lack of the wanted amounts."""
        room = [level.sums(np.maximum(snapshot.nodes.free[row] + freed[row], 0)) for row in rows]
        lacks: IntArray = np.maximum(wanted[rows] - np.stack(room, axis=1), 0)
        return lacks

    priorities = ground.victims.priorities
    now = lacking(ground.usage.freed(ground.victims.nobody()))
    short = now.any(axis=1)
    thresholds = np.zeros(len(level), dtype=np.int64)
    for priority in np.unique(priorities).tolist():
        thresholds += short
        short &= lacking(ground.usage.freed(priorities <= priority)).any(axis=1)
    # Where even all room is not enough, the minimum may still fit.
    thresholds += short
    shares = (now / wanted[rows]).sum(axis=1)
    order = sorted(places.tolist(), key=lambda place: (thresholds[place], shares[place], level.values[place]))
    return [level.domains[place] for place in order[:number]]


def _wanted(ground: Ground) -> IntArray:
    """[R] what all pending pods ask for."""
    wanted = np.zeros(len(ground.snapshot.nodes.rows), dtype=np.int64)
    for leaf in leaves(ground.unit.root):
        for signature, pods in Counter(leaf.pods.signatures).items():
            wanted += pods * ground.snapshot.requests(signature)
    return wanted
