"""Trials of what might help: a unit is decided as it would be if something were different.

Without preemption, since a help must do by itself. Counted: how many decisions and how many steps of search all trials
together may take, so that the same question gets the same answer.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from muster.core.bound_pods import grouped
from muster.core.decide import decide
from muster.core.decision import DecisionCode, SearchEnd
from muster.core.deltas import NodePut, NodeRemoved
from muster.core.framework import Profile
from muster.core.observer import NullObserver
from muster.core.preemption_units import EarlierPreemption
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit
from muster.model.meta import ObjectKey
from muster.model.node import Node
from muster.model.priority import NEVER
from muster.model.variations import varied

MOST_DECISIONS = 160
SEARCHES = 6
"""So many times the profile's search budget may be spent in all."""
_NO_SEARCH = Fraction(0)


class Verdict(NamedTuple):
    """proved: that it does not fit; a search that ran out, or was not made, proves nothing."""

    fits: bool
    proved: bool


class Smallest(NamedTuple):
    """The smallest number that does, and whether it is proved that one less does not."""

    number: int
    proved: bool


@dataclass(slots=True)
class Trials:
    """Decides variations of one unit on its own copy of a snapshot, which it may change between trials."""

    snapshot: Snapshot
    unit: Unit
    profile: Profile
    decisions_left: int
    steps_left: int

    def quick(self, unit: Unit | None = None, profile: Profile | None = None) -> bool:
        """Whether greedy placement schedules the unit; False once all decisions are spent."""
        return self._decided(unit or self.unit, profile or self.profile, _NO_SEARCH).fits

    def thorough(self, unit: Unit | None = None, profile: Profile | None = None) -> Verdict:
        """Whether the unit is scheduled, by a search if greedy placement fails and steps are left."""
        profile = profile or self.profile
        budget = profile.search.node_budget
        share = min(Fraction(1), Fraction(max(0, self.steps_left), budget)) if budget else _NO_SEARCH
        return self._decided(unit or self.unit, profile, share)

    def with_root(self, root: GroupTree) -> Unit:
        """The unit with another tree."""
        return varied(self.unit, root=root)

    def _decided(self, unit: Unit, profile: Profile, share: Fraction) -> Verdict:
        if self.decisions_left <= 0 or not unit.root.admissible:
            return Verdict(fits=False, proved=self.decisions_left > 0)
        self.decisions_left -= 1
        decision = decide(self.snapshot, varied(unit, search_budget_share=share), profile, NullObserver())
        self.steps_left -= decision.search.steps
        fits = decision.code is DecisionCode.SCHEDULED
        return Verdict(fits, proved=not fits and decision.search.end is SearchEnd.EXHAUSTED)

    @contextmanager
    def with_nodes(self, nodes: Sequence[Node]) -> Iterator[None]:
        """These nodes are there too, until the end."""
        for node in nodes:
            self.snapshot.apply(NodePut(node))
        try:
            yield
        finally:
            for node in reversed(nodes):
                self.snapshot.apply(NodeRemoved(node.name))

    @contextmanager
    def without_pods(self, pods: Sequence[int]) -> Iterator[None]:
        """The bound pods with these ordinals are gone, until the end."""
        mark = self.snapshot.mark()
        signatures, slots, _ = self.snapshot.pods.places(np.array(sorted(pods), dtype=np.int64))
        known = slots >= 0
        for signature, at, numbers in grouped(signatures[known], slots[known]):
            self.snapshot.assume_many(signature, at, -numbers)
        try:
            yield
        finally:
            self.snapshot.rollback(mark)


def trials_of(snapshot: Snapshot, unit: Unit, profile: Profile) -> Trials:
    """Trials on a copy of a snapshot on which nothing is assumed."""
    copy: Snapshot = pickle.loads(pickle.dumps(snapshot, pickle.HIGHEST_PROTOCOL))  # noqa: S301 - made here
    alone = varied(unit, preemption_policy=NEVER, earlier=EarlierPreemption(), victims=None, searched=None)
    return Trials(copy, alone, profile, MOST_DECISIONS, SEARCHES * profile.search.node_budget)


def smallest(
    quick: Callable[[int], bool], thorough: Callable[[int], Verdict], most: int, *, now_proved: bool
) -> Smallest | None:
    """The least number from 1 to `most` that does; None if none was found. More is taken to do as well.

    now_proved: that 0, the present state, does not do.
    """
    number = 1
    while not quick(number):
        if number >= most:
            return None
        number = min(2 * number, most)
    low = number // 2
    while number - low > 1:
        middle = (low + number) // 2
        low, number = (low, middle) if quick(middle) else (middle, number)
    while number > 1:
        less = thorough(number - 1)
        if not less.fits:
            return Smallest(number, less.proved)
        number -= 1
    return Smallest(number, now_proved)


def replaced(tree: GroupTree, key: ObjectKey, change: Callable[[GroupTree], GroupTree]) -> GroupTree:
    """The tree with one group changed."""
    if tree.key == key:
        return change(tree)
    return varied(tree, children=tuple(replaced(child, key, change) for child in tree.children))


def groups_below(tree: GroupTree) -> Iterator[GroupTree]:
    """The group and all below it, parents first."""
    yield tree
    for child in tree.children:
        yield from groups_below(child)
