"""Filters: required pod affinity and anti-affinity, the latter both ways. Score: preferred terms, both ways.

As upstream: the first of a group of pods that must be together may go anywhere where the label is; a pod's required
affinity also draws later pods that it selects, with weight 1; pods with a deletion mark count until they are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.core.arrays import BoolArray, IntArray, Slots
from muster.core.domains import domain_totals
from muster.core.framework import MAX_SCORE
from muster.core.pod_counts import PodSelection
from muster.core.signature import Signature
from muster.core.snapshot import Snapshot
from muster.plugins.pod_terms import Carrying, MatchingAll, Term, TermKind, carried_terms, terms_of

_SCORED_BY_CARRIER: tuple[TermKind, ...] = ("preferred", "preferred_anti", "affinity")


@dataclass(frozen=True)
class PodAffinityFilter:
    code = "POD_AFFINITY"
    message = "node(s) didn't match pod affinity rules"
    reads_one_node = False

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        return bool(terms_of(signature).affinity)

    def mask(self, signature: Signature, snapshot: Snapshot) -> BoolArray:
        terms = terms_of(signature).affinity
        selection = MatchingAll(terms)
        totals = [_totals(snapshot, selection, term) for term in terms]
        is_first = selection.selects(signature) and not any(total.any() for total in totals)
        mask = np.ones(snapshot.nodes.size, dtype=np.bool_)
        for term, total in zip(terms, totals, strict=True):
            mask &= snapshot.nodes.column(term.topology_key).codes >= 0 if is_first else total > 0
        return mask

    def excludes_itself(self, signature: Signature) -> bool:
        return False


@dataclass(frozen=True)
class PodAntiAffinityFilter:
    code = "POD_ANTI_AFFINITY"
    message = "node(s) didn't match pod anti-affinity rules"
    reads_one_node = False

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        return bool(terms_of(signature).anti_affinity or carried_terms("anti_affinity", signature, snapshot))

    def mask(self, signature: Signature, snapshot: Snapshot) -> BoolArray:
        mask = np.ones(snapshot.nodes.size, dtype=np.bool_)
        for term in terms_of(signature).anti_affinity:
            mask &= _totals(snapshot, MatchingAll((term,)), term) == 0
        for term in carried_terms("anti_affinity", signature, snapshot):
            mask &= _totals(snapshot, Carrying("anti_affinity", term), term) == 0
        return mask

    def excludes_itself(self, signature: Signature) -> bool:
        return False


@dataclass(frozen=True)
class PodAffinityScore:
    """Weights of all terms that a node's pods meet, scaled so that the worst node has 0 and the best 100."""

    required_weight: int = 1

    def concerns(self, signature: Signature, snapshot: Snapshot) -> bool:
        terms = terms_of(signature)
        if terms.preferred or terms.preferred_anti:
            return True
        if not snapshot.pods.carriers:
            return False
        return any(carried_terms(kind, signature, snapshot) for kind in _SCORED_BY_CARRIER)

    def score(self, signature: Signature, snapshot: Snapshot, slots: Slots) -> IntArray:
        raw = np.zeros(snapshot.nodes.size, dtype=np.int64)
        terms = terms_of(signature)
        for term in terms.preferred:
            raw += term.weight * _totals(snapshot, MatchingAll((term,)), term)
        for term in terms.preferred_anti:
            raw -= term.weight * _totals(snapshot, MatchingAll((term,)), term)
        for kind in _SCORED_BY_CARRIER:
            for term in carried_terms(kind, signature, snapshot):
                raw += self._weight(kind, term) * _totals(snapshot, Carrying(kind, term), term)
        return _scaled(raw[slots])

    def _weight(self, kind: TermKind, term: Term) -> int:
        if kind == "affinity":
            return self.required_weight
        return term.weight if kind == "preferred" else -term.weight


def _totals(snapshot: Snapshot, selection: PodSelection, term: Term) -> IntArray:
    """Per slot, how many pods of the selection run in the node's domain of the term's key."""
    return domain_totals(snapshot.count(selection).per_slot, snapshot.nodes.column(term.topology_key))


def _scaled(raw: IntArray) -> IntArray:
    lowest = int(raw.min())
    width = int(raw.max()) - lowest
    return (raw - lowest) * MAX_SCORE // width if width else np.zeros_like(raw)
