"""The recursion for all domains of a level at once: what simulating each of them alone would come to (KEP-6012).

Domains of one level do not overlap, so a group is decided in all of them, its lanes, by the same few operations on
columns. Mirrors `core.recursion` step by step; how pods take room is for a stage to say, and which trees qualify for
`core.lockstep`. What groups alike come to in a domain is looked up while nothing in the domain has changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.capacity import AMOUNTS
from muster.core.capacity_bound import CapacityBound, TreeBound
from muster.core.demand import Demand
from muster.core.framework import PlacementScorer, PlacementViews
from muster.core.lane_tally import SUCCESS, UNRESOLVABLE, UNSCHEDULABLE, LaneTally
from muster.core.signature import Signature
from muster.core.stage import SavedT, Stage, StageRooms
from muster.core.tree import GroupTree
from muster.core.trial import UNSUCCESSFUL, already_holds, begin, bound_pods

_UNTRIED = 0


@dataclass(frozen=True, slots=True)
class Form:
    """All of a group that bears on what it comes to; equal for groups alike. runs: a leaf's pods by shape, in order."""

    content: Hashable
    runs: tuple[tuple[Signature, int], ...]
    rows: tuple[int, ...]


class LaneTrials:
    """One group's trials in all D domains of a level.

    statuses: [D]; 0 where not tried. chosen: of a constrained group, the place of its domain on the next level.
    Over the domains in which the group's children are placed: satisfied, and of a leaf what is left of each run.
    """

    def __init__(
        self, group: GroupTree, level: int, sizes: tuple[int, ...], runs: int, *, constrained: bool
    ) -> None:
        inside = level + constrained
        self.group = group
        self.inside = inside
        self.statuses: IntArray = np.zeros(sizes[level], dtype=np.int64)
        self.satisfied: IntArray = np.zeros(sizes[inside], dtype=np.int64)
        self.chosen: IntArray | None = np.zeros(sizes[level], dtype=np.int64) if constrained else None
        self.left: IntArray = np.zeros((runs, sizes[inside]), dtype=np.int64)
        self.children: list[LaneTrials] = []


