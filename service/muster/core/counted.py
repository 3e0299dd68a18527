"""The recursion in counts, for all domains of a level at once: what simulating each of them alone would come to.

For trees of one shape of pod whose leaves all end in domains of the same labels. There placement needs no nodes: how
many pods a domain still holds, and how full it then is, follow from how many it got, whichever nodes took them.
Domains of one level do not overlap, so each group is decided in all of them by the same few operations on columns.
Mirrors `core.recursion` step by step (KEP-6012); which trees qualify is for `core.lockstep` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.cuts import Level
from muster.core.decision import Status
from muster.core.framework import PlacementScorer, PlacementViews
from muster.core.tree import GroupTree
from muster.core.trial import already_holds, begin, bound_pods

_UNTRIED = 0
_SUCCESS, _WAIT = int(Status.SUCCESS), int(Status.WAIT)
_UNSCHEDULABLE = int(Status.UNSCHEDULABLE)
_UNRESOLVABLE = int(Status.UNSCHEDULABLE_AND_UNRESOLVABLE)


class CountedTrials:
    """One group's trials in all D domains of a level.

    statuses, satisfied: [D]; 0 where not tried. chosen: of a constrained group, the place of its domain on the next
    level. Further down, `left` and `children` are over the domains in which the group's own children are placed.
    """

    def __init__(self, group: GroupTree, level: int, sizes: tuple[int, ...], *, constrained: bool) -> None:
        inside = level + constrained
        self.group = group
        self.inside = inside
        self.statuses: IntArray = np.zeros(sizes[level], dtype=np.int64)
        self.satisfied: IntArray = np.zeros(sizes[inside], dtype=np.int64)
        self.chosen: IntArray | None = np.zeros(sizes[level], dtype=np.int64) if constrained else None
        self.left: IntArray = np.zeros(sizes[inside] if group.is_leaf else 0, dtype=np.int64)
        self.children = [
            CountedTrials(child, inside, sizes, constrained=child.topology_key is not None)
            for child in group.children
            if child.admissible
        ]


@dataclass(eq=False)
class LevelAmounts:
    """What the domains of a level hold and use before anything is placed.

    room: [D] pods by free amounts, could_room by allocatable ones. used, allocatable: [D] per resource row.
    cells: for each cell, a domain of the last level, the place of its domain here.
    """

    level: Level
    room: IntArray
    could_room: IntArray
    used: dict[int, IntArray]
    allocatable: dict[int, IntArray]
    cells: IntArray


@dataclass(slots=True)
class CountedRecursion:
    """taken: [cells] pods assumed so far. could: [cells] whether some node would take such a pod were it empty.

    rows: of a group, the resource rows that its score looks at. requests: amount of a row that one pod takes.
    """

    levels: tuple[LevelAmounts, ...]
    could: BoolArray
    requests: dict[int, int]
    rows: Callable[[GroupTree], tuple[int, ...]]
    scorer: PlacementScorer
    taken: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.taken = np.zeros(len(self.could), dtype=np.int64)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(amounts.level) for amounts in self.levels)

    def attempt(self, group: GroupTree, level: int, tried: BoolArray) -> CountedTrials:
        """Minimum and fill of the group in each of the domains; they stay assumed."""
        trials = CountedTrials(group, level, self.sizes, constrained=False)
        self._minimum_inside(trials, trials.statuses, tried)
        self._fill(trials, tried & (trials.statuses == _SUCCESS))
        return trials

    def views(self, group: GroupTree, level: int, among: IntArray, before: IntArray) -> PlacementViews:
        """What the scorer is shown of some domains of a level as things are; before: what was taken without the group."""
        amounts = self.levels[level]
        taken = self._at_level(self.taken, level)[among]
        own = taken - self._at_level(before, level)[among]
        rows = self.rows(group)
        used = tuple(amounts.used[row][among] + taken * self.requests.get(row, 0) for row in rows)
        allocatable = tuple(amounts.allocatable[row][among] for row in rows)
        return PlacementViews(own + bound_pods(group), used, allocatable)

    def _minimum(self, trials: CountedTrials, lanes: BoolArray) -> None:
        begun = begin(trials.group).status
        if begun in (Status.UNSCHEDULABLE, Status.UNSCHEDULABLE_AND_UNRESOLVABLE):
            trials.statuses[lanes] = int(begun)
        elif trials.chosen is not None:
            self._choose(trials, trials.chosen, lanes)
        else:
            self._minimum_inside(trials, trials.statuses, lanes)

    def _minimum_inside(self, trials: CountedTrials, statuses: IntArray, lanes: BoolArray) -> None:
        """Assume minimums where they hold; statuses: [D] of the level inside, written where tried."""
        if trials.group.is_leaf:
            self._place(trials, statuses, lanes)
        else:
            self._gather(trials, statuses, lanes)

    def _place(self, leaf: CountedTrials, statuses: IntArray, lanes: BoolArray) -> None:
        group = leaf.group
        missing = max(group.minimum - group.satisfied, 0)
        has = self.levels[-1].room - self.taken
        holds = lanes & (has >= missing)
        self.taken[holds] += missing
        leaf.left[holds] = len(group.pods.ids) - missing
        leaf.satisfied[lanes] = group.satisfied + np.minimum(has, missing)[lanes]
        failed = np.where(self.could, _UNSCHEDULABLE, _UNRESOLVABLE)
        statuses[lanes] = np.where(holds, _SUCCESS, failed)[lanes]

    def _gather(self, trials: CountedTrials, statuses: IntArray, lanes: BoolArray) -> None:
        """Try children one after the other where the group still waits; take back what failed groups assumed."""
        tally = begin(trials.group).tally
        before = self.taken.copy()
        satisfied = np.full(len(lanes), tally.satisfied, dtype=np.int64)
        remaining = np.full(len(lanes), tally.remaining, dtype=np.int64)
        unschedulable = np.zeros(len(lanes), dtype=np.int64)
        for child in trials.children:
            waits = lanes & (satisfied < tally.required) & (satisfied + remaining >= tally.required)
            if not waits.any():
                break
            if already_holds(child.group):
                continue
            self._minimum(child, waits)
            remaining -= waits
            satisfied += waits & (child.statuses == _SUCCESS)
            unschedulable += waits & (child.statuses == _UNSCHEDULABLE)
        could = satisfied + remaining + unschedulable >= tally.required
        short = np.where(could, _UNSCHEDULABLE, _UNRESOLVABLE)
        statuses[lanes] = np.where(satisfied >= tally.required, _SUCCESS, short)[lanes]
        trials.satisfied[lanes] = satisfied[lanes]
        self._take_back(lanes & (satisfied < tally.required), trials.inside, before)

    def _choose(self, trials: CountedTrials, chosen: IntArray, lanes: BoolArray) -> None:
        """Try all domains of the next level inside the lanes, revert, and assume the minimum in the best of each lane."""
        group, level = trials.group, trials.inside
        parents = self.levels[level].level.parents
        inside = lanes[parents]
        statuses = np.where(inside, self.failures(group, level), 0)
        tried = inside & (statuses == 0)
        before = self.taken.copy()
        attempts = self.attempt(group, level, tried)
        statuses[tried] = attempts.statuses[tried]
        good = np.flatnonzero(statuses == _SUCCESS)
        ranks = self.scorer.ranks(self.views(group, level, good, before))
        self.taken[:] = before
        order = good[np.lexsort((good, -ranks, parents[good]))]
        winners = order[np.diff(parents[order], prepend=-1) > 0]
        trials.statuses[lanes] = _UNRESOLVABLE
        trials.statuses[parents[statuses == _UNSCHEDULABLE]] = _UNSCHEDULABLE
        trials.statuses[parents[winners]] = _SUCCESS
        chosen[parents[winners]] = winners
        self._minimum_inside(trials, statuses, _mask(len(parents), winners))

    def _fill(self, trials: CountedTrials, lanes: BoolArray) -> None:
        if trials.chosen is not None:
            lanes = _mask(self.sizes[trials.inside], trials.chosen[lanes])
        if trials.group.is_leaf:
            more = np.where(lanes, np.minimum(trials.left, self.levels[-1].room - self.taken), 0)
            self.taken += more
            return
        for child in trials.children:
            untried = lanes & (child.statuses == _UNTRIED)
            if untried.any():
                self._minimum(child, untried)
        for child in trials.children:
            self._fill(child, lanes & (child.statuses == _SUCCESS))

    def failures(self, group: GroupTree, level: int) -> IntArray:
        """[D] as `CapacityBound.failures`, with what is assumed."""
        may_hold = self._holds(group, self.levels[level].room - self._at_level(self.taken, level))
        if may_hold.all():
            return np.zeros(len(may_hold), dtype=np.int64)
        could_hold = self._holds(group, self.levels[level].could_room)
        failures: IntArray = np.where(may_hold, 0, np.where(could_hold, _UNSCHEDULABLE, _UNRESOLVABLE))
        return failures

    def _holds(self, group: GroupTree, room: IntArray) -> BoolArray:
        if group.is_leaf:
            leaf: BoolArray = group.satisfied + np.minimum(room, len(group.pods.ids)) >= group.minimum
            return leaf
        able = np.zeros(len(room), dtype=np.int64)
        for child in group.children:
            if child.admissible:
                able += self._holds(child, room)
        holds: BoolArray = able >= group.minimum
        return holds

    def _at_level(self, per_cell: IntArray, level: int) -> IntArray:
        """[D] sums over the cells of each domain of a level."""
        if level == len(self.levels) - 1:
            return per_cell
        amounts = self.levels[level]
        sums = np.bincount(amounts.cells, weights=per_cell, minlength=len(amounts.level))
        return sums.astype(np.int64)

    def _take_back(self, lanes: BoolArray, level: int, before: IntArray) -> None:
        concerned = lanes[self.levels[level].cells]
        self.taken[concerned] = before[concerned]


def _mask(size: int, places: IntArray) -> BoolArray:
    mask = np.zeros(size, dtype=np.bool_)
    mask[places] = True
    return mask
