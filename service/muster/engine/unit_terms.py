"""How many terms a decision on a unit has to look at: those of its pods, and those of running pods that select them.

A term is anything that is held against all nodes by itself: a spread constraint, a term or requirement of an affinity,
a toleration. What bears on where other pods run is looked at again after each pod, the rest once for each kind of pod.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from muster.core.signature import Signature
from muster.core.tree import Unit, leaves
from muster.engine.array_feed import ArrayFeed
from muster.model.pod import Affinity, NodeAffinity, PodAffinity
from muster.plugins.pod_terms import TERM_KINDS, carried_terms


def term_count(unit: Unit, feed: ArrayFeed) -> int:
    """The terms of all looks together that placing each pod of the unit once takes, as far as the snapshot has been told.

    Brings nothing up to date, so it may be asked while assignments are assumed.
    """
    count, snapshot = 0, feed.snapshot
    for leaf in leaves(unit.root):
        for index, pods in Counter(leaf.pods.signatures).items():
            signature = feed.signatures[index]
            count += _terms_of_nodes(signature) + pods * _terms_of_pods(signature)
            if snapshot.pods.carriers:
                count += pods * sum(len(carried_terms(kind, signature, snapshot)) for kind in TERM_KINDS)
    return count


@lru_cache(maxsize=4_096)
def _terms_of_nodes(signature: Signature) -> int:
    spec = signature.spec
    affinity = (spec.affinity or Affinity()).node_affinity or NodeAffinity()
    terms = [*(affinity.required or ()), *(each.preference for each in affinity.preferred)]
    requirements = sum(len(term.match_expressions) + len(term.match_fields) for term in terms)
    return len(spec.tolerations) + len(spec.node_selector) + len(terms) + requirements


@lru_cache(maxsize=4_096)
def _terms_of_pods(signature: Signature) -> int:
    affinity = signature.spec.affinity or Affinity()
    parts = (affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity())
    terms = sum(len(part.required) + len(part.preferred) for part in parts)
    return terms + len(signature.spec.topology_spread_constraints)
