"""All candidate domains of a group at once, where that is exactly what simulating one after the other would give.

It is for trees of one shape of pod that reads one node at a time, if all leaves end in domains of the same labels: the
recursion in counts (`core.counted`) then answers for every candidate in one go. A candidate counts as tried if
capacity does not rule it out, as in the plain recursion: its status, its counters and its score are those of a whole
simulation, though no pod was given a node. Anything else is for the plain form, one candidate at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Protocol

import numpy as np

from muster.core.arrays import IntArray, Slots
from muster.core.candidate_outcomes import Outcomes
from muster.core.capacity import rooms_of
from muster.core.counted import CountedRecursion, LevelAmounts
from muster.core.cuts import Level, levels_of
from muster.core.decision import Status
from muster.core.domains import Domain
from muster.core.framework import PlacementView, Profile
from muster.core.placement_view import requested_rows
from muster.core.pod_placement import PodPlacer
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.tree import GroupTree, Unit, leaves

_LARGEST_SUM = 2**62
Path = tuple[str, ...]


class Rehearsal(Protocol):
    """Finds the outcomes of candidates without simulating them."""

    def outcomes(self, group: GroupTree, outer: Domain, places: Slots) -> Outcomes | None:
        """Of the group in the domains of its label at these places (by value); None: simulate them."""
        ...


class NoRehearsal:
    """Leaves every candidate to simulation."""

    def outcomes(self, group: GroupTree, outer: Domain, places: Slots) -> Outcomes | None:
        """None."""


@dataclass(slots=True)
class Lockstep:
    """Outcomes in lock-step for one unit, on the snapshot as it is when asked."""

    snapshot: Snapshot
    unit: Unit
    profile: Profile
    placer: PodPlacer
    _rows: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def outcomes(self, group: GroupTree, outer: Domain, places: Slots) -> Outcomes | None:
        path, signature = _only_path(group), self._only_shape(group)
        if path is None or signature is None:
            return None
        rows = {row for scored in _constrained(group) for row in self._rows_of(scored)}
        if not self._sums_are_safe(rows):
            return None
        levels = levels_of(self.snapshot, outer, path)
        recursion = self._recursion(signature, levels, rows)
        return self._outcomes(recursion, group, levels[0], places)

    def _outcomes(
        self, recursion: CountedRecursion, group: GroupTree, level: Level, places: Slots
    ) -> Outcomes:
        statuses = recursion.failures(group, 0)
        tried = np.zeros(len(level), dtype=np.bool_)
        tried[places] = statuses[places] == 0
        attempts = recursion.attempt(group, 0, tried)
        statuses[tried] = attempts.statuses[tried]
        statuses = statuses[places]
        good = np.flatnonzero(statuses == Status.SUCCESS)
        views = recursion.views(group, 0, places[good], np.zeros_like(recursion.taken))
        ranks = np.full(len(places), -1, dtype=np.int64)
        ranks[good] = self.profile.placement_scorer.ranks(views)

        def view(place: int) -> PlacementView:
            return views[int(np.searchsorted(good, place))]

        domains = [level.domains[place] for place in places.tolist()]
        return Outcomes(domains, statuses, ~tried[places], attempts.satisfied[places], ranks, view)

    def _recursion(self, signature: Signature, levels: tuple[Level, ...], rows: set[int]) -> CountedRecursion:
        cells = np.arange(len(levels[-1]))
        amounts: list[LevelAmounts] = []
        for level in reversed(levels):
            amounts.insert(0, self._amounts(signature, level, rows, cells))
            cells = level.parents[cells]
        requests = self.snapshot.requests(signature.index)
        return CountedRecursion(
            levels=tuple(amounts),
            could=amounts[-1].could_room > 0,
            requests={row: int(requests[row]) for row in rows},
            rows=self._rows_of,
            scorer=self.profile.placement_scorer,
        )

    def _amounts(self, signature: Signature, level: Level, rows: set[int], cells: IntArray) -> LevelAmounts:
        rooms, nodes = rooms_of(self.snapshot, self.placer), self.snapshot.nodes
        allocatable = {
            row: level.static_sums(row, partial(itemgetter(row), nodes.allocatable)) for row in rows
        }
        return LevelAmounts(
            level=level,
            room=rooms.sums(signature, level, "free"),
            could_room=rooms.sums(signature, level, "allocatable"),
            used={row: allocatable[row] - level.sums(nodes.free[row]) for row in rows},
            allocatable=allocatable,
            cells=cells,
        )

    def _rows_of(self, group: GroupTree) -> tuple[int, ...]:
        known = self._rows.get(id(group))
        if known is None:
            known = self._rows[id(group)] = requested_rows(self.snapshot, group)
        return known

    def _only_shape(self, group: GroupTree) -> Signature | None:
        """The one shape of all pods that may be placed, if such pods read one node at a time; else None."""
        known: Signature | None = None
        for leaf in _admissible_leaves(group):
            if not self.unit.excluded_nodes.keys().isdisjoint(leaf.pods.ids):
                return None
            for index in set(leaf.pods.signatures):
                signature = self.snapshot.signatures[index]
                known = known or signature
                if signature.shape != known.shape or not self.placer.is_local(signature):
                    return None
        if known is None:
            return None
        row = self.placer.keys.row(known)
        return known if row.one_by_one and not row.exclusive else None

    def _sums_are_safe(self, rows: set[int]) -> bool:
        """Whether no sum over all nodes overflows."""
        nodes = self.snapshot.nodes
        most = _LARGEST_SUM // nodes.size
        return all(
            -most < int(nodes.free[row].min(initial=0)) and int(nodes.allocatable[row].max(initial=0)) < most
            for row in rows
        )


def _only_path(group: GroupTree) -> Path | None:
    """The labels that lead to every leaf, if they are the same for all."""
    paths = set(_paths(group))
    return paths.pop() if len(paths) == 1 else None


def _paths(group: GroupTree) -> list[Path | None]:
    """Labels of the constraints from the group down to each leaf that may be placed; None where counts cannot tell."""
    own = (group.topology_key,) if group.topology_key is not None else ()
    if group.is_leaf:
        return [own]
    if any(leaf.bound_nodes for leaf in leaves(group)):
        return [None]
    below = [path for child in group.children if child.admissible for path in _paths(child)]
    return [None if path is None else (*own, *path) for path in below] or [None]


def _admissible_leaves(group: GroupTree) -> list[GroupTree]:
    if group.is_leaf:
        return [group]
    return [leaf for child in group.children if child.admissible for leaf in _admissible_leaves(child)]


def _constrained(group: GroupTree) -> list[GroupTree]:
    """Groups of the subtree that choose a domain, whose candidates are scored."""
    below = [each for child in group.children if child.admissible for each in _constrained(child)]
    return [group, *below] if group.topology_key is not None else below
