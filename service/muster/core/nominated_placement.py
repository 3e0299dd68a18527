"""A placement decided earlier, assumed exactly as it is if it still holds (semantics 5.6, waiting; KEP-5710).

Used for a unit whose nodes are nominated, before anything else is tried. Fill goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from muster.core.cuts import levels_of
from muster.core.decision import Assignments, Status
from muster.core.domains import CLUSTER, Domain
from muster.core.ordering import Batch, batches_of
from muster.core.pins import allowed_places
from muster.core.promises import depart_leaving, keep_promises
from muster.core.recheck import first_conflict
from muster.core.recursion import Recursion
from muster.core.tree import GroupTree, leaves
from muster.core.trial import Trial, already_holds, begin

_NOWHERE: frozenset[str] = frozenset()


def assume_nominated(recursion: Recursion, nominations: Assignments) -> Trial | None:
    """The root's trial with the pods that are still pending on their nodes; None, and nothing assumed, if they do not fit.

    Promises are kept when this is asked. They fit if every filter admits each, constrained groups are in one domain, and all groups that take part hold.
    """
    slots = _pending_slots(recursion, nominations) if nominations.pods else {}
    if not slots:
        return None
    mark = recursion.ledger.mark()
    trial = _trial(recursion, recursion.unit.root, CLUSTER, slots)
    if trial is None or trial.status is not Status.SUCCESS:
        recursion.ledger.rollback(mark)
        return None
    return trial


def _pending_slots(recursion: Recursion, nominations: Assignments) -> dict[int, int]:
    """Pod to slot of the nominated pods that are still to be placed; empty if a filter refuses one."""
    signature_of: dict[int, int] = {}
    for leaf in leaves(recursion.unit.root):
        if leaf.admissible:
            signature_of.update(zip(leaf.pods.ids, leaf.pods.signatures, strict=True))
    pairs = zip(nominations.pods, nominations.node_index, strict=True)
    pending = [(pod, nominations.nodes[place]) for pod, place in pairs if pod in signature_of]
    excluded = recursion.unit.excluded_nodes
    columns = (
        [signature_of[pod] for pod, _ in pending],
        [name for _, name in pending],
        {place: excluded[pod] for place, (pod, _) in enumerate(pending) if pod in excluded},
    )
    if not _fits_now_and_later(recursion, *columns):
        return {}
    known = recursion.snapshot.nodes.slot
    found = ((pod, known(name)) for pod, name in pending)
    return {pod: slot for pod, slot in found if slot is not None}


def _fits_now_and_later(
    recursion: Recursion, signatures: list[int], names: list[str], excluded: Mapping[int, frozenset[str]]
) -> bool:
    """Whether all filters admit the pods as things are, and once those who leave are gone and others came as promised.

    Those who leave and those who come in their place never need the room at the same time.
    """
    snapshot, unit = recursion.snapshot, recursion.unit
    mark = snapshot.mark()
    keep_promises(snapshot, unit.promised, -1)
    fits = first_conflict(snapshot, recursion.profile, signatures, names, excluded) is None
    snapshot.rollback(mark)
    if fits and unit.promised.signatures:
        depart_leaving(snapshot, unit.earlier.stayed)
        fits = first_conflict(snapshot, recursion.profile, signatures, names, excluded) is None
        snapshot.rollback(mark)
    return fits


def _trial(recursion: Recursion, group: GroupTree, outer: Domain, slots: Mapping[int, int]) -> Trial | None:
    """The group with its pods assumed; None if they are not in one domain, or a part of it does not hold."""
    trial = begin(group)
    if group.topology_key is not None:
        trial.domain = _domain(recursion, group, group.topology_key, outer, slots)
        if trial.domain is None:
            return None
    if group.is_leaf:
        _assume_pods(recursion, trial, slots)
        return trial
    for place, child in enumerate(group.children):
        if not any(pod in slots for leaf in leaves(child) for pod in leaf.pods.ids):
            continue
        below = _trial(recursion, child, trial.domain or outer, slots)
        if below is None or below.status is not Status.SUCCESS:
            return None
        trial.children[place] = below
        if not already_holds(child):
            trial.tally.place()
    return trial


def _domain(
    recursion: Recursion, group: GroupTree, key: str, outer: Domain, slots: Mapping[int, int]
) -> Domain | None:
    """The domain that the group may use and that all of its pods are in."""
    (level,) = levels_of(recursion.snapshot, outer, (key,))
    places, _ = allowed_places(recursion.snapshot.nodes, group, level, outer)
    used = {slots[pod] for leaf in leaves(group) for pod in leaf.pods.ids if pod in slots}
    for place in places.tolist():
        domain: Domain = level.domains[place]
        if domain.slots is not None and used.issubset(domain.slots.tolist()):
            return domain
    return None


def _assume_pods(recursion: Recursion, leaf: Trial, slots: Mapping[int, int]) -> None:
    for batch in batches_of(recursion.snapshot, recursion.unit, leaf.group.pods):
        for part, placed in _parts(batch, slots):
            if placed:
                at = np.array([slots[pod] for pod in part.pods], dtype=np.intp)
                recursion.ledger.assume(part, at)
                leaf.tally.place(len(part.pods))
            else:
                leaf.waiting.append(part)


def _parts(batch: Batch, slots: Mapping[int, int]) -> Iterator[tuple[Batch, bool]]:
    """The batch's pods that have a node, and those that have none."""
    for placed in (True, False):
        pods = tuple(pod for pod in batch.pods if (pod in slots) is placed)
        if pods:
            yield Batch(batch.signature, pods, batch.excluded), placed
