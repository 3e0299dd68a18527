"""The ground that preemption simulates on: the snapshot with some potential victims away (semantics 5.6).

The snapshot is left as it was found by everything here. If all that bears on the unit's pods is amounts, victims are
taken away as amounts alone, which costs little however many they are; else they go as the pods that they are, so that
affinity, spread and host ports see them gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from muster.core.arrays import BoolArray
from muster.core.bound_pods import grouped
from muster.core.observer import NullObserver
from muster.core.preemption.placement import PodKinds
from muster.core.preemption.usage import Usage, usage_of
from muster.core.preemption.victims import Victims
from muster.core.recursion import Recursion
from muster.core.search.packing import Budget
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit, leaves
from muster.core.trial import Ledger


@dataclass(slots=True)
class Ground:
    """One unit's tree over its potential victims, on a snapshot from which leaving pods are gone.

    recursion: that of the cycle; its snapshot is simulated on. by_amounts: nothing but amounts bears on the pods.
    budget: what placing anew may still cost.
    """

    recursion: Recursion
    victims: Victims
    budget: Budget
    by_amounts: bool = field(init=False)
    usage: Usage = field(init=False)
    kinds: PodKinds = field(init=False)

    def __post_init__(self) -> None:
        self.by_amounts = reads_amounts_alone(self.recursion)
        self.usage = usage_of(self.snapshot, self.victims)
        self.kinds = PodKinds(self.recursion)

    @property
    def snapshot(self) -> Snapshot:
        return self.recursion.snapshot

    @property
    def unit(self) -> Unit:
        return self.recursion.unit

    @property
    def move_budget(self) -> int:
        """What the budget was at first."""
        return self.budget.left + self.budget.spent

    def remove(self, evicted: BoolArray) -> None:
        """Take the units [U] away until rolled back."""
        if self.by_amounts:
            self.snapshot.lend(self.usage.freed(evicted))
        else:
            self.remove_pods(evicted)

    def remove_pods(self, evicted: BoolArray) -> None:
        """Take the units' pods away as pods until rolled back."""
        gone = evicted[self.victims.owners]
        for signature, slots, numbers in grouped(self.victims.signatures[gone], self.victims.slots[gone]):
            self.snapshot.assume_many(signature, slots, -numbers)

    def fresh_recursion(self) -> Recursion:
        """The cycle's recursion with a ledger of its own, unheard."""
        ledger = Ledger(self.snapshot, self.recursion.placer)
        return replace(self.recursion, ledger=ledger, observer=NullObserver())


def reads_amounts_alone(recursion: Recursion) -> bool:
    """Whether no filter or score that reads pods concerns the unit's pods, as long as all that run are there."""
    snapshot, profile = recursion.snapshot, recursion.profile
    indexes = {index for leaf in leaves(recursion.unit.root) for index in leaf.pods.signatures}
    signatures = [snapshot.signatures[index] for index in sorted(indexes)]
    filters = any(item.concerns(pod, snapshot) for item in profile.pod_filters for pod in signatures)
    scores = any(item.plugin.concerns(pod, snapshot) for item in profile.pod_scores for pod in signatures)
    return not filters and not scores
