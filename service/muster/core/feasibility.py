"""PlacementFeasible: the status of a group from its counters M, S, R, U, UU (KEP-6012, GangScheduling plugin changes)."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.core.decision import Status


@dataclass(slots=True)
class Tally:
    """Counters of one group while its children are tried.

    required: M. satisfied: S, children that hold. remaining: R, admissible ones not tried yet. unschedulable: U.
    unresolvable: UU, children that no removal of pods would help. status: what they come to, asked more often than they
    change.
    """

    required: int
    satisfied: int = 0
    remaining: int = 0
    unschedulable: int = 0
    unresolvable: int = 0
    status: Status = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self.status = group_status(self.required, self.satisfied, self.remaining, self.unschedulable)

    @property
    def spare(self) -> int:
        """How many remaining children may fail before the minimum is out of reach."""
        return self.satisfied + self.remaining - self.required

    def place(self, number: int = 1) -> None:
        """Remaining children hold now."""
        self.remaining -= number
        self.satisfied += number
        self.status = group_status(self.required, self.satisfied, self.remaining, self.unschedulable)

    def fail(self, number: int, status: Status) -> None:
        """Remaining children were tried without success."""
        self.remaining -= number
        if status is Status.UNSCHEDULABLE:
            self.unschedulable += number
        else:
            self.unresolvable += number
        self.status = group_status(self.required, self.satisfied, self.remaining, self.unschedulable)


def group_status(required: int, satisfied: int, remaining: int, unschedulable: int) -> Status:
    """Success, Wait, Unschedulable or UnschedulableAndUnresolvable; children that can never hold do not enter."""
    if satisfied >= required:
        return Status.SUCCESS
    if satisfied + remaining >= required:
        return Status.WAIT
    if satisfied + remaining + unschedulable >= required:
        return Status.UNSCHEDULABLE
    return Status.UNSCHEDULABLE_AND_UNRESOLVABLE
