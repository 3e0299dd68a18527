"""How the domains of a label stand as candidates for small groups, kept from one unit to the next.

What a leaf of equal pods, or a group of such leaves that want domains of their own, comes to in a domain depends on the
sums of that domain alone (`core.running_sums`). So groups alike share one table, of which only the domains that changed
are judged again; every domain has its verdict at any time, and the best stands first. Judges as `core.recursion` does.
A domain in which a group of leaves fails is left to `core.lockstep`, which says how, and is told here.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from muster.core.decision import Status
from muster.core.framework import PlacementScorer, PlacementView
from muster.core.running_sums import LevelSums, RunningSums

_EARNED = 16
"""Domains that may be judged for each question: judging many more at once must have been worth it before."""
_MOST_TABLES = 64
Key = tuple[Any, ...]
"""Sorts candidates: the best first, equal ones by place, which is its last item."""


class LeafForm(NamedTuple):
    """So many equal pods, of which `minimum` are enough."""

    minimum: int
    number: int


class TreeForm(NamedTuple):
    """Leaves that each want a domain of the next level, of which `minimum` are enough."""

    minimum: int
    leaves: tuple[LeafForm, ...]


Form = LeafForm | TreeForm


class Verdict(NamedTuple):
    """What a group comes to in a domain. pruned: capacity rules it out. key, view: with Success."""

    status: Status
    pruned: bool
    key: Key | None = None
    view: PlacementView | None = None


class Table:
    """Verdicts on the domains of a level, in order inside each of the domains above, of which there are so many."""

    def __init__(self, sums: LevelSums, above: int) -> None:
        self.parents: list[int] = sums.level.parents.tolist()
        self.verdicts: list[Verdict | None] = [None] * len(self.parents)
        self.orders: list[list[Key]] = [[] for _ in range(above)]
        self.counts: list[Counter[tuple[Status, bool]]] = [Counter() for _ in range(above)]
        self.unknown: set[int] = set()
        self.followed: int | None = None

    def first(self, above: int, number: int) -> list[tuple[int, PlacementView]]:
        """The best domains inside one, up to so many, with what their scores are made of."""
        best: list[tuple[int, PlacementView]] = []
        for key in self.orders[above][:number]:
            verdict = self.verdicts[key[-1]]
            if verdict is not None and verdict.view is not None:
                best.append((key[-1], verdict.view))
        return best

    def tally(self, above: int) -> tuple[dict[int, int], int]:
        """How many domains inside one have each status, and how many of all capacity rules out."""
        counts: dict[int, int] = {}
        ruled_out = 0
        for (status, pruned), number in self.counts[above].items():
            if number:
                counts[status] = counts.get(status, 0) + number
                ruled_out += number * pruned
        return counts, ruled_out

    def stale(self, sums: LevelSums) -> Sequence[int]:
        """Places of the domains that are to be judged, again or at all."""
        if self.followed is None:
            return range(len(self.parents))
        return sorted({*sums.moved[self.followed :]})

    def put(self, place: int, verdict: Verdict | None) -> None:
        """The verdict on a domain from now on; None if it is not known."""
        old, above = self.verdicts[place], self.parents[place]
        self.verdicts[place] = verdict
        order = self.orders[above]
        if old is not None and old.key is not None:
            del order[bisect_left(order, old.key)]
        if verdict is not None and verdict.key is not None:
            insort(order, verdict.key)
        if old is None or verdict is None or old[:2] != verdict[:2]:
            self._count(place, old, verdict)

    def _count(self, place: int, old: Verdict | None, verdict: Verdict | None) -> None:
        counts = self.counts[self.parents[place]]
        if old is not None:
            counts[old[:2]] -= 1
        if verdict is None:
            self.unknown.add(place)
        else:
            self.unknown.discard(place)
            counts[verdict[:2]] += 1


@dataclass(slots=True)
class Standings:
    """Tables for groups of pods of one shape in the domains of one chain of labels."""

    sums: RunningSums
    scorer: PlacementScorer
    _tables: dict[tuple[Form, int], Table] = field(default_factory=dict)
    _earned: int = 0

    def table(self, form: Form, level: int) -> Table | None:
        """Current verdicts on all domains of a level, not to be changed; None if it does not pay to judge them.

        Some may be unknown still.
        """
        self._earned += _EARNED
        if not self._follow():
            return None
        table = self._current(form, level)
        self._earned = min(self._earned, 2 * self._innermost)
        return table

    @property
    def _innermost(self) -> int:
        """How many domains there are on the last level; 0 before they are known."""
        return len(self.sums.levels[-1].room) if self.sums.levels else 0

    def _follow(self) -> bool:
        if self.sums.follow():
            return True
        if self._earned < max(2 * _EARNED, self._innermost) or not self.sums.add_up():
            return False
        self._tables.clear()
        return True

    def _current(self, form: Form, level: int) -> Table | None:
        sums = self.sums.levels[level]
        table = self._tables.pop((form, level), None) or self._made(level)
        self._tables[form, level] = table
        moved = len(sums.moved)
        if table.followed != moved:
            stale = table.stale(sums)
            if len(stale) > self._earned:
                return None
            if isinstance(form, TreeForm) and not self._know_leaves(form, level + 1):
                return None
            self._earned -= len(stale)
            for place in stale:
                table.put(place, self._judged(form, level, place))
            table.followed = moved
        return table

    def _made(self, level: int) -> Table:
        if len(self._tables) >= _MOST_TABLES:
            del self._tables[next(iter(self._tables))]
        above = len(self.sums.levels[level - 1].room) if level else 1
        return Table(self.sums.levels[level], above)

    def _know_leaves(self, tree: TreeForm, level: int) -> bool:
        return all(self._current(leaf, level) is not None for leaf in dict.fromkeys(tree.leaves))

    def _judged(self, form: Form, level: int, place: int) -> Verdict | None:
        if isinstance(form, LeafForm):
            return self._leaf(form, level, place, 0)
        return self._tree(form, level, place)

    def _leaf(self, leaf: LeafForm, level: int, place: int, taken: int) -> Verdict:
        """taken: pods that are there already, in this trial."""
        sums = self.sums.levels[level]
        room = sums.room[place] - taken
        if room < leaf.minimum:
            could = sums.room_if_empty[place] >= leaf.minimum
            status = Status.UNSCHEDULABLE if could else Status.UNSCHEDULABLE_AND_UNRESOLVABLE
            return Verdict(status, pruned=True)
        placed = min(leaf.number, room)
        return self._success(level, place, placed, placed + taken)

    def _success(self, level: int, place: int, placed: int, taken: int) -> Verdict:
        sums = self.sums.levels[level]
        amounts = zip(sums.used[place], self.sums.requests, strict=True)
        used = [used + taken * request for used, request in amounts]
        view = PlacementView(placed, tuple(used), sums.allocatable[place])
        key = (*self.scorer.sort_key(view), place)
        return Verdict(Status.SUCCESS, pruned=False, key=key, view=view)

    def _tree(self, tree: TreeForm, level: int, place: int) -> Verdict | None:
        """None if the leaves' minimum is not met."""
        trial = _TreeTrial(self, level + 1, place)
        held, left = 0, list(tree.leaves)
        while left and held < tree.minimum:
            held += trial.place_minimum(left.pop(0))
            if held + len(left) < tree.minimum:
                return None
        for leaf in left:
            trial.place_minimum(leaf)
        trial.fill()
        placed = sum(trial.taken.values())
        return self._success(level, place, placed, placed)

    def best_leaf(self, leaf: LeafForm, level: int, above: int, taken: dict[int, int]) -> int | None:
        """The best domain for a leaf inside one of the level above, with pods that some have taken in this trial."""
        best: Key | None = None
        for key in self._tables[leaf, level].orders[above]:
            if key[-1] not in taken:
                best = key
                break
        for place, number in taken.items():
            again = self._leaf(leaf, level, place, number).key
            if again is not None and (best is None or again < best):
                best = again
        return None if best is None else int(best[-1])


@dataclass(slots=True)
class _TreeTrial:
    """Leaves placed one after the other inside a domain. taken: pods by place on the leaves' level."""

    standings: Standings
    level: int
    above: int
    taken: dict[int, int] = field(default_factory=dict)
    _chosen: list[tuple[LeafForm, int]] = field(default_factory=list)

    def place_minimum(self, leaf: LeafForm) -> bool:
        """Whether the minimum of a leaf found a domain."""
        place = self.standings.best_leaf(leaf, self.level, self.above, self.taken)
        if place is None:
            return False
        self.taken[place] = self.taken.get(place, 0) + leaf.minimum
        self._chosen.append((leaf, place))
        return True

    def fill(self) -> None:
        """Add what else fits in the domains that were chosen."""
        room = self.standings.sums.levels[self.level].room
        for leaf, place in self._chosen:
            self.taken[place] += min(leaf.number - leaf.minimum, room[place] - self.taken[place])
