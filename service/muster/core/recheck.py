"""Do assignments still hold on the current state? Asked before a commit if something changed since the snapshot.

Filters only: a node that has become a worse choice is no conflict (semantics 5.7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from muster.core.decision import Reason
from muster.core.domains import Domain
from muster.core.framework import Profile
from muster.core.local_keys import REFUSED
from muster.core.pod_placement import PodPlacer, placer_of
from muster.core.reasons import refusal_of
from muster.core.snapshot import Snapshot

NODE_GONE = "NODE_GONE"


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first assignment that does not hold: its place in the columns, its node, and why not."""

    position: int
    node_name: str
    reasons: tuple[Reason, ...] = field(default=())


def first_conflict(
    snapshot: Snapshot,
    profile: Profile,
    signatures: Sequence[int],
    node_names: Sequence[str],
    excluded: Mapping[int, frozenset[str]] | None = None,
) -> Conflict | None:
    """The first pod, in order, whose node a filter refuses it with the pods before it in place; None if all hold.

    Columns are one entry per pod. excluded: by position, nodes on which the pod must not be. The snapshot is left
    as it was found.
    """
    recheck = _Recheck(snapshot, profile, placer_of(snapshot, profile), excluded or {})
    mark = snapshot.mark()
    try:
        for signature, start, end in _runs(signatures):
            conflict = recheck.assume_run(signature, start, node_names[start:end])
            if conflict is not None:
                return conflict
        return None
    finally:
        snapshot.rollback(mark)


@dataclass(slots=True)
class _Recheck:
    snapshot: Snapshot
    profile: Profile
    placer: PodPlacer
    excluded: Mapping[int, frozenset[str]]

    def assume_run(self, signature: int, start: int, names: Sequence[str]) -> Conflict | None:
        """Assume equal pods, all at once if that is sure to hold, else one by one up to the first conflict."""
        if self._assume_all(signature, start, names):
            return None
        for position, name in enumerate(names, start):
            conflict = self._assume_one(signature, position, name)
            if conflict is not None:
                return conflict
        return None

    def _assume_all(self, index: int, start: int, names: Sequence[str]) -> bool:
        signature = self.snapshot.signatures[index]
        if self.excluded and any(start + at in self.excluded for at in range(len(names))):
            return False
        if not self.placer.filters_locally(signature):
            return False
        numbers = Counter(names)
        slots = self.snapshot.nodes.slots_of(numbers)
        if len(slots) < len(numbers):
            return False
        wanted = np.fromiter(numbers.values(), dtype=np.int64, count=len(numbers))
        row = self.placer.keys.row(signature)
        room = self.placer.keys.room(row, slots, len(names))
        if (row.keys[slots] == REFUSED).any() or (room < wanted).any():
            return False
        self.snapshot.assume_many(index, slots, wanted)
        return True

    def _assume_one(self, index: int, position: int, name: str) -> Conflict | None:
        slot = self.snapshot.nodes.slot(name)
        if slot is None:
            return Conflict(position, name, (Reason(NODE_GONE, f"node {name} does not exist any more"),))
        signature = self.snapshot.signatures[index]
        barred = self.excluded.get(position, frozenset())
        if name in barred or not self.placer.admits(signature)[slot]:
            here = Domain(slots=np.array([slot], dtype=np.intp))
            refusal = refusal_of(self.snapshot, self.profile, signature, here, barred)
            return Conflict(position, name, refusal.reasons)
        self.snapshot.assume(index, slot)
        return None


def _runs(signatures: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal signatures: the signature, its first position and the one after its last."""
    start = 0
    for signature, run in groupby(signatures):
        end = start + sum(1 for _ in run)
        yield signature, start, end
        start = end