class _Table:
    """What groups of one form came to in the D domains of a level, and in which states of theirs."""

    def __init__(self, size: int, rows: int) -> None:
        self.ids: IntArray = np.full(size, -1, dtype=np.int64)
        self.statuses: IntArray = np.zeros(size, dtype=np.int64)
        self.satisfied: IntArray = np.zeros(size, dtype=np.int64)
        self.placed: IntArray = np.zeros(size, dtype=np.int64)
        self.used: IntArray = np.zeros((rows, size), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LaneOutcomes:
    """Of the lanes tried: statuses, satisfied [D]; and what the scorer is shown of those at `good`."""

    statuses: IntArray
    satisfied: IntArray
    good: IntArray
    views: PlacementViews


@dataclass(slots=True)
class LaneRecursion(Generic[SavedT]):
    """Rehearses groups on a stage. forms: of every group of the tree that may be placed, by identity."""

    stage: Stage[SavedT]
    forms: dict[int, Form]
    scorer: PlacementScorer
    demand: Demand
    _tables: dict[tuple[Hashable, int], _Table] = field(default_factory=dict)

    def outcomes(self, group: GroupTree, level: int, tried: BoolArray) -> LaneOutcomes:
        """Try minimum and fill of the group in each of the domains; nothing stays assumed."""
        table, form = self._table(group, level), self.forms[id(group)]
        stale = tried & (table.ids != self.stage.ids(level))
        if stale.any():
            self._renew(table, group, level, stale)
        good = np.flatnonzero(tried & (table.statuses == SUCCESS))
        views = PlacementViews(
            table.placed[good],
            tuple(table.used[:, good]),
            tuple(self.stage.allocatable(row, level)[good] for row in form.rows),
        )
        return LaneOutcomes(table.statuses, table.satisfied, good, views)

    def failures(self, group: GroupTree, level: int) -> IntArray:
        """[D] as `CapacityBound.failures`, with what is assumed."""
        free, if_empty = (TreeBound(self.demand, StageRooms(self.stage, level, by)) for by in AMOUNTS)
        return CapacityBound(free, if_empty).failures(group)

    def _table(self, group: GroupTree, level: int) -> _Table:
        form, size = self.forms[id(group)], self.stage.sizes[level]
        table = self._tables.get((form.content, level))
        if table is None:
            table = self._tables[form.content, level] = _Table(size, len(form.rows))
        return table

    def _renew(self, table: _Table, group: GroupTree, level: int, lanes: BoolArray) -> None:
        """Simulate the group in the lanes, note what it comes to, and revert."""
        stage = self.stage
        table.ids[lanes] = stage.ids(level)[lanes]
        saved, before = stage.save(), stage.placed(level)
        if len(self.forms[id(group)].runs) == 1:
            self._renew_single_run(table, group, level, lanes)
        else:
            trials = self._trials(group, level, constrained=False)
            self._minimum_inside(trials, trials.statuses, lanes)
            self._fill(trials, lanes & (trials.statuses == SUCCESS))
            table.statuses[lanes] = trials.statuses[lanes]
            table.satisfied[lanes] = trials.satisfied[lanes]
        table.placed[lanes] = (stage.placed(level) - before)[lanes] + bound_pods(group)
        for place, row in enumerate(self.forms[id(group)].rows):
            table.used[place, lanes] = stage.used(row, level)[lanes]
        stage.restore(saved)

    def _renew_single_run(self, table: _Table, leaf: GroupTree, level: int, lanes: BoolArray) -> None:
        """Equal pods are placed by minimum and fill as they are by one go."""
        ((signature, number),) = self.forms[id(leaf)].runs
        placed = self.stage.take(signature, np.where(lanes, number, 0), level)
        self._judge_single_run(leaf, level, placed, lanes, (table.statuses, table.satisfied))

    def _place_single_run(self, leaf: LaneTrials, statuses: IntArray, lanes: BoolArray) -> None:
        ((signature, number),) = self.forms[id(leaf.group)].runs
        missing = max(leaf.group.minimum - leaf.group.satisfied, 0)
        room = self.stage.room(signature, leaf.inside)
        self.stage.take(signature, np.where(lanes & (room >= missing), missing, 0), leaf.inside)
        leaf.left[0, lanes] = number - missing
        self._judge_single_run(leaf.group, leaf.inside, room, lanes, (statuses, leaf.satisfied))

    def _judge_single_run(
        self, leaf: GroupTree, level: int, room: IntArray, lanes: BoolArray, into: tuple[IntArray, IntArray]
    ) -> None:
        """Write statuses and satisfied counters. Equal pods fail alike, so one verdict is that of all."""
        ((signature, _),) = self.forms[id(leaf)].runs
        missing = max(leaf.minimum - leaf.satisfied, 0)
        could = self.stage.room_if_empty(signature, level) > 0
        failed = np.where(could, UNSCHEDULABLE, UNRESOLVABLE)
        statuses, satisfied = into
        statuses[lanes] = np.where(room >= missing, SUCCESS, failed)[lanes]
        satisfied[lanes] = leaf.satisfied + np.minimum(room, missing)[lanes]

    def _trials(self, group: GroupTree, level: int, *, constrained: bool) -> LaneTrials:
        runs = len(self.forms[id(group)].runs)
        trials = LaneTrials(group, level, self.stage.sizes, runs, constrained=constrained)
        trials.children = [
            self._trials(child, trials.inside, constrained=child.topology_key is not None)
            for child in group.children
            if child.admissible
        ]
        return trials

    def _minimum(self, trials: LaneTrials, lanes: BoolArray) -> None:
        begun = begin(trials.group).status
        if begun in UNSUCCESSFUL:
            trials.statuses[lanes] = int(begun)
        elif trials.chosen is not None:
            self._choose(trials, trials.chosen, lanes)
        else:
            self._minimum_inside(trials, trials.statuses, lanes)

    def _minimum_inside(self, trials: LaneTrials, statuses: IntArray, lanes: BoolArray) -> None:
        """Assume the minimum in the lanes that hold it; statuses are written for all of them."""
        if len(self.forms[id(trials.group)].runs) == 1:
            self._place_single_run(trials, statuses, lanes)
            return
        tally = LaneTally(trials.group, lanes)
        saved = self.stage.save()
        if trials.group.is_leaf:
            self._place_pods(trials, tally)
        for child in trials.children:
            waits = tally.waits
            if not waits.any():
                break
            if not already_holds(child.group):
                self._minimum(child, waits)
                tally.count(waits, child.statuses)
        statuses[lanes] = tally.statuses[lanes]
        trials.satisfied[lanes] = tally.satisfied[lanes]
        failed = lanes & (tally.statuses != SUCCESS)
        if failed.any():
            self.stage.take_back(saved, failed, trials.inside)

    def _place_pods(self, leaf: LaneTrials, tally: LaneTally) -> None:
        """A leaf's pods up to its minimum, run by run."""
        runs = self.forms[id(leaf.group)].runs
        for place, (_, number) in enumerate(runs):
            leaf.left[place, tally.lanes] = number
        for place, (signature, number) in enumerate(runs):
            waits = tally.waits
            if not waits.any():
                break
            wanted = np.where(waits, np.minimum(tally.missing, number), 0)
            placed = self.stage.take(signature, wanted, leaf.inside)
            tally.place(placed)
            short = waits & (placed < wanted)
            leaf.left[place, waits] = np.where(short, 0, number - placed)[waits]
            if short.any():
                lost = np.where(short, np.minimum(number - placed, tally.spare + 1), 0)
                tally.fail(lost, self.stage.room_if_empty(signature, leaf.inside) > 0)

    def _choose(self, trials: LaneTrials, chosen: IntArray, lanes: BoolArray) -> None:
        """Try all domains of the next level inside the lanes and assume the minimum in the best of each lane."""
        group, level = trials.group, trials.inside
        parents = self.stage.parents(level)
        inside = lanes[parents]
        statuses = np.where(inside, self.failures(group, level), 0)
        tried = inside & (statuses == 0)
        trials.statuses[lanes] = UNRESOLVABLE
        if not tried.any():
            trials.statuses[parents[statuses == UNSCHEDULABLE]] = UNSCHEDULABLE
            return
        outcomes = self.outcomes(group, level, tried)
        statuses[tried] = outcomes.statuses[tried]
        good, ranks = outcomes.good, self.scorer.ranks(outcomes.views)
        order = good[np.lexsort((good, -ranks, parents[good]))]
        by_parent = parents[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = by_parent[1:] != by_parent[:-1]
        winners = order[first]
        trials.statuses[parents[statuses == UNSCHEDULABLE]] = UNSCHEDULABLE
        trials.statuses[parents[winners]] = SUCCESS
        chosen[parents[winners]] = winners
        self._minimum_inside(trials, statuses, _mask(len(parents), winners))

    def _fill(self, trials: LaneTrials, lanes: BoolArray) -> None:
        if not lanes.any():
            return
        if trials.chosen is not None:
            lanes = _mask(self.stage.sizes[trials.inside], trials.chosen[lanes])
        for (signature, _), left in zip(self.forms[id(trials.group)].runs, trials.left, strict=True):
            wanted = np.where(lanes, left, 0)
            if wanted.any():
                self.stage.take(signature, wanted, trials.inside)
        for child in trials.children:
            untried = lanes & (child.statuses == _UNTRIED)
            if untried.any():
                self._minimum(child, untried)
        for child in trials.children:
            self._fill(child, lanes & (child.statuses == SUCCESS))


def _mask(size: int, places: IntArray) -> BoolArray:
    mask = np.zeros(size, dtype=np.bool_)
    mask[places] = True
    return mask
