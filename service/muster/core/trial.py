"""The working state of a decision: one trial per group, and the ledger of what is assumed.

The recursion moves these; results are made of them once it has ended. Ledger and snapshot are rolled back together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import chain

import numpy as np

from muster.core.arrays import Slots
from muster.core.decision import Assignments, GroupResult, Reason, Status
from muster.core.domains import Domain
from muster.core.feasibility import Tally
from muster.core.node_table import NodeTable
from muster.core.ordering import Batch
from muster.core.pod_placement import PodPlacer
from muster.core.snapshot import Mark, Snapshot
from muster.core.tree import GroupTree
from muster.model.meta import ObjectKey
from muster.model.variations import variation

_FEW_PODS = 16
"""Up to so many are named quicker one by one than by the order of all nodes."""
UNSUCCESSFUL = (Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE)
_BLANK = GroupResult(ObjectKey("", "", ""), Status.WAIT)
_result = variation(GroupResult, *(each.name for each in fields(GroupResult)))


@dataclass(slots=True)
class Trial:
    """What is known of one group in this cycle.

    verdict: a status that the counters do not show (no candidate domain held the group). domain: chosen by a
    constrained group. waiting: a leaf's pods not tried yet. children: trials of an inner group's children, None
    where not tried.
    """

    group: GroupTree
    tally: Tally
    verdict: Status | None = None
    domain: Domain | None = None
    tried: int = 0
    pruned: int = 0
    reasons: list[Reason] = field(default_factory=list)
    pod_reasons: dict[int, tuple[Reason, ...]] = field(default_factory=dict)
    waiting: list[Batch] = field(default_factory=list)
    children: list[Trial | None] = field(default_factory=list)

    @property
    def status(self) -> Status:
        return self.tally.status if self.verdict is None else self.verdict

    @property
    def placed(self) -> int:
        """Pods of the subtree that hold, bound ones included; of a group that failed those alone."""
        if self.status in UNSUCCESSFUL:
            return bound_pods(self.group)
        if self.group.is_leaf:
            return self.tally.satisfied
        return sum(
            bound_pods(child) if trial is None else trial.placed
            for child, trial in zip(self.group.children, self.children, strict=True)
        )


def begin(group: GroupTree) -> Trial:
    """A group before anything of it is tried: what holds already is satisfied, what may be tried remains."""
    if group.is_leaf:
        return Trial(group, Tally(group.minimum, group.satisfied, len(group.pods.ids)))
    holding = able = 0
    for child in group.children:
        if already_holds(child):
            holding += 1
        elif child.admissible:
            able += 1
    return Trial(group, Tally(group.minimum, holding, able), children=[None] * len(group.children))


def already_holds(group: GroupTree) -> bool:
    """Whether bound members alone meet the minimum."""
    if group.is_leaf:
        return group.satisfied >= group.minimum
    return sum(already_holds(child) for child in group.children) >= group.minimum


def bound_pods(group: GroupTree) -> int:
    """Pods of the subtree that hold before anything is placed."""
    return group.satisfied + sum(bound_pods(child) for child in group.children)


def result_of(trial: Trial) -> GroupResult:
    """The trial, which has ended, as a value, with results for children that were not tried."""
    tally, domain = trial.tally, trial.domain
    children: list[GroupResult] = []
    for child, known in zip(trial.group.children, trial.children, strict=True):
        children.append(result_of(begin(child) if known is None else known))
    return _result(
        _BLANK,
        key=trial.group.key,
        status=trial.status,
        required=tally.required,
        satisfied=tally.satisfied,
        remaining=tally.remaining,
        unschedulable=tally.unschedulable,
        unresolvable=tally.unresolvable,
        domain_key=domain.key if domain is not None else "",
        domain_value=domain.value if domain is not None else "",
        tried=trial.tried,
        pruned=trial.pruned,
        reasons=tuple(trial.reasons),
        pod_reasons=trial.pod_reasons,
        children=tuple(children),
    )


def attributes_of(trial: Trial) -> dict[str, str | int]:
    """What the observer is told of a group when it is left."""
    group, tally = trial.group, trial.tally
    return {
        "kind": group.key.kind,
        "key": str(group.key),
        "policy": "gang" if group.is_gang else "basic",
        "m": tally.required,
        "s": tally.satisfied,
        "r": tally.remaining,
        "u": tally.unschedulable,
        "uu": tally.unresolvable,
        "status": trial.status.name,
        "domain": trial.domain.value if trial.domain is not None else "",
        "tried": trial.tried,
        "pruned": trial.pruned,
        "pods": trial.placed,
    }


class Ledger:
    """Places batches of pods on the snapshot and remembers which pod went where, in the order of placing."""

    def __init__(self, snapshot: Snapshot, placer: PodPlacer) -> None:
        self._snapshot = snapshot
        self._placer = placer
        self._entries: list[tuple[tuple[int, ...], Slots]] = []

    def mark(self) -> tuple[Mark, int]:
        return self._snapshot.mark(), len(self._entries)

    def rollback(self, mark: tuple[Mark, int]) -> None:
        """Take back all that was placed since the mark."""
        self._snapshot.rollback(mark[0])
        del self._entries[mark[1] :]

    def place(self, batch: Batch, count: int, domain: Domain) -> int:
        """Assume up to `count` of the batch's first pods; how many found a node."""
        within = domain.slots
        if batch.excluded:
            excluded = self._snapshot.nodes.slots_of(sorted(batch.excluded))
            within = np.setdiff1d(self._snapshot.nodes.order if within is None else within, excluded)
        slots = self._placer.place(batch.signature, count, within)
        if len(slots):
            self._entries.append((batch.pods[: len(slots)], slots))
        return len(slots)

    def assume(self, batch: Batch, slots: Slots) -> None:
        """Assume the batch's first pods on the slots, one each; the caller answers for filters and room."""
        used, numbers = np.unique(slots, return_counts=True)
        self._snapshot.assume_many(batch.signature, used, numbers.astype(np.int64))
        self._entries.append((batch.pods[: len(slots)], slots))

    def batches(self) -> Sequence[tuple[tuple[int, ...], Slots]]:
        """All that is assumed now, in order: pods that are equal, of one group, and the slot of each."""
        return self._entries

    def assignments(self) -> Assignments:
        """All that is assumed now; nodes by name, so that no slot shows."""
        if not self._entries:
            return Assignments()
        nodes = self._snapshot.nodes
        if len(self._entries) == 1:
            pods = self._entries[0][0]
        else:
            pods = tuple(chain.from_iterable([ids for ids, _ in self._entries]))
        if len(pods) <= _FEW_PODS:
            return few_assignments(
                nodes, pods, [slot for _, column in self._entries for slot in column.tolist()]
            )
        ranks: list[int] = nodes.ranks[np.concatenate([slots for _, slots in self._entries])].tolist()
        used = sorted(set(ranks))
        place_of = dict(zip(used, range(len(used)), strict=True))
        names = tuple(map(nodes.names.__getitem__, nodes.order[used].tolist()))
        return Assignments(pods, names, tuple(map(place_of.__getitem__, ranks)))


def few_assignments(nodes: NodeTable, pods: tuple[int, ...], slots: list[int]) -> Assignments:
    """A handful of pods on their slots; nodes by name, so that no slot shows."""
    on = [nodes.names[slot] for slot in slots]
    used = tuple(sorted(set(on)))
    return Assignments(pods, used, tuple(map(used.index, on)))
