"""Where the pods of PodGroups belong as victims, and the groups by the priority that follows from it (KEP-5710).

To whom a group belongs is found by climbing, once, until a group on the way comes or goes. So whoever may preempt
nobody, in a cluster full of its equals, learns that at once. Trees may be broken: climbing stops at a missing parent,
at a repeat, and at the fourth level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muster.engine.cluster_state import ClusterState, Name, parent_key_of
from muster.engine.hierarchy import keys_below
from muster.model.meta import POD_GROUP, ObjectKey

MOST_LEVELS = 4


class Belonging(NamedTuple):
    """What the pods of a group are as victims. whole: the group that is taken whole with them; None: each is taken alone."""

    whole: ObjectKey | None
    priority: int


class RankedLeaves:
    """The PodGroups that have running pods, as `add` and `discard` say. Kept right by `group_changed`."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._unranked: dict[Name, None] = {}
        self._found: dict[Name, Belonging | None] = {}
        self._ranks: dict[int, dict[Name, Belonging]] = {}
        self._missing: dict[Name, None] = {}

    def add(self, leaf: Name) -> None:
        """It has running pods from now on, and had none."""
        self._unranked[leaf] = None

    def discard(self, leaf: Name) -> None:
        """It has none any more."""
        self._take_out(leaf)
        self._unranked.pop(leaf, None)

    def group_changed(self, key: ObjectKey) -> None:
        """A group came or went: where the pods below it belong is to be found anew."""
        if not self._found:
            return
        for below in keys_below(self._state, (key,)):
            leaf = below.namespace, below.name
            if below.kind == POD_GROUP and leaf in self._found:
                self._take_out(leaf)
                self._unranked[leaf] = None

    def belonging(self, leaf: Name) -> Belonging | None:
        """Of the pods of a PodGroup; None if it does not exist, and each pod is taken by itself."""
        return self._found[leaf] if leaf in self._found else self._climbed(leaf)

    def missing(self) -> Iterator[Name]:
        """PodGroups that do not exist: their pods have each its own priority."""
        self._rank()
        yield from self._missing

    def below(self, priority: int) -> Iterator[tuple[Name, Belonging]]:
        """Those whose pods have less than this priority, the lowest first, and where they belong."""
        self._rank()
        for level in sorted(self._ranks):
            if level >= priority:
                return
            yield from self._ranks[level].items()

    def _rank(self) -> None:
        for leaf in self._unranked:
            belonging = self._found[leaf] = self._climbed(leaf)
            if belonging is None:
                self._missing[leaf] = None
            else:
                self._ranks.setdefault(belonging.priority, {})[leaf] = belonging
        self._unranked.clear()

    def _take_out(self, leaf: Name) -> None:
        """Forget what was found about a group."""
        belonging = self._found.pop(leaf, None)
        if belonging is None:
            self._missing.pop(leaf, None)
            return
        rank = self._ranks[belonging.priority]
        del rank[leaf]
        if not rank:
            del self._ranks[belonging.priority]

    def _climbed(self, leaf: Name) -> Belonging | None:
        belonging: Belonging | None = None
        seen: set[ObjectKey] = set()
        current: ObjectKey | None = ObjectKey(POD_GROUP, *leaf)
        while current is not None and current not in seen and len(seen) < MOST_LEVELS:
            group = self._state.group(current)
            if group is None:
                break
            seen.add(current)
            below = belonging.whole if belonging is not None else None
            belonging = Belonging(
                current if group.spec.is_disrupted_whole else below, group.spec.priority or 0
            )
            current = parent_key_of(group)
        return belonging
