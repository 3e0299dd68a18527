"""The counters of one group in each of the domains in which it is tried at once, and its statuses (semantics 5.2)."""

from __future__ import annotations

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.decision import Status
from muster.core.tree import GroupTree
from muster.core.trial import begin

SUCCESS = int(Status.SUCCESS)
UNSCHEDULABLE = int(Status.UNSCHEDULABLE)
UNRESOLVABLE = int(Status.UNSCHEDULABLE_AND_UNRESOLVABLE)


class LaneTally:
    """lanes: [D] those in which the group is tried. Counters: [D], as in `feasibility.Tally`."""

    def __init__(self, group: GroupTree, lanes: BoolArray) -> None:
        begun = begin(group).tally
        self.lanes = lanes
        self.required = begun.required
        self.satisfied: IntArray = np.full(len(lanes), begun.satisfied, dtype=np.int64)
        self.remaining: IntArray = np.full(len(lanes), begun.remaining, dtype=np.int64)
        self.unschedulable: IntArray = np.zeros(len(lanes), dtype=np.int64)

    @property
    def missing(self) -> IntArray:
        return self.required - self.satisfied

    @property
    def spare(self) -> IntArray:
        return self.satisfied + self.remaining - self.required

    @property
    def waits(self) -> BoolArray:
        """Lanes that have not met the minimum and may yet."""
        waits: BoolArray = self.lanes & (self.missing > 0) & (self.spare >= 0)
        return waits

    @property
    def statuses(self) -> IntArray:
        """Once nothing waits any more."""
        failed = np.where(self.spare + self.unschedulable >= 0, UNSCHEDULABLE, UNRESOLVABLE)
        statuses: IntArray = np.where(self.missing <= 0, SUCCESS, failed)
        return statuses

    def place(self, numbers: IntArray) -> None:
        self.satisfied += numbers
        self.remaining -= numbers

    def fail(self, numbers: IntArray, could: BoolArray) -> None:
        """Remaining children were tried without success; whether removing pods could help them."""
        self.remaining -= numbers
        self.unschedulable += np.where(could, numbers, 0)

    def count(self, lanes: BoolArray, statuses: IntArray) -> None:
        """One child was tried in the lanes."""
        self.remaining -= lanes
        self.satisfied += lanes & (statuses == SUCCESS)
        self.unschedulable += lanes & (statuses == UNSCHEDULABLE)
