"""All candidate domains of a group at once, where that is exactly what simulating one after the other would give.

It is for trees whose pods read one node at a time and whose leaves end in domains of one chain of labels, each inside
the one before: the recursion over lanes (`core.lanes`) then answers for every candidate in one go. A candidate counts
as tried if capacity does not rule it out, as in the plain recursion: its status, its counters and its score are those
of a whole simulation, whether or not pods were given nodes for it. Anything else is simulated, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Protocol

import numpy as np

from muster.core.arrays import BoolArray, IntArray
from muster.core.candidate_outcomes import Candidates, Choice, Outcomes
from muster.core.capacity import rooms_of
from muster.core.counted_stage import CountedStage, LevelAmounts
from muster.core.cuts import Level, levels_of
from muster.core.domains import Domain
from muster.core.framework import PlacementScorer, PlacementView, PlacementViews, Profile
from muster.core.lane_tally import SUCCESS
from muster.core.lanes import Form, LaneOutcomes, LaneRecursion
from muster.core.ordering import batches_of
from muster.core.picked_stage import PickedStage
from muster.core.placement_view import requested_rows
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.small_groups import SmallGroups
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit, leaves
from muster.core.trial import already_holds, bound_pods

_LARGEST_SUM = 2**62
_FEW_DOMAINS = 6
"""Up to so many innermost domains are simulated as quickly one by one, unless counts are enough."""
Path = tuple[str, ...]


class Rehearsal(Protocol):
    """Finds the outcomes of candidates without simulating them one by one."""

    def choice(self, group: GroupTree, outer: Domain) -> Choice | None:
        """The best domain for the group inside the outer one, if it is known without going through all; None: it is not."""
        ...

    def outcomes(self, group: GroupTree, candidates: Candidates) -> Outcomes | None:
        """Of the group in the candidates, of which one at least is to be tried; None: simulate them."""
        ...


class NoRehearsal:
    """Leaves every candidate to simulation."""

    def choice(self, group: GroupTree, outer: Domain) -> Choice | None:
        """None."""

    def outcomes(self, group: GroupTree, candidates: Candidates) -> Outcomes | None:
        """None."""


@dataclass(slots=True)
class Lockstep:
    """Outcomes in lock-step for one unit, on the snapshot as it is when asked."""

    snapshot: Snapshot
    unit: Unit
    profile: Profile
    placer: PodPlacer
    _forms: dict[int, tuple[GroupTree, Form]] = field(default_factory=dict)
    _safe: dict[int, bool] = field(default_factory=dict)
    _small: SmallGroups | None = None

    def choice(self, group: GroupTree, outer: Domain) -> Choice | None:
        """As `Rehearsal`; kept up from one unit to the next for small groups."""
        if self._small is None:
            self._small = SmallGroups(self.snapshot, self.unit, self.profile, self.placer)
        return self._small.choice(group, outer)

    def outcomes(self, group: GroupTree, candidates: Candidates) -> Outcomes | None:
        """As `Rehearsal`; None where pods read other nodes, or leave out nodes of their own."""
        path = _longest_path(group)
        if path is None or self.unit.excluded_nodes or not len(candidates.places):
            return None
        shapes = self._shapes(group)
        forms = {id(each): self._form(each) for each in _admissible(group)}
        rows = {row for form in forms.values() for row in form.rows}
        if not shapes or not all(map(self._is_safe, rows)):
            return None
        levels, scorer = levels_of(self.snapshot, candidates.outer, path), self.profile.placement_scorer
        if len(shapes) == 1 and set(_paths(group)) == {path}:
            if group.is_leaf:
                found = self._of_equal_pods(group, candidates.level, candidates.tried)
            else:
                counted = self._counted_stage(shapes[0], levels, rows)
                lanes = LaneRecursion(counted, forms, scorer, candidates.bound.demand)
                found = lanes.outcomes(group, 0, candidates.tried)
            outcomes = _outcomes(found, scorer, candidates)
            if self._small is not None:
                self._small.learn(outcomes)
            return outcomes
        if len(levels[-1]) <= _FEW_DOMAINS:
            return None
        picked = PickedStage(rooms_of(self.snapshot, self.placer), levels)
        recursion = LaneRecursion(picked, forms, scorer, candidates.bound.demand)
        return _outcomes(recursion.outcomes(group, 0, candidates.tried), scorer, candidates)

    def _of_equal_pods(self, leaf: GroupTree, level: Level, tried: BoolArray) -> LaneOutcomes:
        """What lanes come to for a leaf of one shape: where capacity does not rule it out, there is room for its pods.

        Minimum and fill place them as one go does.
        """
        rooms, nodes, form = rooms_of(self.snapshot, self.placer), self.snapshot.nodes, self._form(leaf)
        ((signature, number),) = form.runs
        placed = np.minimum(rooms.sums(signature, level, "free"), number)
        satisfied = leaf.satisfied + np.minimum(placed, max(leaf.minimum - leaf.satisfied, 0))
        good = np.flatnonzero(tried)
        requests = self.snapshot.requests(signature.index)
        offered = [level.static_sums(row, partial(itemgetter(row), nodes.allocatable)) for row in form.rows]
        used = [
            (of_row - level.sums(nodes.free[row]) + placed * requests[row])[good]
            for row, of_row in zip(form.rows, offered, strict=True)
        ]
        views = PlacementViews(
            placed[good] + leaf.satisfied, tuple(used), tuple(each[good] for each in offered)
        )
        return LaneOutcomes(np.full(len(level), SUCCESS), satisfied, good, views)

    def _counted_stage(self, signature: Signature, levels: tuple[Level, ...], rows: set[int]) -> CountedStage:
        rooms, nodes = rooms_of(self.snapshot, self.placer), self.snapshot.nodes
        cells = np.arange(len(levels[-1]))
        amounts: list[LevelAmounts] = []
        for level in reversed(levels):
            offered = {
                row: level.static_sums(row, partial(itemgetter(row), nodes.allocatable)) for row in rows
            }
            by_level = LevelAmounts(
                level=level,
                room=rooms.sums(signature, level, "free"),
                room_if_empty=rooms.sums(signature, level, "allocatable"),
                used={row: offered[row] - level.sums(nodes.free[row]) for row in rows},
                allocatable=offered,
                cells=cells,
            )
            amounts.insert(0, by_level)
            cells = level.parents[cells]
        requests = self.snapshot.requests(signature.index)
        return CountedStage(tuple(amounts), {row: int(requests[row]) for row in rows})

    def _form(self, group: GroupTree) -> Form:
        known = self._forms.get(id(group))
        if known is None:
            known = self._forms[id(group)] = group, self._form_anew(group)
        return known[1]

    def _form_anew(self, group: GroupTree) -> Form:
        runs: list[tuple[Signature, int]] = []
        for batch in batches_of(self.snapshot, self.unit, group.pods) if group.is_leaf else ():
            signature, number = self.snapshot.signatures[batch.signature], len(batch.pods)
            if runs and runs[-1][0].shape == signature.shape:
                signature, number = runs[-1][0], runs.pop()[1] + number
            runs.append((signature, number))
        rows = requested_rows(self.snapshot, group) if group.topology_key is not None else ()
        holding = sum(map(already_holds, group.children))
        content = (
            *(group.topology_key, group.minimum, holding, bound_pods(group), rows),
            tuple((signature.shape, number) for signature, number in runs),
            tuple(self._form(child).content for child in group.children if child.admissible),
        )
        return Form(content, tuple(runs), rows)

    def _shapes(self, group: GroupTree) -> list[Signature]:
        """The shapes of all pods that may be placed; none unless all of them read one node and may share it."""
        shapes: dict[int, Signature] = {}
        for index in _signatures(group):
            signature = self.snapshot.signatures[index]
            if not self.placer.is_plain(signature):
                return []
            shapes.setdefault(signature.shape, signature)
        return list(shapes.values())

    def _is_safe(self, row: int) -> bool:
        """Whether no sum of a resource over all nodes overflows; placing pods does not change that."""
        known = self._safe.get(row)
        if known is None:
            nodes = self.snapshot.nodes
            least, most = int(nodes.free[row].min()), int(nodes.allocatable[row].max())
            known = self._safe[row] = max(-least, most) < _LARGEST_SUM // nodes.size
        return known


def _outcomes(found: LaneOutcomes, scorer: PlacementScorer, candidates: Candidates) -> Outcomes:
    places, failures = candidates.places, candidates.failures
    ranks: IntArray = np.full(len(candidates.level), -1, dtype=np.int64)
    if len(found.good):
        ranks[found.good] = scorer.ranks(found.views)

    def view(place: int) -> PlacementView:
        return found.views[int(np.searchsorted(found.good, places[place]))]

    return Outcomes(
        candidates=candidates,
        domains=candidates.domains,
        statuses=np.where(failures > 0, failures, found.statuses[places]),
        pruned=failures > 0,
        satisfied=found.satisfied[places],
        ranks=ranks[places],
        view=view,
    )


def _longest_path(group: GroupTree) -> Path | None:
    """The labels that lead to the innermost leaves, if those that lead to any other are the first of them."""
    paths = set(_paths(group))
    if None in paths:
        return None
    longest = max((path for path in paths if path is not None), key=len)
    return longest if all(path == longest[: len(path)] for path in paths if path is not None) else None


def _paths(group: GroupTree) -> list[Path | None]:
    """Labels of the constraints from the group down to each leaf that may be placed; None where lanes cannot tell."""
    own = (group.topology_key,) if group.topology_key is not None else ()
    if group.is_leaf:
        return [own]
    if any(leaf.bound_nodes for leaf in leaves(group)):
        return [None]
    below = [path for child in group.children if child.admissible for path in _paths(child)]
    return [None if path is None else (*own, *path) for path in below] or [None]


def _admissible(group: GroupTree) -> list[GroupTree]:
    """The group and all below it that may be placed."""
    return [
        group,
        *(each for child in group.children if child.admissible for each in _admissible(child)),
    ]


def _signatures(group: GroupTree) -> set[int]:
    """Of all pods that may be placed."""
    found: set[int] = set()
    for each in _admissible(group):
        found.update(each.pods.signatures)
    return found
