"""A placement that the search found becomes trials with assumed pods, as if the recursion had placed it (KEP-6012).

Fill goes on from there. Where pods have filters that the search does not know (they read other nodes), each pod is
asked for again, and those that their node refuses look for another one in their domain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import Slots
from muster.core.decision import Status
from muster.core.domains import CLUSTER, Domain
from muster.core.ordering import Batch, batches_of
from muster.core.pod_placement import PodPlacer
from muster.core.search.problem import SearchLeaf, SearchNode
from muster.core.search.search import FoundPlacement
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.core.trial import Ledger, Trial, begin


def assume_found(
    snapshot: Snapshot, unit: Unit, placer: PodPlacer, ledger: Ledger, found: FoundPlacement
) -> Trial | None:
    """The root's trial with the found minimum assumed in the ledger; None, and nothing assumed, if filters refuse it.

    Of equal pods the first created are placed.
    """
    mark = ledger.mark()
    trial = _Assuming(snapshot, unit, placer, ledger, found).trial(found.problem.root, CLUSTER)
    if trial is None or trial.status is not Status.SUCCESS:
        ledger.rollback(mark)
        return None
    return trial


@dataclass(slots=True)
class _Assuming:
    snapshot: Snapshot
    unit: Unit
    placer: PodPlacer
    ledger: Ledger
    found: FoundPlacement
    nodes: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """Per leaf and type: the slot for each pod."""

    def __post_init__(self) -> None:
        slots = self.found.problem.slots.tolist()
        for leaf, kind, node, number in self.found.counts:
            self.nodes[leaf, kind] += [slots[node]] * number

    def trial(self, node: SearchNode, outer: Domain) -> Trial | None:
        """The trial of a group, None if the placement leaves it out."""
        trial = begin(node.group)
        domain = trial.domain = self.found.domains.get(node.group.key)
        if isinstance(node, SearchLeaf):
            self._place(trial, node, domain or outer)
            return trial if trial.placed > node.group.satisfied else None
        for child in node.children:
            known = self.trial(child, domain or outer)
            if known is not None:
                trial.children[_place_of(trial, child)] = known
                if known.status is Status.SUCCESS:
                    trial.tally.place()
        return trial if any(trial.children) else None

    def _place(self, trial: Trial, leaf: SearchLeaf, domain: Domain) -> None:
        for batch, slots in self._shares(leaf):
            taken = self._assume(batch, slots, domain) if len(slots) else 0
            trial.tally.place(taken)
            if taken < len(batch.pods):
                trial.waiting.append(Batch(batch.signature, batch.pods[taken:], batch.excluded))

    def _shares(self, leaf: SearchLeaf) -> Iterator[tuple[Batch, Slots]]:
        """Each of the leaf's batches with the slots of its first pods."""
        for batch in batches_of(self.snapshot, self.unit, leaf.group.pods):
            kind = self.found.problem.types.get((batch.signature, batch.excluded))
            slots = self.nodes[leaf.index, kind] if kind is not None else []
            share, slots[:] = slots[: len(batch.pods)], slots[len(batch.pods) :]
            yield batch, np.array(share, dtype=np.intp)

    def _assume(self, batch: Batch, slots: Slots, domain: Domain) -> int:
        """How many of the batch's first pods have a node now: as many as there are slots, unless filters refuse."""
        if self.found.problem.exact:
            self.ledger.assume(batch, slots)
            return len(slots)
        signature = self.snapshot.signatures[batch.signature]
        taken = 0
        for slot in slots:
            if self.placer.admits(signature)[slot]:
                self.ledger.assume(_after(batch, taken), np.array([slot], dtype=np.intp))
                taken += 1
        return taken + self.ledger.place(_after(batch, taken), len(slots) - taken, domain)


def _after(batch: Batch, taken: int) -> Batch:
    return Batch(batch.signature, batch.pods[taken:], batch.excluded)


def _place_of(trial: Trial, child: SearchNode) -> int:
    return next(place for place, group in enumerate(trial.group.children) if group is child.group)
