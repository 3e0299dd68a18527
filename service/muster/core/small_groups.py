"""Chooses domains for small groups by how these stand, without looking at all of them again (`core.standings`).

For a leaf of equal pods that wants a domain, and for a group of such leaves that wants one itself, where pods read one
node at a time and none runs yet; anything else, and whatever fails, is left to `core.lockstep` and the recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from muster.core.candidate_outcomes import Choice, Outcomes, event_of, reason_of_choice
from muster.core.capacity import rooms_of
from muster.core.decision import Status
from muster.core.domains import CLUSTER, Domain
from muster.core.framework import Profile
from muster.core.pod_placement import PodPlacer
from muster.core.running_sums import RunningSums
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.core.standings import Form, LeafForm, Standings, Table, TreeForm, Verdict
from muster.core.tree import GroupTree, Unit
from muster.model.resources import PODS

_MOST_LEAVES = 16
_MOST_PODS = 64
"""Larger groups change so much that nothing is gained by following it."""
_MOST_STANDINGS = 16


class _Inside(NamedTuple):
    """Where candidates are: on a level of a chain, inside one domain of the level above. outer: that domain."""

    standings: Standings
    level: int
    above: int
    outer: Domain

    def suits(self, shape: int, path: tuple[str, ...]) -> bool:
        """Whether these are candidates for a group of pods of that shape whose labels are these."""
        sums = self.standings.sums
        return sums.signature.shape == shape and sums.path[self.level :] == path


@dataclass(slots=True)
class SmallGroups:
    """Choices for one unit, on the snapshot as it is when asked."""

    snapshot: Snapshot
    unit: Unit
    profile: Profile
    placer: PodPlacer
    _chosen: dict[int, _Inside] = field(default_factory=dict)
    _asked: Table | None = None

    def choice(self, group: GroupTree, outer: Domain) -> Choice | None:
        """The best domain for the group inside the outer one; None if that is not known this way."""
        self._asked = None
        form, signatures, path = _form(group)
        if form is None or self.unit.excluded_nodes:
            return None
        signature = self._one_shape(signatures)
        if signature is None:
            return None
        inside = self._chosen.get(id(outer))
        if inside is None and outer is CLUSTER:
            inside = _Inside(self._standings(signature, path), 0, 0, CLUSTER)
        if inside is None or not inside.suits(signature.shape, path):
            return None
        table = inside.standings.table(form, inside.level)
        if table is None or not table.orders:
            return None
        if table.unknown:
            self._asked = table
            return None
        return self._best(table, inside)

    def learn(self, outcomes: Outcomes) -> None:
        """Take in how the group of the last question, which had no answer, fails in domains unknown so far."""
        table, self._asked = self._asked, None
        if table is None:
            return
        for place in sorted(table.unknown):
            status = Status(int(outcomes.statuses[place]))
            if status is not Status.SUCCESS:
                table.put(place, Verdict(status, pruned=bool(outcomes.pruned[place])))

    def _one_shape(self, indexes: set[int]) -> Signature | None:
        """One of the signatures, if they are all of one shape and nothing but room keeps their pods from a node."""
        found: Signature | None = None
        for index in indexes:
            signature = self.snapshot.signatures[index]
            if found is None and self.placer.is_plain(signature):
                found = signature
            elif found is None or signature.shape != found.shape or not self.placer.is_plain(signature):
                return None
        return found

    def _best(self, table: Table, inside: _Inside) -> Choice | None:
        domains = inside.standings.sums.levels[inside.level].level.domains
        first = table.first(inside.above, 2)
        if not first:
            return None
        best = domains[first[0][0]]
        self._chosen[id(best)] = _Inside(inside.standings, inside.level + 1, first[0][0], best)
        leaders = [(domains[place], view) for place, view in first]
        counts, pruned = table.tally(inside.above)
        return Choice(
            domain=best,
            reason=reason_of_choice(leaders, counts, self.profile.placement_scorer),
            tried=sum(counts.values()) - pruned,
            pruned=pruned,
            events=partial(_events, table, inside.above, domains),
        )

    def _standings(self, signature: Signature, path: tuple[str, ...]) -> Standings:
        known = self.snapshot.derived.setdefault((SmallGroups, self.placer), {})
        standings = known.pop((signature.shape, path), None) or self._made(signature, path)
        if len(known) >= _MOST_STANDINGS:
            del known[next(iter(known))]
        known[signature.shape, path] = standings
        return standings

    def _made(self, signature: Signature, path: tuple[str, ...]) -> Standings:
        names = sorted(signature.requests.keys() - {PODS}) or [PODS]
        rows = tuple(map(self.snapshot.nodes.row, names))
        sums = RunningSums(rooms_of(self.snapshot, self.placer), signature, path, rows)
        return Standings(sums, self.profile.placement_scorer)


def _events(table: Table, above: int, domains: Sequence[Domain]) -> Iterator[dict[str, str | int]]:
    for place, verdict in enumerate(table.verdicts):
        if table.parents[place] == above and verdict is not None:
            yield event_of(domains[place], verdict.status, pruned=verdict.pruned)


_Formed = tuple[Form | None, set[int], tuple[str, ...]]
_NOT_SMALL: _Formed = (None, set(), ())


def _form(group: GroupTree) -> _Formed:
    """What bears on the choice, the signatures of all pods, and the labels from the group down; no form if it is not small."""
    if group.is_leaf:
        leaf = _leaf_form(group)
        return _NOT_SMALL if leaf is None else (leaf, set(group.pods.signatures), (str(group.topology_key),))
    if group.topology_key is None or len(group.children) > _MOST_LEAVES:
        return _NOT_SMALL
    leaves: list[LeafForm] = []
    signatures: set[int] = set()
    keys: set[str] = set()
    for child in group.children:
        if not child.is_leaf or _has_running(child):
            return _NOT_SMALL
        # Scores look at what all pods ask for, also those that may not be placed.
        signatures.update(child.pods.signatures)
        if child.admissible:
            leaf = _leaf_form(child)
            if leaf is None:
                return _NOT_SMALL
            leaves.append(leaf)
            keys.add(str(child.topology_key))
    if len(keys) != 1 or len(leaves) < group.minimum or sum(leaf.number for leaf in leaves) > _MOST_PODS:
        return _NOT_SMALL
    return TreeForm(group.minimum, tuple(leaves)), signatures, (group.topology_key, *keys)


def _leaf_form(leaf: GroupTree) -> LeafForm | None:
    """None without a constraint, with pods that run already, or with too few for the minimum."""
    number = len(leaf.pods.ids)
    if leaf.topology_key is None or _has_running(leaf) or not 0 < leaf.minimum <= number <= _MOST_PODS:
        return None
    return LeafForm(leaf.minimum, number)


def _has_running(leaf: GroupTree) -> bool:
    return bool(leaf.satisfied or leaf.bound_nodes)
