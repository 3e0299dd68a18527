"""A placement that the search found becomes trials with assumed pods, as if the recursion had placed it (KEP-6012).

Fill goes on from there. Where pods have filters that the search does not know (they read other nodes), each pod is
asked for again, in an order in which filters may let them in, and those that their nodes refuse look for another one
in their domain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from muster.core.decision import Status
from muster.core.domains import CLUSTER, Domain
from muster.core.observer import Observer
from muster.core.ordering import Batch, batches_of
from muster.core.pod_placement import PodPlacer
from muster.core.search.problem import SearchLeaf, SearchNode
from muster.core.search.search import FoundPlacement
from muster.core.snapshot import Snapshot
from muster.core.tree import Unit
from muster.core.trial import Ledger, Trial, attributes_of, begin


def assume_found(
    snapshot: Snapshot, unit: Unit, placer: PodPlacer, ledger: Ledger, found: FoundPlacement
) -> Trial | None:
    """The root's trial with the found minimum assumed in the ledger; None, and nothing assumed, if filters refuse it.

    Of equal pods the first created are placed.
    """
    mark = ledger.mark()
    shares = list(_shares(snapshot, unit, found))
    if found.problem.exact:
        for share in shares:
            share.settle(ledger, len(share.slots))
    else:
        _settle_by_filters(snapshot, placer, ledger, shares)
    by_leaf: dict[int, list[_Share]] = defaultdict(list)
    for share in shares:
        by_leaf[share.leaf].append(share)
    trial = _trial(found.problem.root, found, by_leaf)
    if trial is None or trial.status is not Status.SUCCESS:
        ledger.rollback(mark)
        return None
    return trial


def tell_found(trial: Trial, observer: Observer) -> None:
    """Tell of the groups that take part, nested as they are, as the recursion tells of what it places."""
    observer.enter("group", trial.group.key)
    if trial.group.is_leaf:
        observer.enter("pods", trial.group.key)
        observer.leave({"key": str(trial.group.key), "pods": trial.placed - trial.group.satisfied})
    for child in trial.children:
        if child is not None:
            tell_found(child, observer)
    observer.leave(attributes_of(trial))


@dataclass(slots=True)
class _Share:
    """What one batch of a leaf's pods got: `slots` for its first pods, of which `taken` are assumed."""

    leaf: int
    batch: Batch
    slots: list[int]
    domain: Domain
    taken: int = 0

    @property
    def rest(self) -> Batch:
        """The pods without a node."""
        return Batch(self.batch.signature, self.batch.pods[self.taken :], self.batch.excluded)

    def settle(self, ledger: Ledger, number: int) -> None:
        """Assume the next pods on the next slots."""
        if number:
            ledger.assume(self.rest, np.array(self.slots[:number], dtype=np.intp))
            del self.slots[:number]
            self.taken += number


def _shares(snapshot: Snapshot, unit: Unit, found: FoundPlacement) -> Iterator[_Share]:
    slots = found.problem.slots.tolist()
    nodes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for leaf, kind, node, number in found.counts:
        nodes[leaf, kind] += [slots[node]] * number
    for search_leaf, domain in _leaves(found.problem.root, found, CLUSTER):
        for batch in batches_of(snapshot, unit, search_leaf.group.pods):
            known = found.problem.types.get((batch.signature, batch.excluded))
            left = nodes[search_leaf.index, known] if known is not None else []
            share, left[:] = left[: len(batch.pods)], left[len(batch.pods) :]
            yield _Share(search_leaf.index, batch, share, domain)


def _leaves(node: SearchNode, found: FoundPlacement, outer: Domain) -> Iterator[tuple[SearchLeaf, Domain]]:
    """Each leaf and the domain that it must stay in."""
    domain = found.domains.get(node.group.key, outer)
    if isinstance(node, SearchLeaf):
        yield node, domain
    else:
        for child in node.children:
            yield from _leaves(child, found, domain)


def _settle_by_filters(snapshot: Snapshot, placer: PodPlacer, ledger: Ledger, shares: list[_Share]) -> None:
    """Assume what filters admit, as long as one more pod lets others in; then let the rest look for themselves."""
    progress = True
    while progress:
        progress = False
        for share in shares:
            admits = placer.admits(snapshot.signatures[share.batch.signature])
            place = next((place for place, slot in enumerate(share.slots) if admits[slot]), None)
            if place is not None:
                share.slots.insert(0, share.slots.pop(place))
                share.settle(ledger, 1)
                progress = True
    for share in shares:
        share.taken += ledger.place(share.rest, len(share.slots), share.domain)


def _trial(node: SearchNode, found: FoundPlacement, shares: dict[int, list[_Share]]) -> Trial | None:
    """The trial of a group, None if the placement leaves it out."""
    trial = begin(node.group)
    trial.domain = found.domains.get(node.group.key)
    if isinstance(node, SearchLeaf):
        trial.tally.place(sum(share.taken for share in shares[node.index]))
        trial.waiting = [share.rest for share in shares[node.index] if share.rest.pods]
        return trial if trial.placed > node.group.satisfied else None
    places = {id(group): place for place, group in enumerate(node.group.children)}
    for child in node.children:
        known = _trial(child, found, shares)
        if known is not None:
            trial.children[places[id(child.group)]] = known
            if known.status is Status.SUCCESS:
                trial.tally.place()
    return trial if any(trial.children) else None
