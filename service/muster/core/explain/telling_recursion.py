"""The recursion once more, telling on the way what stopped each group: in every domain, by every filter, by how much.

It decides exactly as `core.recursion` does and asks more only where something has failed, on the state in which it
failed. Domains are told from the closest on; of further ones only how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from muster.core.arrays import IntArray
from muster.core.candidate_outcomes import Outcomes, closest_domain
from muster.core.capacity import pods_by_shape, rooms_of
from muster.core.decision import GroupResult, Reason, Status
from muster.core.domains import Domain
from muster.core.explain.explanation import (
    DOMAIN_FAILED,
    DOMAIN_RULED_OUT,
    MISSING_NODES,
    MISSING_ROOM,
    MORE_DOMAINS,
    first_failure,
)
from muster.core.explain.lack import missing_room
from muster.core.framework import PlacementView
from muster.core.messages import number_of, pod_message
from muster.core.observer import NullObserver
from muster.core.ordering import Batch
from muster.core.reasons import refusal_of
from muster.core.recursion import Recursion
from muster.core.tree import GroupTree, leaves
from muster.core.trial import Trial, result_of

MOST_DOMAINS = 8
"""So many domains of a group are told one by one,"""
MOST_TOLD = 96
"""and so many of all groups: trees may have hundreds of groups that fail alike."""
EXAMPLES = 3
"""So many refused nodes are named with each filter."""
_LACKS = (MISSING_ROOM, MISSING_NODES)


class _Attention(IntEnum):
    """How closely a simulation is followed: not at all; by what leaves lack; by domains and examples too."""

    NONE = 0
    LACKS = 1
    FULL = 2


class TellingRecursion(Recursion):
    """Used for one unit; results of its trials have the reasons of `core.explain.explanation` besides their own."""

    _attention = _Attention.FULL
    _left = MOST_TOLD

    def _refuse(self, leaf: Trial, batch: Batch, number: int, domain: Domain, *, fill: bool) -> None:
        is_news = batch.signature not in leaf.pod_reasons
        super()._refuse(leaf, batch, number, domain, fill=fill)
        if self._attention is _Attention.NONE:
            return
        short = number if fill else leaf.tally.required - leaf.tally.satisfied
        lack = missing_room(self.snapshot, self.placer, batch, domain, short)
        leaf.reasons = [each for each in leaf.reasons if each.code not in _LACKS] + lack
        if is_news and self._attention is _Attention.FULL:
            signature = self.snapshot.signatures[batch.signature]
            refusal = refusal_of(self.snapshot, self.profile, signature, domain, batch.excluded, EXAMPLES)
            leaf.pod_reasons[batch.signature] = refusal.reasons

    def _closest(self, trial: Trial, outcomes: Outcomes) -> Trial:
        if self._attention is _Attention.NONE or not len(outcomes.domains):
            return super()._closest(trial, outcomes)
        order = self._by_closeness(trial.group, outcomes)
        told: list[Reason] = []
        if self._attention is _Attention.FULL:
            number = min(MOST_DOMAINS, self._left)
            self._left -= number
            order[:number], told = self._domains_told(trial.group, outcomes, order[:number])
            if len(order) > number:
                told.append(_others(outcomes, order[number:]))
        closest = outcomes.domains[order[0]]
        trial, _ = self._simulate(trial.group, closest)
        trial.reasons = [closest_domain(closest), *told, *trial.reasons]
        trial.verdict = outcomes.verdict
        return trial

    def _try_domain(self, group: GroupTree, domain: Domain) -> tuple[Trial, PlacementView]:
        before, self._attention = self._attention, _Attention.NONE
        simulated = super()._try_domain(group, domain)
        self._attention = before
        return simulated

    def _followed(self, group: GroupTree, domain: Domain) -> Trial:
        """Simulate the group in the domain, unheard, to see what its leaves lack."""
        heard, self.observer = self.observer, NullObserver()
        before, self._attention = self._attention, _Attention.LACKS
        attempt, _ = self._simulate(group, domain)
        self.observer, self._attention = heard, before
        return attempt

    def _by_closeness(self, group: GroupTree, outcomes: Outcomes) -> list[int]:
        """Places of the candidates: tried ones first, then by children that held, then by room; of equals the first."""
        room = self._room(group, outcomes.domains)
        keys = (-room, -outcomes.satisfied, outcomes.pruned)
        order: list[int] = np.lexsort(keys).tolist()
        return order

    def _room(self, group: GroupTree, domains: Sequence[Domain]) -> IntArray:
        """[C] pods of the group that each domain holds, were each leaf there alone."""
        slots = [np.zeros(0, dtype=np.intp) if each.slots is None else each.slots for each in domains]
        starts = np.cumsum([0, *map(len, slots[:-1])])
        together = np.concatenate(slots)
        rooms = rooms_of(self.snapshot, self.placer)
        total: IntArray = np.zeros(len(domains), dtype=np.int64)
        for leaf in leaves(group):
            for shape, number in pods_by_shape(self.snapshot, leaf).items():
                per_domain = np.add.reduceat(rooms.per_slot(shape)[together], starts)
                total += np.minimum(per_domain, number)
        return total

    def _domains_told(
        self, group: GroupTree, outcomes: Outcomes, places: list[int]
    ) -> tuple[list[int], list[Reason]]:
        """The places anew, from the domain on that holds most of the group, and what stopped it in each."""
        attempts = [(place, self._followed(group, outcomes.domains[place])) for place in places]
        # Those that their capacity ruled out have not been tried before, and may hold more than one that was.
        attempts.sort(key=lambda attempt: -attempt[1].tally.satisfied)
        told = [
            domain_reason(
                outcomes.domains[place],
                result_of(attempt),
                Status(int(outcomes.statuses[place])),
                pruned=bool(outcomes.pruned[place]),
            )
            for place, attempt in attempts
        ]
        return [place for place, _ in attempts], told


def domain_reason(domain: Domain, result: GroupResult, status: Status, *, pruned: bool) -> Reason:
    """Why a group with this result in the domain does not hold its minimum there."""
    details = {
        "key": domain.key,
        "value": domain.value,
        "status": status.name,
        "held": str(result.satisfied),
        "required": str(result.required),
    }
    needed = number_of(result.required, "group" if result.children else "pod")
    text = f"{domain.key}={domain.value}: {result.satisfied} of {needed} fit"
    blamed, _ = first_failure(result) or (result, 1)
    if blamed is not result:
        details |= {"blamedKind": blamed.key.kind, "blamed": blamed.key.name}
        text = f"{text}; {blamed.key.name} {blamed.satisfied} of {blamed.required}"
    lacks = [reason for reason in blamed.reasons if reason.code in _LACKS]
    for reason in lacks:
        details |= {name: value for name, value in reason.details.items() if name not in details}
    words = [reason.message for reason in lacks if reason.code == MISSING_ROOM]
    words = words or list(dict.fromkeys(map(pod_message, blamed.pod_reasons.values())))
    text = "; ".join([text, *words])
    return Reason(DOMAIN_RULED_OUT if pruned else DOMAIN_FAILED, text, 0, details)


def _others(outcomes: Outcomes, places: Sequence[int]) -> Reason:
    counts = Counter(Status(int(outcomes.statuses[place])).name for place in places)
    ruled_out = int(np.count_nonzero(outcomes.pruned[list(places)]))
    details = {"domains": str(len(places)), "ruledOut": str(ruled_out)}
    details |= {status.lower(): str(number) for status, number in sorted(counts.items())}
    text = f"{number_of(len(places), 'more domain')} no closer ({ruled_out} ruled out by capacity)"
    return Reason(MORE_DOMAINS, text, 0, details)
